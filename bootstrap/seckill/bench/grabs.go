package bench

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"seckill/bootstrap/seckill/load"
	"seckill/domain"
)

// timed is one timed part.
type timed struct {
	Entry
	fault string // what is wrong with it; "" when nothing is
}

// failures counts calls without an outcome and keeps the first.
type failures struct {
	count atomic.Int64
	mu    sync.Mutex
	first error
}

func (f *failures) add(err error) {
	f.count.Add(1)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.first == nil {
		f.first = err
	}
}

func (r *rig) claim(sale domain.SaleID, n int64) domain.Claim {
	return domain.Claim{Order: r.ids.OrderID(sale), Buyer: domain.BuyerID("buyer-" + strconv.FormatInt(n, 10)), Quantity: 1}
}

// race lets all callers grab, each for another buyer, while stock lasts. What has
// no answer for as long again after the end, and for some seconds at least, is cut
// off and has no outcome: a caller of a slow strategy may wait for longer than all
// this takes.
func (r *rig) race(ctx context.Context, s strategy) (_ timed, err error) {
	stock, sale, remove, err := r.stage(ctx, s, lots)
	if err != nil {
		return timed{}, err
	}
	defer func() { err = errors.Join(err, remove()) }()
	patience := r.Budget + max(r.Budget, patienceTime)
	racing, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var failed failures
	var refused atomic.Int64
	plan := load.Plan{Calls: r.Grabs, Callers: r.Callers, For: r.Budget}
	measured := load.Run(racing, plan, func(ctx context.Context, _ int, n int64) bool {
		outcomes, err := stock.Reserve(ctx, sale, []domain.Claim{r.claim(sale, n)})
		switch {
		case err != nil:
			failed.add(err)
			return false
		case outcomes[0].Verdict != domain.Accepted:
			refused.Add(1)
			return false
		}
		return true
	})
	run := timed{Entry: Entry{
		Strategy: s.name, Mode: s.mode, Callers: r.Callers, PerSecond: load.Round(measured.PerSecond()),
		P50Ms: load.Round(measured.Latency.Milliseconds(50)), P99Ms: load.Round(measured.Latency.Milliseconds(99)),
		Winning: measured.Counted, Errors: failed.count.Load(),
	}}
	switch {
	case refused.Load() > 0:
		run.fault = fmt.Sprintf("%s %s: %d grabs were refused although there was stock", s.name, s.mode, refused.Load())
	case measured.Counted == 0:
		run.fault = fmt.Sprintf("%s %s: no grab won in %s: %v", s.name, s.mode, patience, failed.first)
	}
	return run, ctx.Err()
}

// check lets callers grab until each has heard that the sale is sold out, and
// compares what was sold with what there was. A slow strategy gets as much
// stock as it sells in the time of a timed part. It returns what is wrong. A
// strategy that takes units back in the middle of a grab may say "sold out" too
// early; how many units it strands so is a figure of its own.
func (r *rig) check(ctx context.Context, s strategy, entry *Entry) (findings []string, err error) {
	entry.Stock = min(r.Stock, max(1, int64(entry.PerSecond*r.Budget.Seconds())))
	stock, sale, remove, err := r.stage(ctx, s, entry.Stock)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, remove()) }()
	var grabs, accepted atomic.Int64
	var heard atomic.Int64 // callers who heard "sold out"
	var failed failures
	deadline := time.Now().Add(checkTime)
	checking, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	var all sync.WaitGroup
	callers := min(int64(r.Callers), max(2*entry.Stock, 16))
	for range callers {
		all.Go(func() {
			for checking.Err() == nil {
				verdict, err := r.insist(checking, stock, sale, r.claim(sale, grabs.Add(1)))
				switch {
				case err != nil:
					failed.add(err)
					return
				case verdict == domain.Accepted:
					accepted.Add(1)
				case verdict == domain.SoldOut:
					heard.Add(1)
					return
				default:
					failed.add(fmt.Errorf("verdict %s", verdict))
					return
				}
			}
		})
	}
	all.Wait()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	late, err := r.leftOver(checking, stock, sale, &grabs, entry.Stock)
	if err != nil {
		failed.add(err)
	}
	name := s.name + " " + s.mode
	audit, err := atRest(checking, stock, sale)
	if err != nil {
		return nil, err
	}
	entry.Grabs, entry.Accepted, entry.FalseSoldOut = grabs.Load(), accepted.Load()+late, late
	// What nobody was told of, but will be placed, is sold too.
	entry.Oversold = max(0, entry.Accepted-entry.Stock, audit.QueuedUnits-entry.Stock)
	switch {
	case entry.Oversold > 0:
		findings = append(findings, fmt.Sprintf("%s: oversold by %d: %d grabs accepted, %d units queued, of %d", name, entry.Oversold, entry.Accepted, audit.QueuedUnits, entry.Stock))
	case failed.first != nil:
		findings = append(findings, fmt.Sprintf("%s: the check did not come to its end in %s: %v", name, checkTime, failed.first))
	case heard.Load() != callers:
		findings = append(findings, fmt.Sprintf("%s: the check did not come to its end in %s", name, checkTime))
	case entry.Accepted != entry.Stock:
		findings = append(findings, fmt.Sprintf("%s: only %d of %d units were sold", name, entry.Accepted, entry.Stock))
	}
	if !audit.Balanced() {
		findings = append(findings, fmt.Sprintf("%s: the account is not balanced after the check: %+v", name, audit))
	}
	return findings, nil
}

