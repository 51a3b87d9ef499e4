package redisstock_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"

	"seckill/adapters/redisstock"
	"seckill/domain"
	"seckill/test/conformance"
)

// segmented loads every sale in three segments. The stock before and after a
// claim is told of the whole sale, as the suite wants it; it asks where nobody
// else is at work.
type segmented struct{ *redisstock.Stock }

func (s segmented) Reserve(ctx context.Context, id domain.SaleID, claims []domain.Claim) ([]domain.Outcome, error) {
	before, err1 := s.Level(ctx, id)
	outcomes, err := s.Stock.Reserve(ctx, id, claims)
	if err1 != nil {
		return outcomes, err
	}
	for i := range outcomes {
		outcomes[i].Before, outcomes[i].After = before.Available, before.Available
		if outcomes[i].Verdict == domain.Accepted && !outcomes[i].Replayed {
			outcomes[i].After -= claims[i].Quantity
		}
		before.Available = outcomes[i].After
	}
	return outcomes, err
}

func (s segmented) Reacquire(ctx context.Context, id domain.SaleID, claim domain.Claim) (domain.Outcome, error) {
	before, err1 := s.Level(ctx, id)
	outcome, err := s.Stock.Reacquire(ctx, id, claim)
	if err1 == nil && err == nil {
		outcome.Before, outcome.After = before.Available, before.Available
		if outcome.Verdict == domain.Accepted && !outcome.Replayed {
			outcome.After -= claim.Quantity
		}
	}
	return outcome, err
}

func (s segmented) Preheat(ctx context.Context, load domain.Load) error {
	load.Segments = 3
	return s.Stock.Preheat(ctx, load)
}

// A split stock keeps the same contract, to the unit.
// covers S11
func TestStockConformanceInSegments(t *testing.T) {
	split := func(t *testing.T) conformance.StockWorld {
		w := open(t).conformance(t)
		w.Stock = segmented{w.Stock.(*redisstock.Stock)}
		return w
	}
	conformance.Stock(t, split)
	conformance.StockAtEveryMoment(t, split)
}

func preheatSegments(t testing.TB, stock *redisstock.Stock, id domain.SaleID, total int64, segments int) {
	t.Helper()
	must(t, stock.Seal(t.Context(), id, 1, true))
	must(t, stock.Preheat(t.Context(), domain.Load{Sale: id, Epoch: 1, Gate: gate(), Total: total, Fence: 1, Segments: segments}))
}

// Several nodes sell a split stock to the last unit, and nobody is told "sold
// out" before; then units come back at a few homes, and are sold from all.
// covers S11
func TestNoFalseSoldOutInSegments(t *testing.T) {
	for _, segments := range []int{1, 4, 16} {
		t.Run(fmt.Sprint(segments), func(t *testing.T) {
			w := open(t)
			config := redisstock.Config{Partitions: 16}
			nodes := []*redisstock.Stock{w.another(t, config), w.another(t, config), w.another(t, config)}
			const total, buyers = 300, 900
			preheatSegments(t, nodes[0], sale, total, segments)
			orders := sell(t, nodes, buyers, 0)
			if len(orders) != total {
				t.Fatalf("%d accepted, want %d", len(orders), total)
			}
			back := orders[:50]
			if n, err := nodes[1].Release(t.Context(), sale, back...); n != 50 || err != nil {
				t.Fatalf("released %d, %v", n, err)
			}
			if orders = sell(t, nodes, buyers, buyers); len(orders) != 50 {
				t.Errorf("%d accepted after 50 came back", len(orders))
			}
			audit, err := nodes[2].Audit(t.Context(), sale)
			if err != nil || !audit.Balanced() || audit.Level.Total != total || audit.Level.Held != total {
				t.Errorf("%+v, %v", audit, err)
			}
		})
	}
}

// sell has buyers grab a unit each from one of the nodes, all at once.
func sell(t *testing.T, nodes []*redisstock.Stock, buyers, from int) []domain.OrderID {
	t.Helper()
	accepted := make([]domain.OrderID, buyers)
	crowd(buyers, func(n int) {
		outcomes, err := nodes[n%len(nodes)].Reserve(t.Context(), sale, []domain.Claim{numbered(int64(from + n))})
		switch {
		case err != nil:
			t.Error(err)
		case outcomes[0].Verdict == domain.Accepted:
			accepted[n] = outcomes[0].Order
		case outcomes[0].Verdict != domain.SoldOut:
			t.Errorf("verdict is %v", outcomes[0].Verdict)
		}
	})
	return slices.DeleteFunc(accepted, func(id domain.OrderID) bool { return id == "" })
}

