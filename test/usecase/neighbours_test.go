package usecase

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"seckill/application"
	"seckill/domain"
)

// One sale in trouble must not hold up another.

// other opens a second activity.
func (s *shop) other(total int64) domain.SaleID {
	s.t.Helper()
	now := time.Now()
	activity := domain.Activity{
		ID: 1002, Name: "other", StartsAt: now.Add(-time.Hour), EndsAt: now.Add(time.Hour), PaymentWindow: time.Hour,
		SKUs: []domain.SKU{{ID: 2001, Total: total, PerUserLimit: total, Segments: 1}},
	}
	s.must(s.SaveActivity(ctx, activity))
	s.must(s.Preheat(ctx, activity.ID))
	s.must(s.SetState(ctx, activity.ID, "open"))
	return activity.Sale(2001)
}

// lose has the ledger hold an order that the hot store does not know.
func (s *shop) lose(sale domain.SaleID) domain.OrderID {
	s.t.Helper()
	level, err := s.Stock.Level(ctx, sale)
	if err != nil {
		s.t.Fatal(err)
	}
	id := domain.NewOrderID(sale, "lost")
	s.must(s.store.Place(ctx, []domain.Order{{ID: id, Sale: sale, Buyer: "loser", Quantity: 1, Epoch: level.Epoch}}))
	return id
}

// covers N3
func TestASaleBeyondRepairDoesNotHoldUpTheNext(t *testing.T) {
	s := open(t, options{total: 1})
	next := s.other(5)
	s.lose(sale)
	s.must(s.Stock.Settle(ctx, sale, s.grab("b"))) // the unit of the lost order is gone
	lost := s.lose(next)
	reports, err := s.ReconcileAll(ctx, true, true)
	if err == nil || len(reports) != 2 || reports[0].Balanced() || !reports[1].Balanced() {
		t.Errorf("%d reports, %v: %+v", len(reports), err, reports)
	}
	if hold, err := s.Stock.Hold(ctx, next, lost); err != nil || hold.State != domain.Held {
		t.Errorf("the next sale's hold is %q, %v", hold.State, err)
	}
}

// covers P4
func TestStuckEffectsDoNotHoldUpTheRelay(t *testing.T) {
	const stuck = 600 // more than one page
	s := open(t, options{total: stuck})
	next := s.other(1)
	var ids []domain.OrderID
	for i := range stuck {
		ids = append(ids, s.grab(domain.BuyerID(fmt.Sprint("b", i))))
	}
	s.consume()
	for _, id := range ids {
		s.must(s.store.Cancel(ctx, id))
	}
	outcome, err := s.Grab(ctx, application.GrabRequest{Sale: next, Buyer: "x"})
	if err != nil {
		t.Fatal(err)
	}
	s.consume()
	s.must(s.store.Cancel(ctx, outcome.Order))
	// The first sale's preheat died half-way.
	if err := s.Stock.Seal(ctx, sale, 1_000_000, true); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		_, _ = s.Relay(ctx) // an error is right: the first sale is stuck
		level, err := s.Stock.Level(ctx, next)
		if err != nil || time.Now().After(deadline) {
			t.Fatalf("%+v, %v", level, err)
		}
		if level.Held == 0 {
			return
		}
	}
}

