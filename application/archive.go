package application

import (
	"context"
	"errors"
	"fmt"

	"seckill/domain"
)

// Archive ends an activity: its hot keys are removed. It refuses while any of
// its sales has holds or queued orders.
//
// Errors: ErrNotFound, ErrState, ErrHasHolds, ErrConflict, ErrUnavailable.
// Repeat: removes what is left.
func (e *Engine) Archive(ctx context.Context, id domain.ActivityID) (domain.Activity, error) {
	activity, err := e.Activities.Activity(ctx, id)
	if err == nil {
		err = e.noHolds(ctx, activity)
	}
	if err == nil {
		err = e.noPending(ctx, activity)
	}
	if err != nil {
		return domain.Activity{}, fmt.Errorf("archive activity %d: %w", id, err)
	}
	// The ledger first: from here on nobody can open the activity again.
	archived, err := e.move(ctx, id, "archive")
	if err != nil {
		return domain.Activity{}, fmt.Errorf("archive activity %d: %w", id, err)
	}
	for _, sku := range activity.SKUs {
		sale := activity.Sale(sku.ID)
		err := e.Lock.Do(ctx, e.lockKey(sale), e.cfg.LockTTL, func(ctx context.Context, lease domain.Lease) error {
			return e.Stock.Archive(ctx, sale, lease.Fence.Number)
		})
		if errors.Is(err, domain.ErrHasHolds) && activity.State != domain.Archived {
			// A late payment came in between. Its units must not lose their sale.
			err = errors.Join(err, e.Activities.SetState(ctx, id, domain.Archived, activity.State))
		}
		if err != nil {
			return domain.Activity{}, fmt.Errorf("archive sale %s: %w", sale, err)
		}
	}
	return archived, nil
}

// noPending refuses an activity with unpaid orders, which the hot store may
// have lost.
func (e *Engine) noPending(ctx context.Context, activity domain.Activity) error {
	for _, sku := range activity.SKUs {
		sale := activity.Sale(sku.ID)
		tally, err := e.Orders.Tally(ctx, sale)
		if err != nil {
			return err
		}
		if tally.Reserved > 0 {
			return fmt.Errorf("sale %s: %w", sale, domain.ErrHasHolds)
		}
	}
	return nil
}

// noHolds refuses an activity with holds or queued orders.
func (e *Engine) noHolds(ctx context.Context, activity domain.Activity) error {
	for _, sku := range activity.SKUs {
		sale := activity.Sale(sku.ID)
		level, err := e.Stock.Level(ctx, sale)
		if errors.Is(err, domain.ErrNotReady) {
			continue
		}
		if err != nil {
			return err
		}
		if level.Held > 0 || level.Queued > 0 {
			return fmt.Errorf("sale %s: %w", sale, domain.ErrHasHolds)
		}
	}
	return nil
}