// atRest reads the account of a sale that nobody grabs from any more. Strategies
// that put units back after their answer have a moment for that.
func atRest(ctx context.Context, stock domain.Stock, sale domain.SaleID) (domain.Audit, error) {
	ctx, cancel := context.WithTimeout(ctx, restTime)
	defer cancel()
	for {
		audit, err := stock.Audit(context.WithoutCancel(ctx), sale)
		if err != nil || audit.Balanced() {
			return audit, err
		}
		timer := time.NewTimer(50 * time.Millisecond)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return audit, nil
		}
	}
}

// leftOver grabs what is still there after everybody has heard "sold out", alone
// and at rest, and returns how many units that was.
func (r *rig) leftOver(ctx context.Context, stock domain.Stock, sale domain.SaleID, grabs *atomic.Int64, most int64) (units int64, err error) {
	for units <= most {
		verdict, err := r.insist(ctx, stock, sale, r.claim(sale, grabs.Add(1)))
		if err != nil || verdict != domain.Accepted {
			return units, err
		}
		units++
	}
	return units, nil
}

// insist repeats a claim until it has an outcome or ctx ends.
func (r *rig) insist(ctx context.Context, stock domain.Stock, sale domain.SaleID, claim domain.Claim) (domain.Verdict, error) {
	for {
		outcomes, err := stock.Reserve(ctx, sale, []domain.Claim{claim})
		if err == nil {
			return outcomes[0].Verdict, nil
		}
		timer := time.NewTimer(10 * time.Millisecond)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return 0, err
		}
	}
}

// The limit is measured as the script is at its best: full batches, and a call
// on its way while another runs.
const (
	fullBatch = 256
	inFlight  = 2
)

// limit drives the grab script straight, with claims that were made before.
func (r *rig) limit(ctx context.Context) (_ float64, err error) {
	stock, sale, remove, err := r.stage(ctx, strategy{open: openLimit}, lots)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, remove()) }()
	batches := make([][]domain.Claim, max(r.Grabs/fullBatch, 1))
	for i := range batches {
		batches[i] = make([]domain.Claim, fullBatch)
		for k := range batches[i] {
			batches[i][k] = r.claim(sale, int64(i*fullBatch+k))
		}
	}
	ctx, cancel := context.WithTimeout(ctx, r.Budget+graceTime)
	defer cancel()
	var failed failures
	plan := load.Plan{Calls: int64(len(batches)), Callers: inFlight, For: r.Budget}
	measured := load.Run(ctx, plan, func(ctx context.Context, _ int, n int64) bool {
		outcomes, err := stock.Reserve(ctx, sale, batches[n])
		if err == nil {
			for _, outcome := range outcomes {
				if outcome.Verdict != domain.Accepted {
					err = fmt.Errorf("a grab was refused although there was stock: %s", outcome.Verdict)
				}
			}
		}
		if err != nil {
			failed.add(err)
		}
		return err == nil
	})
	if failed.first != nil {
		return 0, failed.first
	}
	return measured.PerSecond() * fullBatch, ctx.Err()
}
