package application

import (
	"context"
	"errors"
	"fmt"
	"time"

	"seckill/domain"
)

// repair works through the differences of one sale. The ledger is right where
// it has decided. Suspects are looked at again after a grace, under the sale's
// lock, and each change is one that is harmless when it is not needed: a
// release, a settlement or a requeue by order id has effect once; Adopt,
// Correct and the gate carry the lock's fence. Live stock is never overwritten.
func (e *Engine) repair(ctx context.Context, report SaleReport) (repairs []Repair, err error) {
	sale := report.Sale
	switch report.Problem {
	case problemMissing, problemEpoch, problemCorrupt:
		loaded, err := e.reload(ctx, sale, report.Problem == problemCorrupt)
		if err == nil && loaded {
			repairs = append(repairs, Repair{What: "loaded", Units: report.Ledger.Total})
		}
		return repairs, err
	case problemGate:
		if err := e.syncGate(ctx, sale); err != nil {
			return nil, err
		}
		repairs = append(repairs, Repair{What: "gate set"})
	}
	suspects, err := e.suspects(ctx, sale)
	if err != nil {
		return repairs, err
	}
	lost, err := e.lostHolds(ctx, sale)
	if err != nil {
		return repairs, err
	}
	if len(suspects)+len(lost) > 0 {
		// What was only in flight is where it belongs after the grace.
		select {
		case <-time.After(e.cfg.Grace):
		case <-ctx.Done():
			return repairs, ctx.Err()
		}
	}
	var total error
	err = e.Lock.Do(ctx, e.lockKey(sale), e.cfg.LockTTL, func(ctx context.Context, lease domain.Lease) error {
		var short bool
		for _, step := range []func() ([]Repair, error){
			func() ([]Repair, error) {
				// The total goes by the counters, so they come first; and again, where
				// they do not fit into the total that there is.
				done, err := e.repairCounters(ctx, sale, lease.Fence.Number)
				if short = errors.Is(err, domain.ErrUnbalanced); short {
					return nil, nil
				}
				return done, err
			},
			func() ([]Repair, error) {
				// A total that cannot be had yet keeps nothing else from being repaired.
				done, err := e.repairTotal(ctx, sale, lease)
				if errors.Is(err, domain.ErrUnbalanced) || errors.Is(err, domain.ErrConflict) {
					total, err = err, nil
				}
				return done, err
			},
			func() ([]Repair, error) {
				if !short {
					return nil, nil
				}
				return e.repairCounters(ctx, sale, lease.Fence.Number)
			},
			func() ([]Repair, error) { return e.repairHolds(ctx, sale, suspects) },
			func() ([]Repair, error) { return e.repairLost(ctx, sale, lost, lease.Fence.Number) },
		} {
			done, err := step()
			repairs = append(repairs, done...)
			if err != nil {
				return err
			}
		}
		return nil
	})
	return repairs, errors.Join(err, total)
}

// suspects are the holds that the ledger does not see as pending.
func (e *Engine) suspects(ctx context.Context, sale domain.SaleID) (map[domain.OrderID]domain.Hold, error) {
	suspects := map[domain.OrderID]domain.Hold{}
	cursor := ""
	for {
		page, next, err := e.Stock.Holds(ctx, sale, cursor)
		if err != nil {
			return nil, err
		}
		orders, err := e.ordersOf(ctx, page)
		if err != nil {
			return nil, err
		}
		for _, hold := range page {
			order, found := orders[hold.Order.Order()]
			if !found || order.Status != domain.Pending || order.Hold != hold.Order {
				suspects[hold.Order] = hold
			}
		}
		if next == "" {
			return suspects, nil
		}
		cursor = next
	}
}

func (e *Engine) ordersOf(ctx context.Context, holds []domain.Hold) (map[domain.OrderID]domain.Order, error) {
	byID := map[domain.OrderID]domain.Order{}
	for start := 0; start < len(holds); start += pollMax {
		var ids []domain.OrderID
		for _, hold := range holds[start:min(start+pollMax, len(holds))] {
			ids = append(ids, hold.Order.Order())
		}
		orders, err := e.Orders.Find(ctx, ids...)
		if err != nil {
			return nil, err
		}
		for _, order := range orders {
			byID[order.ID] = order
		}
	}
	return byID, nil
}

// repairHolds has each suspect follow the ledger: decided orders are settled or
// released, holds that no order and no queue entry stands for are queued again.
// A late hold was never queued: without its order it is released.
func (e *Engine) repairHolds(ctx context.Context, sale domain.SaleID, suspects map[domain.OrderID]domain.Hold) ([]Repair, error) {
	var holds []domain.Hold
	for _, hold := range suspects {
		holds = append(holds, hold)
	}
	orders, err := e.ordersOf(ctx, holds)
	if err != nil {
		return nil, err
	}
	var repairs []Repair
	var orphans []domain.Hold
	for _, hold := range holds {
		order, found := orders[hold.Order.Order()]
		switch {
		case !found && hold.Order == hold.Order.Order():
			orphans = append(orphans, hold)
			continue
		case order.Status == domain.Pending && order.Hold == hold.Order:
			continue // was in flight
		}
		what, change := "released", e.giveBack
		if order.Status == domain.Paid && order.Hold == hold.Order {
			what, change = "settled", e.Stock.Settle
		}
		units, err := change(ctx, sale, hold.Order)
		if err != nil {
			return repairs, err
		}
		if units > 0 {
			repairs = append(repairs, Repair{What: what, Order: hold.Order, Units: units})
		}
	}
	requeued, err := e.requeue(ctx, sale, orphans)
	return append(repairs, requeued...), err
}

