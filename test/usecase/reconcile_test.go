package usecase

import (
	"errors"
	"testing"
	"time"

	"seckill/application"
	"seckill/domain"
)

func (s *shop) reconcile() application.SaleReport {
	s.t.Helper()
	report, err := s.Reconcile(ctx, sale.Activity, true)
	if err != nil {
		s.t.Fatal(err)
	}
	return report.Sales[0]
}

func wantRepairs(t *testing.T, r application.SaleReport, want ...string) {
	t.Helper()
	if len(r.Repairs) != len(want) {
		t.Fatalf("repairs: %+v, want %v", r.Repairs, want)
	}
	for i, what := range want {
		if r.Repairs[i].What != what {
			t.Fatalf("repairs: %+v, want %v", r.Repairs, want)
		}
	}
}

// covers N3
func TestReconcileLeavesWhatIsInFlight(t *testing.T) {
	s := open(t, options{total: 10})
	s.must(s.Pay(ctx, s.placed("payer"), "", "p"))
	s.placed("holder")
	// Decided, but the hot store has not heard of it; and queued.
	s.must(s.store.Pay(ctx, s.placed("settling"), "p"))
	s.must(s.store.Cancel(ctx, s.placed("releasing")))
	s.grab("queued")
	report, err := s.Report(ctx, sale.Activity)
	if err != nil {
		t.Fatal(err)
	}
	r := report.Sales[0]
	if r.Level.Queued != 1 || r.Ledger.Settling != 1 || r.Ledger.Releasing != 1 {
		t.Fatalf("not in flight: %+v", r)
	}
	if !r.Balanced || r.Drift != 0 {
		t.Errorf("%+v", r)
	}
	wantRepairs(t, s.reconcile())
}

// covers N3: the queue entry of a hold is gone.
func TestReconcileQueuesAnOrphanAgain(t *testing.T) {
	s := open(t, options{total: 3})
	id := s.grab("a")
	deliveries, err := s.Queue.Receive(ctx, 0, 10)
	if err != nil || len(deliveries) != 1 {
		t.Fatalf("%d deliveries, %v", len(deliveries), err)
	}
	if err := s.Queue.Ack(ctx, deliveries...); err != nil {
		t.Fatal(err)
	}
	wantRepairs(t, s.reconcile(), "requeued")
	s.consume()
	s.wantStatus(id, domain.Pending)
	s.wantLevel(2, 1, 0)
}

// covers P4, N3: the ledger decided, and the effect was lost on its way.
func TestReconcileAppliesWhatTheLedgerDecided(t *testing.T) {
	for name, c := range map[string]struct {
		decide func(s *shop, id domain.OrderID) (domain.Effect, error)
		repair string
		level  [3]int64
	}{
		"cancelled": {func(s *shop, id domain.OrderID) (domain.Effect, error) { return s.store.Cancel(ctx, id) }, "released", [3]int64{2, 0, 0}},
		"paid":      {func(s *shop, id domain.OrderID) (domain.Effect, error) { return s.store.Pay(ctx, id, "p") }, "settled", [3]int64{1, 0, 1}},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, options{total: 2})
			effect, err := c.decide(s, s.placed("a"))
			if err != nil {
				t.Fatal(err)
			}
			if err := s.store.Applied(ctx, effect.ID); err != nil {
				t.Fatal(err)
			}
			wantRepairs(t, s.reconcile(), c.repair)
			s.wantLevel(c.level[0], c.level[1], c.level[2])
		})
	}
}

// covers N3: the ledger has an order that the hot store lost.
func TestReconcileAdoptsALostHold(t *testing.T) {
	s := open(t, options{total: 3})
	level, err := s.Stock.Level(ctx, sale)
	if err != nil {
		t.Fatal(err)
	}
	lost := domain.NewOrderID(sale, "lost")
	if _, err := s.store.Place(ctx, []domain.Order{{ID: lost, Sale: sale, Buyer: "a", Quantity: 1, Epoch: level.Epoch}}); err != nil {
		t.Fatal(err)
	}
	wantRepairs(t, s.reconcile(), "adopted")
	s.wantLevel(2, 1, 0)
	s.must(s.Pay(ctx, lost, "a", "p"))
	s.wantLevel(2, 0, 1)
}

