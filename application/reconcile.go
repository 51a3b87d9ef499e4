package application

import (
	"context"
	"errors"
	"fmt"
	"time"

	"seckill/domain"
)

// Reconcile compares hot store, queue and ledger of an activity, says what
// disagrees, and with repair puts it right: record by record, under the sale's
// lock and its fence, by changes that apply only if nothing else has changed.
// Live stock is never overwritten.
//
// Errors: ErrNotFound, ErrBusy, ErrUnavailable.
func (e *Engine) Reconcile(ctx context.Context, id domain.ActivityID, repair bool) (Report, error) {
	return e.reconcile(ctx, id, repair, true)
}

func (e *Engine) reconcile(ctx context.Context, id domain.ActivityID, repair, records bool) (Report, error) {
	report, err := e.Report(ctx, id)
	if err != nil {
		return Report{}, fmt.Errorf("reconcile: %w", err)
	}
	for i, sale := range report.Sales {
		if !sale.Loaded {
			continue
		}
		sound := sale.Balanced
		if sound && records {
			audit, err := e.Stock.Audit(ctx, sale.Sale)
			if err != nil {
				return Report{}, fmt.Errorf("reconcile sale %s: %w", sale.Sale, err)
			}
			sound = audit.Balanced()
		}
		if sound {
			continue
		}
		report.Sales[i].Balanced = false
		e.watch.Drifted(sale.Sale, sale.Drift)
		e.log.Error("the stores disagree", "sale", sale.Sale.String(), "drift", sale.Drift,
			"total", sale.Level.Total, "available", sale.Level.Available, "held", sale.Level.Held,
			"sold", sale.Level.Sold, "queued", sale.Level.Queued,
			"pending", sale.Ledger.Pending, "paid", sale.Ledger.Paid)
		if !repair {
			continue
		}
		repairs, err := e.repair(ctx, sale.Sale)
		if err != nil {
			return Report{}, fmt.Errorf("repair sale %s: %w", sale.Sale, err)
		}
		sku, _ := report.Activity.SKU(sale.Sale.SKU)
		after, err := e.account(ctx, report.Activity, sku)
		if err != nil {
			return Report{}, fmt.Errorf("reconcile sale %s: %w", sale.Sale, err)
		}
		after.Repairs = repairs
		report.Sales[i] = after
	}
	return report, nil
}

// ReconcileAll is Reconcile of every activity that the hot store may hold. With
// records, each sale is also counted record by record, which keeps the hot store
// busy; without, only where the counters disagree.
func (e *Engine) ReconcileAll(ctx context.Context, repair, records bool) ([]Report, error) {
	var reports []Report
	err := e.eachActivity(ctx, func(activity domain.Activity) error {
		if activity.State == domain.Draft || activity.State == domain.Archived {
			return nil
		}
		report, err := e.reconcile(ctx, activity.ID, repair, records)
		reports = append(reports, report)
		return err
	})
	return reports, err
}

// repair works through the differences. Each step is safe to repeat.
func (e *Engine) repair(ctx context.Context, sale domain.SaleID) (repairs []Repair, err error) {
	suspects, err := e.suspects(ctx, sale)
	if err != nil {
		return nil, err
	}
	if len(suspects) > 0 {
		// What was only in flight is where it belongs after the grace.
		select {
		case <-time.After(e.cfg.Grace):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	err = e.Lock.Do(ctx, e.lockKey(sale), e.cfg.LockTTL, func(ctx context.Context, lease domain.Lease) error {
		for _, step := range []func() ([]Repair, error){
			func() ([]Repair, error) { return e.repairHolds(ctx, sale, suspects) },
			func() ([]Repair, error) { return e.repairCounters(ctx, sale, lease.Fence.Number) },
			func() ([]Repair, error) { return e.repairOrders(ctx, sale, lease.Fence.Number) },
		} {
			done, err := step()
			repairs = append(repairs, done...)
			if err != nil {
				return err
			}
		}
		return nil
	})
	for _, r := range repairs {
		e.log.Warn("repaired", "sale", sale.String(), "what", r.What, "order_id", r.Order, "units", r.Units)
	}
	return repairs, err
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
		what, change := "released", e.Stock.Release
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
		units := abs(fixed.Level.Available-audit.Level.Available) + abs(fixed.Level.Held-audit.Level.Held) + abs(fixed.Level.Sold-audit.Level.Sold)
		for _, buyer := range audit.Buyers {
			units += abs(buyer.Counted - buyer.Recorded)
		}
		return []Repair{{What: "corrected", Units: units}}, nil
	}
	return nil, fmt.Errorf("recount: %w", domain.ErrConflict)
}

// repairOrders gives every live order of the ledger the hold that it should have.
func (e *Engine) repairOrders(ctx context.Context, sale domain.SaleID, fence int64) ([]Repair, error) {
	holds, err := e.liveHolds(ctx, sale)
	if err != nil {
		return nil, err
	}
	var repairs []Repair
	for _, want := range holds {
		have, err := e.Stock.Hold(ctx, sale, want.Order)
		switch {
		case errors.Is(err, domain.ErrNotFound):
			units, err := e.Stock.Adopt(ctx, sale, want, fence)
			if err != nil {
				return repairs, fmt.Errorf("adopt order %s: %w", want.Order, err)
			}
			if units > 0 {
				repairs = append(repairs, Repair{What: "adopted", Order: want.Order, Units: units})
			}
		case err != nil:
			return repairs, err
		case want.State == domain.Sold && have.State == domain.Held:
			units, err := e.Stock.Settle(ctx, sale, want.Order)
			if err != nil {
				return repairs, err
			}
			if units > 0 {
				repairs = append(repairs, Repair{What: "settled", Order: want.Order, Units: units})
			}
		}
	}
	return repairs, nil
}
