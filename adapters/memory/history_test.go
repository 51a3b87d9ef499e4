package memory_test

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"seckill/domain"
	"seckill/test/conformance"
)

func TestHistory(t *testing.T) {
	for seed := range int64(30) {
		conformance.History(t, seed, 500, openWorld(1)(t), openWorld(3)(t))
	}
}

// TestHistoryFindsABrokenStock proves that the history can fail: each of these
// stores breaks one promise of the contract.
func TestHistoryFindsABrokenStock(t *testing.T) {
	for name, broken := range map[string]func(*brokenStock){
		"a repeated release frees again":             func(b *brokenStock) { b.releaseTwice = true },
		"a replay is not told":                       func(b *brokenStock) { b.hideReplay = true },
		"a batch shows the stock of its first claim": func(b *brokenStock) { b.stockOff = true },
		"a closed gate is taken for a paused one":    func(b *brokenStock) { b.misjudge = true },
		"a release is forgotten":                     func(b *brokenStock) { b.forgetRelease = true },
		"an old fence is accepted":                   func(b *brokenStock) { b.unfenced = true },
		"no holds are listed":                        func(b *brokenStock) { b.listNothing = true },
		"a second hold cannot be taken again":        func(b *brokenStock) { b.burnLate = true },
		"a tombstone of a second hold is forgotten":  func(b *brokenStock) { b.digUp = true },
		"a released hold is not adopted":             func(b *brokenStock) { b.leaveReleased = true },
		"closed orders are not loaded":               func(b *brokenStock) { b.loadLive = true },
	} {
		t.Run(name, func(t *testing.T) {
			good, bad := openWorld(1)(t), openWorld(1)(t)
			stock := &brokenStock{Stock: bad.Stock}
			broken(stock)
			bad.Stock = stock
			report := failureOf(t, func(t testing.TB) { conformance.History(t, 1, 2000, good, bad) })
			if !strings.Contains(report, "seed 1, step ") {
				t.Fatalf("the history reports %q, want a difference with its seed", report)
			}
		})
	}
}

// TestHistoryFindsAQueueOutOfOrder does the same for the queue.
func TestHistoryFindsAQueueOutOfOrder(t *testing.T) {
	good, bad := openWorld(1)(t), openWorld(1)(t)
	bad.Queue = &lastFirstQueue{OrderQueue: bad.Queue}
	report := failureOf(t, func(t testing.TB) { conformance.History(t, 1, 2000, good, bad) })
	if !strings.Contains(report, "seed 1, step ") {
		t.Fatalf("the history reports %q, want a difference with its seed", report)
	}
}

// brokenStock is a Stock that breaks one promise.
type brokenStock struct {
	domain.Stock
	releaseTwice, hideReplay, stockOff, misjudge, forgetRelease, unfenced, listNothing bool
	burnLate, digUp, leaveReleased, loadLive                                           bool
	releases                                                                           int
}

func (b *brokenStock) Reserve(ctx context.Context, sale domain.SaleID, claims []domain.Claim) ([]domain.Outcome, error) {
	outcomes, err := b.Stock.Reserve(ctx, sale, claims)
	for i := range outcomes {
		if b.hideReplay {
			outcomes[i].Replayed = false
		}
		if b.stockOff && i > 0 {
			outcomes[i].Before = outcomes[0].Before
		}
		if b.misjudge && outcomes[i].Verdict == domain.SaleEnded {
			outcomes[i].Verdict = domain.SalePaused
		}
	}
	return outcomes, err
}

func (b *brokenStock) Release(ctx context.Context, sale domain.SaleID, holds ...domain.OrderID) (int64, error) {
	b.releases++
	if b.forgetRelease && b.releases%10 == 0 {
		return 0, nil
	}
	hold, _ := b.Hold(ctx, sale, holds[0])
	units, err := b.Stock.Release(ctx, sale, holds...)
	if b.releaseTwice && hold.State == domain.Released {
		units += hold.Quantity
	}
	return units, err
}

func (b *brokenStock) SetGate(ctx context.Context, sale domain.SaleID, gate domain.Gate, fence int64) error {
	if b.unfenced {
		fence = domain.MaxInteger
	}
	return b.Stock.SetGate(ctx, sale, gate, fence)
}

func (b *brokenStock) Holds(ctx context.Context, sale domain.SaleID, cursor string) ([]domain.Hold, string, error) {
	if b.listNothing {
		return nil, "", nil
	}
	return b.Stock.Holds(ctx, sale, cursor)
}

func (b *brokenStock) Reacquire(ctx context.Context, sale domain.SaleID, claim domain.Claim) (domain.Outcome, error) {
	late, _ := b.Hold(ctx, sale, claim.Order.Late())
	outcome, err := b.Stock.Reacquire(ctx, sale, claim)
	switch {
	case b.burnLate && late.State == domain.Released:
		outcome.Verdict = domain.Withdrawn
	case b.digUp && outcome.Verdict == domain.Withdrawn:
		outcome.Verdict = domain.SoldOut
	}
	return outcome, err
}

func (b *brokenStock) Adopt(ctx context.Context, sale domain.SaleID, hold domain.Hold, fence int64) (int64, error) {
	if old, _ := b.Hold(ctx, sale, hold.Order); b.leaveReleased && old.State == domain.Released {
		return 0, nil
	}
	return b.Stock.Adopt(ctx, sale, hold, fence)
}

func (b *brokenStock) Preheat(ctx context.Context, load domain.Load) error {
	if b.loadLive {
		load.Holds = slices.DeleteFunc(slices.Clone(load.Holds), func(hold domain.Hold) bool { return hold.State == domain.Released })
	}
	return b.Stock.Preheat(ctx, load)
}

// lastFirstQueue is not first in, first out.
type lastFirstQueue struct{ domain.OrderQueue }

func (q *lastFirstQueue) Receive(ctx context.Context, partition, limit int) ([]domain.Delivery, error) {
	deliveries, err := q.OrderQueue.Receive(ctx, partition, limit)
	slices.Reverse(deliveries)
	return deliveries, err
}

// failureOf runs a test that is expected to fail and returns its report.
func failureOf(t *testing.T, test func(testing.TB)) string {
	t.Helper()
	r := &recorder{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		test(r)
	}()
	<-done
	return r.report
}

// recorder keeps a failure to itself.
type recorder struct {
	testing.TB
	report string
}

func (r *recorder) Helper() {}

func (r *recorder) Fatalf(format string, args ...any) {
	r.report = fmt.Sprintf(format, args...)
	runtime.Goexit()
}
