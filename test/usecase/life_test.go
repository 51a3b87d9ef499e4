package usecase

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"seckill/application"
	"seckill/domain"
)

// covers P1, P5
func TestLatePayment(t *testing.T) {
	s := open(t, options{total: 1, pay: time.Millisecond})
	id := s.placed("a")
	s.expire(1)
	s.wantLevel(1, 0, 0)
	order, err := s.Pay(ctx, id, "a", "p")
	if err != nil || order.Status != domain.Paid {
		t.Fatalf("%s, %v", order.Status, err)
	}
	s.wantLevel(0, 0, 1)
	if again, err := s.Pay(ctx, id, "a", "p"); err != nil || again.Status != domain.Paid {
		t.Errorf("repeat: %s, %v", again.Status, err)
	}
	if _, err := s.Pay(ctx, id, "a", "other"); !errors.Is(err, domain.ErrOrderClosed) {
		t.Errorf("second payment: %v", err)
	}
	s.wantLevel(0, 0, 1)
}

// covers P5
func TestLatePaymentWithoutUnitsIsToBeRefunded(t *testing.T) {
	s := open(t, options{total: 1, pay: time.Millisecond})
	id := s.placed("a")
	s.expire(1)
	taken := s.grab("b")
	for range 2 {
		order, err := s.Pay(ctx, id, "a", "p")
		if err != nil || order.Status != domain.RefundDue {
			t.Fatalf("%s, %v", order.Status, err)
		}
	}
	s.consume()
	s.wantStatus(taken, domain.Pending)
	s.wantLevel(0, 1, 0)
}

// covers P5: many late payments of many orders for few units, all at once.
func TestLatePaymentsRace(t *testing.T) {
	const buyers = 12
	s := open(t, options{total: buyers, pay: time.Millisecond})
	var ids []domain.OrderID
	for i := range buyers {
		ids = append(ids, s.grab(domain.BuyerID(rune('a'+i))))
	}
	s.consume()
	s.expire(buyers)
	s.grab("x")
	s.grab("y")
	s.grab("z")
	var group sync.WaitGroup
	for _, id := range ids {
		for range 4 {
			group.Go(func() {
				if _, err := s.Pay(ctx, id, "", "p"); err != nil {
					t.Errorf("pay: %v", err)
				}
			})
		}
	}
	group.Wait()
	s.consume()
	paid := int64(0)
	for _, id := range ids {
		order, err := s.Order(ctx, id, "")
		if err != nil || order.Status != domain.Paid && order.Status != domain.RefundDue {
			t.Errorf("%s, %v", order.Status, err)
		}
		if order.Status == domain.Paid {
			paid++
		}
	}
	if paid != buyers-3 {
		t.Errorf("%d paid for %d units", paid, buyers-3)
	}
	s.must(s.Relay(ctx))
	s.wantLevel(0, buyers-paid, paid)
}

// unreachable is a hot store that cannot be told about outcomes for a while.
type unreachable struct {
	domain.Stock
	down *bool
}

func (u unreachable) Release(ctx context.Context, sale domain.SaleID, ids ...domain.OrderID) (int64, error) {
	if *u.down {
		return 0, domain.ErrUnavailable
	}
	return u.Stock.Release(ctx, sale, ids...)
}

// covers P4
func TestTheRelayHealsALostRelease(t *testing.T) {
	down := true
	s := open(t, options{total: 1, wrap: func(stock domain.Stock) domain.Stock { return unreachable{stock, &down} }})
	id := s.placed("a")
	if order, err := s.Cancel(ctx, id, "a"); err != nil || order.Status != domain.Cancelled {
		t.Fatalf("%s, %v", order.Status, err)
	}
	if level, _ := s.Stock.Level(ctx, sale); level.Held != 1 {
		t.Fatalf("held is %d while the hot store is away", level.Held)
	}
	down = false
	var heard []domain.Status
	s.Subscribe(func(_ context.Context, e domain.Event) error {
		heard = append(heard, e.Order.Status)
		return nil
	})
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		n, err := s.Relay(ctx)
		if err != nil || time.Now().After(deadline) {
			t.Fatalf("relay: %d, %v", n, err)
		}
		if n > 0 {
			break
		}
	}
	s.wantLevel(1, 0, 0)
	if len(heard) != 1 || heard[0] != domain.Cancelled {
		t.Errorf("heard %v", heard)
	}
	if n, err := s.Relay(ctx); n != 0 || err != nil {
		t.Errorf("relayed again: %d, %v", n, err)
	}
}