// covers P5, N3: a late payment took the units and died before the ledger decided.
func TestReconcileReleasesAnAbandonedLateHold(t *testing.T) {
	s := open(t, options{total: 1, pay: time.Millisecond})
	id := s.placed("a")
	s.expire(1)
	outcome, err := s.Stock.Reacquire(ctx, sale, domain.Claim{Order: id, Buyer: "a", Quantity: 1})
	if err != nil || outcome.Verdict != domain.Accepted {
		t.Fatalf("%s, %v", outcome.Verdict, err)
	}
	wantRepairs(t, s.reconcile(), "released")
	s.wantLevel(1, 0, 0)
}

// expire waits until the database's clock has passed the deadlines.
func (s *shop) expire(want int) {
	s.t.Helper()
	closed := 0
	for deadline := time.Now().Add(10 * time.Second); closed < want; time.Sleep(time.Millisecond) {
		n, err := s.Expire(ctx)
		if err != nil || time.Now().After(deadline) {
			s.t.Fatalf("%d of %d orders expired, %v", closed, want, err)
		}
		closed += n
	}
}

// covers N3, N7: the process's memory is gone; the ledger has everything.
func TestRebuildAfterARestart(t *testing.T) {
	s := open(t, options{total: 10, limit: 2})
	s.must(s.Pay(ctx, s.placed("payer"), "", "p"))
	s.must(s.Cancel(ctx, s.placed("canceller"), ""))
	pending := s.placed("holder")
	s.must(s.Grab(ctx, application.GrabRequest{Sale: sale, Buyer: "asker", Request: "r-1", Quantity: 2}))
	s.consume()
	s.wantLevel(6, 3, 1)

	s.start(options{})
	if outcome, err := s.Grab(ctx, application.GrabRequest{Sale: sale, Buyer: "early"}); err != nil || outcome.Verdict != domain.NotReady {
		t.Fatalf("before the rebuild: %s, %v", outcome.Verdict, err)
	}
	if err := s.Rebuild(ctx); err != nil {
		t.Fatal(err)
	}
	s.wantLevel(6, 3, 1)
	replay, err := s.Grab(ctx, application.GrabRequest{Sale: sale, Buyer: "asker", Request: "r-1", Quantity: 2})
	if err != nil || !replay.Replayed {
		t.Errorf("replay after the rebuild: %+v, %v", replay, err)
	}
	if outcome, _ := s.Grab(ctx, application.GrabRequest{Sale: sale, Buyer: "asker"}); outcome.Verdict != domain.LimitReached {
		t.Errorf("a buyer's units are forgotten: %s", outcome.Verdict)
	}
	s.must(s.Pay(ctx, pending, "", "p-2"))
	s.wantLevel(6, 2, 2)
	if err := s.Rebuild(ctx); err != nil { // nothing to do: the sale is there
		t.Fatal(err)
	}
	s.wantLevel(6, 2, 2)
}

// covers S1
func TestPreheatRefuses(t *testing.T) {
	s := open(t, options{total: 2})
	s.must(s.Preheat(ctx, sale.Activity)) // nothing held: twice is once
	s.wantLevel(2, 0, 0)
	id := s.grab("a")
	if _, err := s.Preheat(ctx, sale.Activity); !errors.Is(err, domain.ErrHasHolds) {
		t.Errorf("with a queued order: %v", err)
	}
	s.consume()
	if _, err := s.Preheat(ctx, sale.Activity); !errors.Is(err, domain.ErrHasHolds) {
		t.Errorf("with a hold: %v", err)
	}
	s.wantLevel(1, 1, 0)
	s.must(s.Pay(ctx, id, "", "p"))
	s.must(s.Preheat(ctx, sale.Activity)) // sold units stay sold
	s.wantLevel(1, 0, 1)
	if outcome, _ := s.Grab(ctx, application.GrabRequest{Sale: sale, Buyer: "a"}); outcome.Verdict != domain.LimitReached {
		t.Errorf("who has bought the limit may grab again: %s", outcome.Verdict)
	}
}