// A claim for more units than any segment has gathers them.
func TestUnitsAreGathered(t *testing.T) {
	w := open(t)
	generous := gate()
	generous.PerUserLimit = 100
	must(t, w.Seal(t.Context(), sale, 1, true))
	must(t, w.Preheat(t.Context(), domain.Load{Sale: sale, Epoch: 1, Gate: generous, Total: 9, Fence: 1, Segments: 3}))
	claim := numbered(1)
	claim.Quantity = 8
	outcomes, err := w.Reserve(t.Context(), sale, []domain.Claim{claim})
	if err != nil || outcomes[0].Verdict != domain.Accepted {
		t.Fatalf("%+v, %v", outcomes, err)
	}
	claim = numbered(2)
	claim.Quantity = 2
	outcomes, err = w.Reserve(t.Context(), sale, []domain.Claim{claim})
	if err != nil || outcomes[0].Verdict != domain.SoldOut || outcomes[0].After != 1 {
		t.Fatalf("%+v, %v; want sold out with 1 left", outcomes, err)
	}
	must(t, w.SetTotal(t.Context(), sale, 9, 8, 1))
	level, err := w.Level(t.Context(), sale)
	if err != nil || level.Total != 8 || level.Available != 0 || level.Held != 8 {
		t.Errorf("%+v, %v", level, err)
	}
}

// A process that dies after any step of a loan loses no unit: the account shows
// it, and whoever needs it gets it.
// covers S11
func TestADeathInTheMiddleOfBorrowing(t *testing.T) {
	for steps := 1; steps <= 3; steps++ {
		t.Run(fmt.Sprintf("after step %d", steps), func(t *testing.T) {
			w := open(t)
			preheatSegments(t, w.Stock, sale, 12, 3)
			for lender := range 3 { // all loans at once, and each of them twice
				for borrower := range 3 {
					if lender != borrower {
						must(t, redisstock.Lend(t.Context(), w.Stock, sale, lender, borrower, 1, steps))
						must(t, redisstock.Lend(t.Context(), w.Stock, sale, lender, borrower, 1, steps))
					}
				}
			}
			survivor := w.another(t, redisstock.Config{})
			orders := sell(t, []*redisstock.Stock{survivor}, 40, 0)
			audit, err := survivor.Audit(t.Context(), sale)
			if len(orders) != 12 || err != nil || !audit.Balanced() || audit.Level.Total != 12 || audit.Level.Held != 12 {
				t.Errorf("%d accepted, %+v, %v", len(orders), audit, err)
			}
		})
	}
}

// A loan that was on its way when the sale was loaded anew is part of the load.
func TestALoanDoesNotOutliveALoad(t *testing.T) {
	w := open(t)
	preheatSegments(t, w.Stock, sale, 12, 3)
	late := redisstock.LateLoan(t.Context(), t, w.Stock, sale, 0, 1, 2)
	must(t, w.Seal(t.Context(), sale, 2, true))
	if err := late(); !errors.Is(err, domain.ErrNotReady) {
		t.Errorf("a loan to a sealed segment: %v", err)
	}
	must(t, w.Preheat(t.Context(), domain.Load{Sale: sale, Epoch: 2, Gate: gate(), Total: 12, Fence: 2, Segments: 3}))
	if err := late(); !errors.Is(err, domain.ErrConflict) {
		t.Errorf("a loan of an earlier load: %v", err)
	}
	level, err := w.Level(t.Context(), sale)
	if err != nil || level.Total != 12 || level.Available != 12 {
		t.Errorf("%+v, %v", level, err)
	}
}

// The account adds up at every moment, while segments borrow, sell and take back.
// covers S11, N1
func TestTheAccountOfSegmentsAddsUpAtAnyTime(t *testing.T) {
	w := open(t)
	generous := gate()
	generous.PerUserLimit = 100
	must(t, w.Seal(t.Context(), sale, 1, true))
	must(t, w.Preheat(t.Context(), domain.Load{Sale: sale, Epoch: 1, Gate: generous, Total: 60, Fence: 1, Segments: 3}))
	var done atomic.Bool
	crowd(9, func(n int) {
		if n == 0 {
			for !done.Load() {
				level, err := w.Level(t.Context(), sale)
				if err != nil || !level.Balanced() || level.Total != 60 {
					t.Errorf("%+v, %v", level, err)
					return
				}
			}
			return
		}
		defer done.Store(true)
		random := rand.New(rand.NewPCG(uint64(n), 7))
		for i := range 150 {
			claim := numbered(int64(n*1000 + i))
			claim.Quantity = 1 + random.Int64N(9)
			outcomes, err := w.Reserve(t.Context(), sale, []domain.Claim{claim})
			if err != nil {
				t.Error(err)
				return
			}
			if outcomes[0].Verdict == domain.Accepted {
				if _, err := w.Release(t.Context(), sale, claim.Order); err != nil {
					t.Error(err)
					return
				}
			}
		}
	})
}