// covers Q9: the answer waits for the commit, and many wait together.
func TestCommittedAnswersAfterTheCommit(t *testing.T) {
	s := open(t, options{total: 50})
	s.Engine = application.New(s.Ports, application.Config{Accept: application.AcceptCommitted, AcceptWait: 10 * time.Second})
	stop := make(chan struct{})
	var consumer sync.WaitGroup
	consumer.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				s.consume()
			}
		}
	})
	var buyers sync.WaitGroup
	for i := range 100 {
		buyers.Go(func() {
			outcome, err := s.Grab(ctx, application.GrabRequest{Sale: sale, Buyer: domain.BuyerID("b" + string(rune('A'+i/26)) + string(rune('a'+i%26)))})
			if err != nil {
				t.Errorf("grab: %v", err)
			}
			if outcome.Verdict == domain.Accepted {
				if found, err := s.store.Find(ctx, outcome.Order); err != nil || len(found) != 1 {
					t.Errorf("accepted, but the ledger has %d orders, %v", len(found), err)
				}
			}
		})
	}
	buyers.Wait()
	close(stop)
	consumer.Wait()
	s.wantLevel(0, 50, 0)
}

// covers Q9: no commit, no acceptance; and what was held is told.
func TestCommittedWithoutAConsumer(t *testing.T) {
	s := open(t, options{total: 1})
	s.Engine = application.New(s.Ports, application.Config{Accept: application.AcceptCommitted, AcceptWait: 50 * time.Millisecond})
	outcome, err := s.Grab(ctx, application.GrabRequest{Sale: sale, Buyer: "a", Request: "r"})
	if !errors.Is(err, domain.ErrUnavailable) || outcome.Order == "" {
		t.Fatalf("%+v, %v", outcome, err)
	}
	s.consume()
	again, err := s.Grab(ctx, application.GrabRequest{Sale: sale, Buyer: "a", Request: "r"})
	if err != nil || again.Order != outcome.Order || !again.Replayed {
		t.Errorf("retry: %+v, %v", again, err)
	}
}

// covers Q7: what the hot store over-admits ends as a rejection and is never sold.
func TestTheLedgerRejectsWhatTheHotStoreOverAdmits(t *testing.T) {
	s := open(t, options{total: 2})
	honest := s.placed("a")
	// The hot store has lost a unit's hold: it believes that 2 are free.
	level, err := s.Stock.Level(ctx, sale)
	if err != nil {
		t.Fatal(err)
	}
	for _, unique := range []string{"x", "y"} {
		id := domain.NewOrderID(sale, unique)
		placed, err := s.store.Place(ctx, []domain.Order{{ID: id, Sale: sale, Buyer: domain.BuyerID(unique), Quantity: 1, Epoch: level.Epoch}})
		if err != nil {
			t.Fatal(err)
		}
		t.Log(unique, placed[0].Order.Status, placed[0].Order.Reason)
	}
	rejected := s.wantStatus(domain.NewOrderID(sale, "y"), domain.Rejected)
	if rejected.Reason != domain.ReasonSoldOut {
		t.Errorf("reason is %s", rejected.Reason)
	}
	s.wantStatus(honest, domain.Pending)
}

// covers S3: of two commands at the same moment, the stores keep the same one.
func TestGateCommandsRace(t *testing.T) {
	s := open(t, options{total: 1})
	for range 20 {
		var group sync.WaitGroup
		for _, command := range []string{"pause", "open", "pause", "open"} {
			group.Go(func() { _, _ = s.SetState(ctx, sale.Activity, command) })
		}
		group.Wait()
		activity, err := s.Activities.Activity(ctx, sale.Activity)
		if err != nil {
			t.Fatal(err)
		}
		level, err := s.Stock.Level(ctx, sale)
		if err != nil || level.State != activity.State {
			t.Fatalf("hot store says %s, ledger says %s, %v", level.State, activity.State, err)
		}
	}
}

// covers A2
func TestOthersOrdersAreNotFound(t *testing.T) {
	s := open(t, options{total: 2})
	for _, id := range []domain.OrderID{s.placed("a"), s.grab("a2")} {
		if _, err := s.Order(ctx, id, "b"); !errors.Is(err, domain.ErrNotFound) {
			t.Errorf("order: %v", err)
		}
		if _, err := s.Pay(ctx, id, "b", "p"); !errors.Is(err, domain.ErrNotFound) {
			t.Errorf("pay: %v", err)
		}
		if _, err := s.Cancel(ctx, id, "b"); !errors.Is(err, domain.ErrNotFound) {
			t.Errorf("cancel: %v", err)
		}
	}
}
