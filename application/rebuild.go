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
		if activity.State == domain.Draft || activity.State == domain.Archived {
			return nil
		}
		for _, sku := range activity.SKUs {
			sale := activity.Sale(sku.ID)
			_, err := e.Stock.Level(ctx, sale)
			if errors.Is(err, domain.ErrNotReady) {
				err = e.load(ctx, sale, true)
			}
			if err != nil {
				return fmt.Errorf("rebuild sale %s: %w", sale, err)
			}
		}
		return nil
	})
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