// A node that has seen nothing of a sale finds its segments, for each method.
func TestANewNodeFindsTheSegments(t *testing.T) {
	w := open(t)
	preheatSegments(t, w.Stock, sale, 30, 3)
	orders := sell(t, []*redisstock.Stock{w.Stock}, 12, 0)
	fresh := func() *redisstock.Stock { return w.another(t, redisstock.Config{}) }
	if n, err := fresh().Release(t.Context(), sale, orders[:6]...); n != 6 || err != nil {
		t.Errorf("released %d, %v", n, err)
	}
	if n, err := fresh().Settle(t.Context(), sale, orders[6:]...); n != 6 || err != nil {
		t.Errorf("settled %d, %v", n, err)
	}
	paused := gate()
	paused.State = domain.Paused
	must(t, fresh().SetGate(t.Context(), sale, paused, 2))
	if got, err := fresh().Gate(t.Context(), sale); err != nil || !got.Same(paused) {
		t.Errorf("gate is %+v, %v", got, err)
	}
	for n := range int64(12) {
		outcomes, err := fresh().Reserve(t.Context(), sale, []domain.Claim{numbered(100 + n)})
		if err != nil || outcomes[0].Verdict != domain.SalePaused {
			t.Errorf("%+v, %v", outcomes, err)
		}
	}
	must(t, fresh().Seal(t.Context(), sale, 3, true))
	if _, err := fresh().Level(t.Context(), sale); !errors.Is(err, domain.ErrNotReady) {
		t.Errorf("a sealed sale has a level: %v", err)
	}
}

// A loan that begins and ends between the replies of two servers is in the
// account all the same. On a cluster each server answers in its own time.
// covers S11, N1
func TestALoanBetweenTwoReplies(t *testing.T) {
	w := open(t)
	other := w.another(t, redisstock.Config{})
	preheatSegments(t, other, sale, 12, 3)
	hook := &betweenReplies{}
	slow := redis.NewClient(w.client.(*redis.Client).Options())
	t.Cleanup(func() { _ = slow.Close() })
	slow.AddHook(hook)
	stock := w.another(t, redisstock.Config{Client: slow})
	if _, err := stock.Level(t.Context(), sale); err != nil { // now it knows the segments
		t.Fatal(err)
	}
	for lender := range 3 {
		for borrower := range 3 {
			if lender == borrower {
				continue
			}
			for reading := 1; reading <= 2; reading++ {
				hook.next(map[[2]int]func(){{reading, 1}: func() {
					must(t, redisstock.Lend(t.Context(), other, sale, lender, borrower, 1, 3))
				}})
				level, err := stock.Level(t.Context(), sale)
				if err != nil || level.Total != 12 || level.Available != 12 {
					t.Errorf("from %d to %d in reading %d: %+v, %v", lender, borrower, reading, level, err)
				}
				if len(hook.do) > 0 {
					t.Fatal("nothing was lent")
				}
			}
		}
	}
}

// There is a free unit all the time, and never where it is looked for just then.
// covers S11
func TestAUnitThatMovesIsNotSoldOut(t *testing.T) {
	for _, how := range []string{"lent", "given back"} {
		t.Run(how, func(t *testing.T) { unitThatMoves(t, how) })
	}
}

