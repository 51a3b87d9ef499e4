package application

import (
	"context"
	"errors"
	"fmt"

	"seckill/domain"
)

// Reconcile compares hot store, queue and ledger of an activity, by counters
// and record by record, says what disagrees, and with repair puts it right.
// See repair for how. An error about one sale does not keep the others from
// being reconciled; the report is valid all the same.
//
// Errors: ErrNotFound, ErrBusy, ErrConflict or ErrUnbalanced when something
// cannot be repaired, ErrUnavailable.
func (e *Engine) Reconcile(ctx context.Context, id domain.ActivityID, repair bool) (Report, error) {
	return e.reconcile(ctx, id, repair, true)
}

// ReconcileAll is Reconcile of every activity that the hot store should hold,
// one process at a time: ErrBusy when another is at it. With records, each sale
// is also counted record by record, which keeps the hot store busy; without,
// only where the counters disagree.
func (e *Engine) ReconcileAll(ctx context.Context, repair, records bool) ([]Report, error) {
	var reports []Report
	err := e.Lock.Do(ctx, "reconcile", e.cfg.LockTTL, func(ctx context.Context, _ domain.Lease) error {
		var errs []error
		err := e.eachActivity(ctx, func(activity domain.Activity) error {
			if !preheated(activity.State) {
				return nil
			}
			report, err := e.reconcile(ctx, activity.ID, repair, records)
			if len(report.Sales) > 0 {
				reports = append(reports, report)
			}
			errs = append(errs, err)
			return ctx.Err()
		})
		return errors.Join(append(errs, err)...)
	})
	return reports, err
}

func (e *Engine) reconcile(ctx context.Context, id domain.ActivityID, repair, records bool) (Report, error) {
	report, err := e.Report(ctx, id)
	if err != nil {
		return Report{}, fmt.Errorf("reconcile: %w", err)
	}
	if !preheated(report.Activity.State) {
		return report, nil
	}
	var errs []error
	for i := range report.Sales {
		sale := &report.Sales[i]
		if err := e.reconcileSale(ctx, report.Activity, sale, repair, records); err != nil {
			sale.Balanced = false
			errs = append(errs, fmt.Errorf("reconcile sale %s: %w", sale.Sale, err))
		}
		if sale.Balanced {
			e.watch.Drifted(sale.Sale, 0)
		} else {
			e.watch.Drifted(sale.Sale, max(sale.Drift, 1))
		}
	}
	return report, errors.Join(errs...)
}

func (e *Engine) reconcileSale(ctx context.Context, activity domain.Activity, sale *SaleReport, repair, records bool) error {
	if sale.Balanced && records {
		audit, err := e.Stock.Audit(ctx, sale.Sale)
		switch {
		case errors.Is(err, domain.ErrCorrupt):
			sale.Balanced, sale.Problem = false, problemCorrupt
		case err != nil:
			return err
		case !audit.Balanced():
			sale.Balanced, sale.Problem = false, problemRecords
		}
	}
	if sale.Balanced {
		return nil
	}
	e.log.Error("the stores disagree", "sale", sale.Sale.String(), "drift", sale.Drift, "problem", sale.Problem,
		"total", sale.Level.Total, "available", sale.Level.Available, "held", sale.Level.Held,
		"sold", sale.Level.Sold, "queued", sale.Level.Queued,
		"pending", sale.Ledger.Pending, "paid", sale.Ledger.Paid)
	if !repair {
		return nil
	}
	repairs, repairErr := e.repair(ctx, *sale)
	if errors.Is(repairErr, domain.ErrCorrupt) && sale.Problem != problemCorrupt {
		// Its figures can be read and its records cannot.
		sale.Problem = problemCorrupt
		repairs, repairErr = e.repair(ctx, *sale)
	}
	for _, r := range repairs {
		e.log.Warn("repaired", "sale", sale.Sale.String(), "what", r.What, "order_id", r.Order, "units", r.Units)
	}
	sku, _ := activity.SKU(sale.Sale.SKU)
	after, err := e.account(ctx, activity, sku)
	if err == nil {
		*sale = after
	}
	sale.Repairs = repairs
	return errors.Join(repairErr, err)
}
