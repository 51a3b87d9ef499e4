package usecase

import (
	"context"
	"errors"
	"testing"
	"time"

	"seckill/application"
	"seckill/domain"
)

// What went wrong once must go well when it is tried again.

// bury makes a dead letter of the order that is queued.
func (s *shop) bury() domain.DeadLetter {
	s.t.Helper()
	deliveries, err := s.Queue.Receive(ctx, 0, 1)
	if err != nil || len(deliveries) != 1 {
		s.t.Fatalf("%d deliveries, %v", len(deliveries), err)
	}
	letter := domain.DeadLetter{Intent: deliveries[0].Intents[0], Payload: "{}", Reason: "bad"}
	if err := s.DeadLetters.Bury(ctx, letter); err != nil {
		s.t.Fatal(err)
	}
	if err := s.Queue.Ack(ctx, deliveries...); err != nil {
		s.t.Fatal(err)
	}
	s.relayAll()
	letters, err := s.ListDeadLetters(ctx, 0, 10)
	if err != nil || len(letters) != 1 {
		s.t.Fatalf("%+v, %v", letters, err)
	}
	return letters[0]
}

// failing is a ledger that places nothing while err or own is set.
type failing struct {
	domain.Orders
	err error // the ledger's
	own error // the order's
}

func (f *failing) Place(ctx context.Context, orders []domain.Order) ([]domain.Placed, error) {
	switch {
	case f.err != nil:
		return nil, f.err
	case f.own != nil:
		return []domain.Placed{{Order: orders[0], Err: f.own}}, nil
	}
	return f.Orders.Place(ctx, orders)
}

// covers Q6
func TestADeadLetterMayBeReplayedUntilItGoesWell(t *testing.T) {
	for name, ledger := range map[string]*failing{
		"the order is still bad": {own: errors.New("bad")},
		"the ledger is away":     {err: domain.ErrUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, options{total: 1})
			id := s.grab("a")
			letter := s.bury()
			ledger.Orders = s.store
			s.Engine.Orders = ledger
			if _, err := s.Replay(ctx, letter.ID); err == nil {
				t.Fatal("the replay went well")
			}
			s.reconcile() // gives back what the failed replay may have left
			s.Engine.Orders = s.store
			order, err := s.Replay(ctx, letter.ID)
			if err != nil || order.ID != id || order.Status != domain.Pending {
				t.Fatalf("%+v, %v", order, err)
			}
			s.must(s.Pay(ctx, id, "a", "p"))
			s.wantLevel(0, 0, 1)
		})
	}
}

// covers P5: the first try died between the hot store and the ledger.
func TestALatePaymentMayBeTriedAgain(t *testing.T) {
	s := open(t, options{total: 1, pay: time.Millisecond})
	id := s.placed("a")
	s.expire(1)
	s.must(s.Stock.Reacquire(ctx, sale, domain.Claim{Order: id, Buyer: "a", Quantity: 1}))
	wantRepairs(t, s.reconcile(), "released")
	order, err := s.Pay(ctx, id, "a", "p")
	if err != nil || order.Status != domain.Paid {
		t.Fatalf("%s, %v", order.Status, err)
	}
	s.wantLevel(0, 0, 1)
}

// covers P5: the late hold was given back although the ledger had decided.
func TestARepeatedLatePaymentSettlesItsHold(t *testing.T) {
	s := open(t, options{total: 1, pay: time.Millisecond})
	id := s.placed("a")
	s.expire(1)
	s.must(s.Stock.Reacquire(ctx, sale, domain.Claim{Order: id, Buyer: "a", Quantity: 1}))
	effect, err := s.store.PayLate(ctx, id, "p", true)
	if err != nil || effect.Order.Status != domain.Paid {
		t.Fatalf("%s, %v", effect.Order.Status, err)
	}
	s.must(s.Stock.Release(ctx, sale, id.Late()))
	if err := s.store.Applied(ctx, effect.ID); err != nil {
		t.Fatal(err)
	}
	wantRepairs(t, s.reconcile(), "adopted")
	s.wantLevel(0, 0, 1)
	s.must(s.Pay(ctx, id, "a", "p"))
	s.wantLevel(0, 0, 1)
}

// covers T6: closed orders keep their request ids over a restart.
func TestRequestIDsOutliveTheProcess(t *testing.T) {
	s := open(t, options{total: 2})
	first, err := s.Grab(ctx, application.GrabRequest{Sale: sale, Buyer: "a", Request: "r-1"})
	if err != nil {
		t.Fatal(err)
	}
	s.consume()
	s.must(s.Cancel(ctx, first.Order, "a"))
	s.start(options{})
	if err := s.Rebuild(ctx); err != nil {
		t.Fatal(err)
	}
	again, err := s.Grab(ctx, application.GrabRequest{Sale: sale, Buyer: "a", Request: "r-1"})
	if err != nil || !again.Replayed || again.Order != first.Order {
		t.Errorf("%+v, %v; the first order is %s", again, err, first.Order)
	}
	s.wantLevel(2, 0, 0)
}

// covers T6, Q7, Q9: a rejection by the ledger's last gate is told alike twice.
func TestARejectedGrabIsRefusedAgain(t *testing.T) {
	s := open(t, options{total: 1})
	level, err := s.Stock.Level(ctx, sale)
	if err != nil {
		t.Fatal(err)
	}
	s.must(s.store.Place(ctx, []domain.Order{{ID: domain.NewOrderID(sale, "x"), Sale: sale, Buyer: "z", Quantity: 1, Epoch: level.Epoch}}))
	s.Engine = application.New(s.Ports, application.Config{Accept: application.AcceptCommitted})
	defer s.consuming()()
	for range 2 {
		outcome, err := s.Grab(ctx, application.GrabRequest{Sale: sale, Buyer: "a", Request: "r-1"})
		if err != nil || outcome.Verdict != domain.SoldOut {
			t.Errorf("%s, %v", outcome.Verdict, err)
		}
	}
}

// consuming has a consumer run until the returned function is called.
func (s *shop) consuming() (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			if deliveries, err := s.Queue.Receive(ctx, 0, 100); err == nil {
				_ = s.Persist(context.WithoutCancel(ctx), deliveries)
			}
		}
	}()
	return func() { cancel(); <-done }
}

// covers S4
func TestAnArchivedSaleHasEnded(t *testing.T) {
	s := open(t, options{total: 1})
	s.must(s.SetState(ctx, sale.Activity, "close"))
	s.must(s.Archive(ctx, sale.Activity))
	s.must(s.Archive(ctx, sale.Activity))
	if outcome, err := s.Grab(ctx, application.GrabRequest{Sale: sale, Buyer: "a"}); err != nil || outcome.Verdict != domain.SaleEnded {
		t.Errorf("%s, %v", outcome.Verdict, err)
	}
}

func TestABuriedOrderIsClosed(t *testing.T) {
	s := open(t, options{total: 1})
	id := s.grab("a")
	s.bury()
	var closed *domain.ClosedError
	if _, err := s.Pay(ctx, id, "a", "p"); !errors.As(err, &closed) || closed.Order.Status != domain.Rejected {
		t.Errorf("pay: %v", err)
	}
	if _, err := s.Cancel(ctx, id, "a"); !errors.Is(err, domain.ErrOrderClosed) {
		t.Errorf("cancel: %v", err)
	}
}