// covers S3: a command waits for who works under the lock.
func TestPauseWaitsForTheLock(t *testing.T) {
	s := open(t, options{total: 1})
	held, free := make(chan struct{}), make(chan struct{})
	var holder sync.WaitGroup
	holder.Go(func() {
		err := s.Lock.Do(ctx, "sale:"+sale.String(), time.Second, func(context.Context, domain.Lease) error {
			close(held)
			<-free
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	})
	<-held
	time.AfterFunc(500*time.Millisecond, func() { close(free) }) // longer than one attempt waits
	s.must(s.SetState(ctx, sale.Activity, "pause"))
	if outcome, err := s.Grab(ctx, application.GrabRequest{Sale: sale, Buyer: "late"}); err != nil || outcome.Verdict != domain.SalePaused {
		t.Errorf("%s, %v", outcome.Verdict, err)
	}
	holder.Wait()
}

// covers S3, N3: a command reached the ledger only.
func TestReconcileSetsAGateThatWasLeftBehind(t *testing.T) {
	s := open(t, options{total: 1})
	if err := s.store.SetState(ctx, sale.Activity, domain.Open, domain.Paused); err != nil {
		t.Fatal(err)
	}
	wantRepairs(t, s.reconcile(), "gate set")
	s.wantLevel(1, 0, 0)
}

// covers N7, Q7: the hot store came back with an older epoch, or not at all.
func TestReconcileLoadsWhatTheHotStoreLost(t *testing.T) {
	s := open(t, options{total: 3})
	paid := s.placed("payer")
	s.must(s.Pay(ctx, paid, "", "p"))
	s.must(s.store.BeginEpoch(ctx, sale, domain.Fence{}))
	refused := s.grab("early")
	s.consume()
	s.wantStatus(refused, domain.Rejected)
	wantRepairs(t, s.reconcile(), "loaded")
	s.wantLevel(2, 0, 1)
	s.placed("b")

	s.start(options{}) // an empty hot store
	wantRepairs(t, s.reconcile(), "loaded")
	s.wantLevel(1, 1, 1)
	s.placed("c")
}

// slow is a ledger whose account takes its time, so that a busy sale moves on
// between the two readings.
type slow struct{ domain.Orders }

func (o slow) Tally(ctx context.Context, sale domain.SaleID) (domain.Tally, error) {
	time.Sleep(50 * time.Millisecond)
	return o.Orders.Tally(ctx, sale)
}

// covers N3
func TestABusySaleDoesNotDrift(t *testing.T) {
	s := open(t, options{total: 100_000})
	s.Engine.Orders = slow{s.store}
	stop := s.consuming()
	grabbing, cancel := context.WithCancel(ctx)
	var buyers sync.WaitGroup
	buyers.Go(func() {
		for i := 0; grabbing.Err() == nil; i++ {
			s.grab(domain.BuyerID(fmt.Sprint("b", i)))
			time.Sleep(2 * time.Millisecond)
		}
	})
	for range 3 {
		report, err := s.Reconcile(ctx, sale.Activity, true)
		if err != nil || !report.Balanced() || len(report.Sales[0].Repairs) != 0 {
			t.Errorf("%v: %+v", err, report.Sales)
		}
	}
	cancel()
	buyers.Wait()
	stop()
}

// racing is an activity ledger in which something happens just before a save.
type racing struct {
	activities
	before func()
}

type activities = domain.Activities

func (r racing) Save(ctx context.Context, a domain.Activity) error {
	r.before()
	return r.activities.Save(ctx, a)
}

// covers S1: a preheat between the check and the save of a change.
func TestAChangeIsRefusedWhenAPreheatOvertakesIt(t *testing.T) {
	s := open(t, options{total: 1})
	now := time.Now()
	draft := domain.Activity{
		ID: 7, Name: "draft", StartsAt: now.Add(-time.Hour), EndsAt: now.Add(time.Hour), PaymentWindow: time.Hour,
		SKUs: []domain.SKU{{ID: 1, Total: 100, PerUserLimit: 1, Segments: 1}},
	}
	s.must(s.SaveActivity(ctx, draft))
	s.Engine.Activities = racing{s.store, func() { s.must(s.Preheat(ctx, 7)) }}
	draft.SKUs = []domain.SKU{{ID: 1, Total: 50, PerUserLimit: 1, Segments: 1}}
	if _, err := s.SaveActivity(ctx, draft); err == nil {
		t.Error("the total changed under a preheated sale")
	}
	s.Engine.Activities = s.store
	if report, err := s.Report(ctx, 7); err != nil || !report.Balanced() {
		t.Errorf("%+v, %v", report, err)
	}
}

// covers N3, S3: a change reached the ledger only, or the hot store lost it.
func TestReconcileSetsTheWholeGate(t *testing.T) {
	s := open(t, options{total: 5, limit: 5})
	activity, err := s.Activities.Activity(ctx, sale.Activity)
	if err != nil {
		t.Fatal(err)
	}
	activity.EndsAt = time.Now().Add(-time.Minute)
	activity.SKUs[0].PerUserLimit = 1
	if err := s.store.Save(ctx, activity); err != nil {
		t.Fatal(err)
	}
	report, err := s.Report(ctx, sale.Activity)
	if err != nil || report.Balanced() || report.Sales[0].Problem == "" {
		t.Errorf("%v: %+v", err, report.Sales)
	}
	wantRepairs(t, s.reconcile(), "gate set")
	if outcome, err := s.Grab(ctx, application.GrabRequest{Sale: sale, Buyer: "late"}); err != nil || outcome.Verdict != domain.SaleEnded {
		t.Errorf("%s, %v", outcome.Verdict, err)
	}
}

// A name is as long as it has characters, in every alphabet.
func TestNamesInEveryAlphabet(t *testing.T) {
	s := open(t, options{total: 1})
	activity, err := s.Activities.Activity(ctx, sale.Activity)
	if err != nil {
		t.Fatal(err)
	}
	activity.Name = strings.Repeat("抢", domain.MaxActivityName)
	activity.SKUs[0].Name = activity.Name
	s.must(s.SaveActivity(ctx, activity))
	if saved, err := s.Activities.Activity(ctx, sale.Activity); err != nil || saved.Name != activity.Name {
		t.Errorf("%q, %v", saved.Name, err)
	}
}

// covers N2: a hot store that lost a sale does not let its orders be archived.
func TestArchiveAsksTheLedgerToo(t *testing.T) {
	s := open(t, options{total: 1})
	s.placed("a")
	s.must(s.SetState(ctx, sale.Activity, "close"))
	s.start(options{}) // an empty hot store
	if _, err := s.Archive(ctx, sale.Activity); !errors.Is(err, domain.ErrHasHolds) {
		t.Errorf("archive: %v", err)
	}
}

// covers T6, Q9: every answer about a request names the same order.
func TestAnUnknownOutcomeNamesTheHeldOrder(t *testing.T) {
	s := open(t, options{total: 1})
	s.Engine = application.New(s.Ports, application.Config{
		Accept: application.AcceptCommitted, AcceptWait: 20 * time.Millisecond, Log: slog.New(slog.DiscardHandler),
	})
	var orders []domain.OrderID
	for range 3 {
		outcome, err := s.Grab(ctx, application.GrabRequest{Sale: sale, Buyer: "a", Request: "r"})
		if !errors.Is(err, domain.ErrUnavailable) {
			t.Fatalf("%s, %v", outcome.Verdict, err)
		}
		orders = append(orders, outcome.Order)
	}
	if _, err := s.Stock.Hold(ctx, sale, orders[0]); err != nil || orders[1] != orders[0] || orders[2] != orders[0] {
		t.Errorf("%v, %v", orders, err)
	}
}
