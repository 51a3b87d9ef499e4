package application

import (
	"context"
	"errors"
	"fmt"

	"seckill/domain"
)

// ActivityView is an activity as buyers see it, at most a second old.
type ActivityView struct {
	domain.Activity
	SoldOut map[domain.SKUID]bool // no unit is free
}

// Activity finds an activity for buyers. Errors: ErrNotFound, ErrUnavailable.
func (e *Engine) Activity(ctx context.Context, id domain.ActivityID) (ActivityView, error) {
	activity, _, err := e.catalog.find(ctx, id)
	if err != nil {
		return ActivityView{}, fmt.Errorf("find activity: %w", err)
	}
	return e.view(ctx, activity)
}

// ListActivities lists the preheated ones of up to max activities with an id
// above after, by id: drafts and archived activities are not for buyers.
func (e *Engine) ListActivities(ctx context.Context, after domain.ActivityID, max int) ([]ActivityView, error) {
	activities, err := e.Activities.Activities(ctx, after, max)
	if err != nil {
		return nil, fmt.Errorf("list activities: %w", err)
	}
	views := make([]ActivityView, 0, len(activities))
	for _, activity := range activities {
		if !preheated(activity.State) {
			continue
		}
		view, err := e.view(ctx, activity)
		if err != nil {
			return nil, fmt.Errorf("list activities: %w", err)
		}
		views = append(views, view)
	}
	return views, nil
}

func (e *Engine) view(ctx context.Context, activity domain.Activity) (ActivityView, error) {
	view := ActivityView{Activity: activity, SoldOut: map[domain.SKUID]bool{}}
	if !preheated(activity.State) {
		return view, nil
	}
	for _, sku := range activity.SKUs {
		level, err := e.Stock.Level(ctx, activity.Sale(sku.ID))
		if errors.Is(err, domain.ErrNotReady) {
			continue
		}
		if err != nil {
			return ActivityView{}, err
		}
		view.SoldOut[sku.ID] = level.Available == 0
	}
	return view, nil
}