func unitThatMoves(t *testing.T, how string) {
	w := open(t)
	other := w.another(t, redisstock.Config{})
	hook := &betweenReplies{}
	slow := redis.NewClient(w.client.(*redis.Client).Options())
	t.Cleanup(func() { _ = slow.Close() })
	slow.AddHook(hook)
	stock := w.another(t, redisstock.Config{Client: slow})
	n := int64(0)
	grab := func(stock domain.Stock, home int) domain.OrderID {
		t.Helper()
		for redisstock.Home(t, other, sale, numbered(n).Buyer) != home {
			n++
		}
		outcomes, err := stock.Reserve(t.Context(), sale, []domain.Claim{numbered(n)})
		n++
		if err != nil || outcomes[0].Verdict != domain.Accepted {
			t.Fatalf("a unit was free: %+v, %v", outcomes, err)
		}
		return outcomes[0].Order
	}
	give := func(id domain.OrderID) {
		t.Helper()
		if _, err := other.Release(t.Context(), sale, id); err != nil {
			t.Fatal(err)
		}
	}
	preheatSegments(t, other, sale, 2, 2)
	first := grab(other, 0) // so there is a unit in segment 1, and none in 0
	there := func() { must(t, redisstock.Lend(t.Context(), other, sale, 1, 0, 1, 3)) }
	back := func() { must(t, redisstock.Lend(t.Context(), other, sale, 0, 1, 1, 3)) }
	if how == "given back" {
		var second domain.OrderID
		there = func() { give(first); second = grab(other, 1) }
		back = func() { give(second); first = grab(other, 0) }
	}
	hook.next(map[[2]int]func(){{1, 1}: there, {2, 0}: back, {2, 1}: there})
	grab(stock, 0)
	if len(hook.do) > 0 {
		t.Error("nothing has moved")
	}
}

// betweenReplies sends the commands of a pipeline one by one, and does something
// at the moments {pipeline, replies so far}, with pipelines from 1.
type betweenReplies struct {
	pipelines int
	do        map[[2]int]func()
}

func (h *betweenReplies) next(do map[[2]int]func()) { h.pipelines, h.do = 0, do }

func (*betweenReplies) DialHook(next redis.DialHook) redis.DialHook          { return next }
func (*betweenReplies) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

func (h *betweenReplies) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		h.pipelines++
		for i, cmd := range cmds {
			moment := [2]int{h.pipelines, i}
			if do := h.do[moment]; do != nil {
				delete(h.do, moment)
				do()
			}
			if err := next(ctx, []redis.Cmder{cmd}); err != nil {
				return err
			}
		}
		return nil
	}
}

// A release that was cut off after some segments is finished by its repeat.
// covers P3
func TestACutOffReleaseIsFinishedByItsRepeat(t *testing.T) {
	w := open(t)
	preheatSegments(t, w.Stock, sale, 30, 3)
	for n := range int64(9) {
		claim := numbered(n)
		must(t, redisstock.ReleaseIn(t.Context(), w.Stock, sale, int(n)%3, claim.Order)) // and no further
		if _, err := w.Release(t.Context(), sale, claim.Order); err != nil {
			t.Fatal(err)
		}
		outcomes, err := w.Reserve(t.Context(), sale, []domain.Claim{claim})
		if err != nil || outcomes[0].Verdict != domain.Withdrawn {
			t.Errorf("a late grab: %+v, %v", outcomes, err)
		}
	}
}

// A sale that is loaded split while "incr" is about to take from it gets back what
// was taken.
// covers S11 S12
func TestASaleThatIsSplitInTheMiddleOfAGrab(t *testing.T) {
	for step := range 2 { // before the taking, before the recording
		t.Run(fmt.Sprint(step), func(t *testing.T) {
			w := open(t)
			w.preheat(t)
			client := redis.NewClient(w.client.(*redis.Client).Options())
			t.Cleanup(func() { _ = client.Close() })
			writes := 0
			client.AddHook(beforeWrites(func() {
				if writes++; writes != step+1 {
					return
				}
				must(t, w.Seal(t.Context(), sale, 3, true))
				must(t, w.Preheat(t.Context(), domain.Load{Sale: sale, Epoch: 2, Gate: gate(), Total: 90, Fence: 3, Segments: 3}))
			}))
			incr, err := redisstock.NewIncr(redisstock.Config{Client: client, Prefix: w.prefix, Partitions: 3})
			must(t, err)
			if _, err := incr.Reserve(t.Context(), sale, []domain.Claim{claim("a", "alice", 2)}); !isUnavailable(err) {
				t.Errorf("a sale that is split by now: %v", err)
			}
			if level := w.level(t); level.Available != 90 || level.Held != 0 {
				t.Errorf("level is %+v", level)
			}
			if audit := w.audit(t); !audit.Balanced() {
				t.Errorf("audit is %+v", audit)
			}
		})
	}
}

// beforeWrites is called before each transaction that changes a hash.
type beforeWrites func()

func (beforeWrites) DialHook(next redis.DialHook) redis.DialHook { return next }

func (beforeWrites) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

func (f beforeWrites) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if slices.ContainsFunc(cmds, func(cmd redis.Cmder) bool { return strings.HasPrefix(cmd.Name(), "hset") }) {
			f()
		}
		return next(ctx, cmds)
	}
}