// requeue queues holds whose queue entry is gone. While at least as many units
// are queued as these holds have, they may all just be waiting their turn.
func (e *Engine) requeue(ctx context.Context, sale domain.SaleID, orphans []domain.Hold) ([]Repair, error) {
	var units int64
	for _, hold := range orphans {
		units += hold.Quantity
	}
	level, err := e.Stock.Level(ctx, sale)
	if err != nil || units <= level.Queued {
		return nil, err
	}
	var repairs []Repair
	for _, hold := range orphans {
		n, err := e.Stock.Requeue(ctx, sale, hold.Order)
		if err != nil {
			return repairs, err
		}
		if n > 0 {
			repairs = append(repairs, Repair{What: "requeued", Order: hold.Order, Units: hold.Quantity})
		}
	}
	return repairs, nil
}

// repairTotal has the hot store take over the ledger's total: an edit of the
// stock may have reached one of the two only. Where the ledger has less, and not
// so many units are free, what is free goes now and the rest with a later repair.
func (e *Engine) repairTotal(ctx context.Context, sale domain.SaleID, lease domain.Lease) ([]Repair, error) {
	level, err := e.Stock.Level(ctx, sale)
	if err != nil {
		return nil, err
	}
	tally, err := e.Orders.Tally(ctx, sale)
	if err != nil {
		return nil, err
	}
	wanted := max(tally.Total, level.Total-level.Available)
	if wanted != level.Total {
		if err := e.Stock.SetTotal(ctx, sale, level.Total, wanted, lease.Fence.Number); err != nil {
			return nil, err
		}
		e.soldOut.forget(sale)
	}
	var repairs []Repair
	if wanted != level.Total {
		repairs = []Repair{{What: "total set", Units: abs(wanted - level.Total)}}
	}
	if wanted != tally.Total {
		return repairs, fmt.Errorf("%w: the hot store has %d units held and sold, the total is %d", domain.ErrUnbalanced, wanted, tally.Total)
	}
	return repairs, nil
}

// repairCounters recounts the sale if its counters disagree with its records.
func (e *Engine) repairCounters(ctx context.Context, sale domain.SaleID, fence int64) ([]Repair, error) {
	for range reportTries {
		audit, err := e.Stock.Audit(ctx, sale)
		if err != nil || audit.Balanced() {
			return nil, err
		}
		fixed, err := e.Stock.Correct(ctx, sale, audit.Level, fence)
		if errors.Is(err, domain.ErrConflict) {
			continue // a grab came in between: count again
		}
		if err != nil {
			return nil, err
		}
		units := abs(fixed.Level.Available-audit.Level.Available) + abs(fixed.Level.Held-audit.Level.Held) + abs(fixed.Level.Sold-audit.Level.Sold) +
			abs(fixed.Level.Queued-audit.Level.Queued)
		for _, buyer := range audit.Buyers {
			units += abs(buyer.Counted - buyer.Recorded)
		}
		return []Repair{{What: "corrected", Units: units}}, nil
	}
	return nil, fmt.Errorf("recount: %w", domain.ErrConflict)
}

// lostHolds are the live orders of the ledger that the hot store does not have
// as the ledger does.
func (e *Engine) lostHolds(ctx context.Context, sale domain.SaleID) ([]domain.Hold, error) {
	holds, err := e.ledgerHolds(ctx, sale)
	if err != nil {
		return nil, err
	}
	var lost []domain.Hold
	for _, want := range holds {
		if want.State == domain.Released {
			continue
		}
		have, err := e.Stock.Hold(ctx, sale, want.Order)
		if err != nil && !errors.Is(err, domain.ErrNotFound) {
			return nil, err
		}
		if have.State != want.State {
			lost = append(lost, want)
		}
	}
	return lost, nil
}

// repairLost gives live orders of the ledger the holds that they should have.
// One that cannot be had, since its units are taken, does not hold up the others.
func (e *Engine) repairLost(ctx context.Context, sale domain.SaleID, lost []domain.Hold, fence int64) ([]Repair, error) {
	orders, err := e.ordersOf(ctx, lost)
	if err != nil {
		return nil, err
	}
	var repairs []Repair
	var errs []error
	for _, hold := range lost {
		order := orders[hold.Order.Order()]
		want := holdOf(order)
		if want.Order != hold.Order || want.State == domain.Released {
			continue // decided in the meantime; its effect is on its way
		}
		done, err := e.restore(ctx, sale, want, fence)
		repairs = append(repairs, done...)
		if err != nil {
			errs = append(errs, fmt.Errorf("restore hold of order %s: %w", want.Order, err))
		}
	}
	return repairs, errors.Join(errs...)
}

// restore adopts or settles one hold. If its order is closed at this very
// moment, the closing's release may have come before: it is done again.
func (e *Engine) restore(ctx context.Context, sale domain.SaleID, want domain.Hold, fence int64) ([]Repair, error) {
	units, err := e.Stock.Adopt(ctx, sale, want, fence)
	if err != nil {
		return nil, err
	}
	what := "adopted"
	if units == 0 && want.State == domain.Sold {
		what = "settled"
		if units, err = e.Stock.Settle(ctx, sale, want.Order); err != nil {
			return nil, err
		}
	}
	order, err := e.ledgerOrder(ctx, want.Order.Order())
	if err != nil {
		return nil, err
	}
	if now := holdOf(order); now.Order != want.Order || now.State == domain.Released {
		_, err := e.giveBack(ctx, sale, want.Order)
		return nil, err
	}
	if units == 0 {
		return nil, nil
	}
	return []Repair{{What: what, Order: want.Order, Units: units}}, nil
}
