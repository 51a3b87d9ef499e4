package application

import (
	"context"
	"errors"
	"fmt"

	"seckill/domain"
)

// SaveActivity creates an activity or changes one. A change of window, limit,
// name, price or payment window takes effect for the very next grab. While an
// activity is preheated, its SKUs and their totals cannot change.
//
// Errors: ErrInvalid (names the field), ErrState, ErrUnavailable.
func (e *Engine) SaveActivity(ctx context.Context, activity domain.Activity) (domain.Activity, error) {
	if err := activity.Validate(); err != nil {
		return domain.Activity{}, err
	}
	before, err := e.Activities.Activity(ctx, activity.ID)
	switch {
	case errors.Is(err, domain.ErrNotFound):
		activity.State = domain.Draft
	case err != nil:
		return domain.Activity{}, fmt.Errorf("save activity: %w", err)
	default:
		activity.State = before.State
		if err := changeable(before, activity); err != nil {
			return domain.Activity{}, err
		}
	}
	if err := e.Activities.Save(ctx, activity); err != nil {
		return domain.Activity{}, fmt.Errorf("save activity: %w", err)
	}
	e.catalog.forget(activity.ID)
	if activity.State != domain.Draft && activity.State != domain.Archived {
		if err := e.syncGates(ctx, activity.ID); err != nil {
			return domain.Activity{}, fmt.Errorf("save activity: %w", err)
		}
	}
	return activity, nil
}

// changeable refuses what would pull the stock from under a running sale.
func changeable(before, after domain.Activity) error {
	if before.State == domain.Archived {
		return fmt.Errorf("%w: activity %d is archived", domain.ErrState, before.ID)
	}
	if before.State == domain.Draft {
		return nil
	}
	if len(before.SKUs) != len(after.SKUs) {
		return fmt.Errorf("%w: the SKUs of a preheated activity cannot change", domain.ErrState)
	}
	for _, old := range before.SKUs {
		sku, ok := after.SKU(old.ID)
		if !ok || sku.Total != old.Total || sku.Segments != old.Segments {
			return fmt.Errorf("%w: the SKUs of a preheated activity and their totals cannot change", domain.ErrState)
		}
	}
	return nil
}

// SetState carries out one of the operator's commands open, pause, resume and
// close, for the very next grab. Repeat: does nothing.
//
// Errors: ErrNotFound, ErrState, ErrUnavailable. After an ErrUnavailable the
// command may have reached some sales only; give it again.
func (e *Engine) SetState(ctx context.Context, id domain.ActivityID, command string) (domain.Activity, error) {
	activity, err := e.move(ctx, id, command)
	if err != nil {
		return domain.Activity{}, fmt.Errorf("%s activity %d: %w", command, id, err)
	}
	if err := e.syncGates(ctx, id); err != nil {
		return domain.Activity{}, fmt.Errorf("%s activity %d: %w", command, id, err)
	}
	e.log.Info("activity changed", "activity", id, "command", command, "state", activity.State)
	return activity, nil
}

// move changes the state in the ledger.
func (e *Engine) move(ctx context.Context, id domain.ActivityID, command string) (domain.Activity, error) {
	activity, err := e.Activities.Activity(ctx, id)
	if err != nil {
		return domain.Activity{}, err
	}
	next, ok := activity.State.Next(command)
	if !ok {
		return domain.Activity{}, fmt.Errorf("%w: the activity is %s", domain.ErrState, activity.State)
	}
	if next != activity.State {
		if err := e.Activities.SetState(ctx, id, activity.State, next); err != nil {
			return domain.Activity{}, err
		}
	}
	e.catalog.forget(id)
	activity.State = next
	return activity, nil
}

// syncGates brings the ledger's word on an activity to the hot store. Under
// each sale's lock the activity is read again, so that of two commands at the
// same moment the one that the ledger took last is also the last one here.
func (e *Engine) syncGates(ctx context.Context, id domain.ActivityID) error {
	activity, err := e.Activities.Activity(ctx, id)
	if err != nil {
		return err
	}
	for _, sku := range activity.SKUs {
		sale := activity.Sale(sku.ID)
		err := e.Lock.Do(ctx, e.lockKey(sale), e.cfg.LockTTL, func(ctx context.Context, lease domain.Lease) error {
			now, err := e.Activities.Activity(ctx, id)
			if err != nil {
				return err
			}
			sku, _ := now.SKU(sale.SKU)
			return e.Stock.SetGate(ctx, sale, now.Gate(sku), lease.Fence.Number)
		})
		if err != nil {
			return fmt.Errorf("set gate of sale %s: %w", sale, err)
		}
	}
	return nil
}

// Archive ends an activity: its hot keys are removed. It refuses while any of
// its sales has holds or queued orders.
//
// Errors: ErrNotFound, ErrState, ErrHasHolds, ErrUnavailable. Repeat: does nothing.
func (e *Engine) Archive(ctx context.Context, id domain.ActivityID) (domain.Activity, error) {
	activity, err := e.Activities.Activity(ctx, id)
	if err != nil {
		return domain.Activity{}, fmt.Errorf("archive activity %d: %w", id, err)
	}
	if _, ok := activity.State.Next("archive"); !ok {
		return domain.Activity{}, fmt.Errorf("archive activity %d: %w: close it first, it is %s", id, domain.ErrState, activity.State)
	}
	for _, sku := range activity.SKUs {
		sale := activity.Sale(sku.ID)
		err := e.Lock.Do(ctx, e.lockKey(sale), e.cfg.LockTTL, func(ctx context.Context, lease domain.Lease) error {
			return e.Stock.Archive(ctx, sale, lease.Fence.Number)
		})
		if err != nil {
			return domain.Activity{}, fmt.Errorf("archive sale %s: %w", sale, err)
		}
	}
	activity, err = e.move(ctx, id, "archive")
	if err != nil {
		return domain.Activity{}, fmt.Errorf("archive activity %d: %w", id, err)
	}
	return activity, nil
}

// ActivityView is an activity as buyers see it.
type ActivityView struct {
	domain.Activity
	SoldOut map[domain.SKUID]bool // no unit is free at this moment
}

// Activity finds an activity for buyers. Errors: ErrNotFound, ErrUnavailable.
func (e *Engine) Activity(ctx context.Context, id domain.ActivityID) (ActivityView, error) {
	activity, err := e.catalog.find(ctx, id)
	if err != nil {
		return ActivityView{}, fmt.Errorf("find activity: %w", err)
	}
	return e.view(ctx, activity)
}

// ListActivities lists up to max activities with an id above after, by id.
func (e *Engine) ListActivities(ctx context.Context, after domain.ActivityID, max int) ([]ActivityView, error) {
	activities, err := e.Activities.Activities(ctx, after, max)
	if err != nil {
		return nil, fmt.Errorf("list activities: %w", err)
	}
	views := make([]ActivityView, 0, len(activities))
	for _, activity := range activities {
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
	if activity.State == domain.Draft || activity.State == domain.Archived {
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
