package application

import (
	"context"
	"errors"
	"fmt"

	"seckill/domain"
)

// activityPage is how many activities are read at a time.
const activityPage = 100

// Rebuild loads every sale that should be in the hot store and is not, from
// the ledger: stock, holds and buyers, under a new epoch. A hot store that
// lives in the process's memory needs it at every start, before the first grab.
func (e *Engine) Rebuild(ctx context.Context) error {
	return e.eachActivity(ctx, func(activity domain.Activity) error {
		if !preheated(activity.State) {
			return nil
		}
		for _, sku := range activity.SKUs {
			sale := activity.Sale(sku.ID)
			if _, err := e.reload(ctx, sale, false); err != nil {
				return fmt.Errorf("rebuild sale %s: %w", sale, err)
			}
		}
		return nil
	})
}

// reload loads a sale that the hot store does not hold, or holds from another
// epoch, as it may after it has lost data. Holds that the ledger does not know
// are gone, and what is still queued from that epoch will be rejected, visibly.
// With corrupt, it is loaded whatever its level says. It returns whether there
// was anything to do.
func (e *Engine) reload(ctx context.Context, sale domain.SaleID, corrupt bool) (loaded bool, err error) {
	err = e.Lock.Do(ctx, e.lockKey(sale), e.cfg.LockTTL, func(ctx context.Context, lease domain.Lease) error {
		tally, err := e.Orders.Tally(ctx, sale)
		if err != nil {
			return err
		}
		level, err := e.Stock.Level(ctx, sale)
		switch {
		case corrupt, errors.Is(err, domain.ErrNotReady):
		case err != nil:
			return err
		case level.Epoch == tally.Epoch:
			return nil
		}
		loaded = true
		if corrupt {
			// What is still queued of it was accepted, and can be placed yet.
			if err := e.Stock.Seal(ctx, sale, lease.Fence.Number, true); err != nil {
				return err
			}
			if err := e.drain(ctx); err != nil {
				return err
			}
		}
		return e.loadUnder(ctx, lease, sale, true)
	})
	return loaded, err
}

func (e *Engine) eachActivity(ctx context.Context, do func(domain.Activity) error) error {
	var after domain.ActivityID
	for {
		page, err := e.Activities.Activities(ctx, after, activityPage)
		if err != nil {
			return fmt.Errorf("list activities: %w", err)
		}
		for _, activity := range page {
			if err := do(activity); err != nil {
				return err
			}
			after = activity.ID
		}
		if len(page) < activityPage {
			return nil
		}
	}
}
