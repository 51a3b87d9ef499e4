package application

import (
	"context"
	"errors"
	"fmt"
	"time"

	"seckill/domain"
)

// SaveActivity creates an activity or changes one. A change of window, limit,
// name, price or payment window takes effect for the very next grab. While an
// activity is preheated, its SKUs cannot change, and their totals only by EditStock.
//
// Errors: ErrInvalid (names the field), ErrState, ErrConflict when a command
// came in between, ErrUnavailable.
func (e *Engine) SaveActivity(ctx context.Context, activity domain.Activity) (domain.Activity, error) {
	if err := activity.Validate(); err != nil {
		return domain.Activity{}, err
	}
	for _, sku := range activity.SKUs {
		if sku.Segments > e.cfg.MaxSegments {
			return domain.Activity{}, domain.Invalid("skus.segments", "must be at most %d with this hot store", e.cfg.MaxSegments)
		}
	}
	before, err := e.Activities.Activity(ctx, activity.ID)
	switch {
	case errors.Is(err, domain.ErrNotFound):
		activity.State = "" // a new one
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
	if activity.State == "" {
		activity.State = domain.Draft
	}
	if preheated(activity.State) {
		if err := e.syncGates(ctx, activity.ID); err != nil {
			return domain.Activity{}, fmt.Errorf("save activity: %w", err)
		}
	}
	return activity, nil
}

// preheated says whether the hot store should hold the sales of an activity.
func preheated(state domain.State) bool {
	return state != domain.Draft && state != domain.Archived
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
			return fmt.Errorf("%w: the SKUs of a preheated activity cannot change, and their totals only by an edit of the stock", domain.ErrState)
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

// gateTimeout bounds how long a command goes on trying to reach one sale in the
// hot store, with a pause between tries.
const (
	gateTimeout = 5 * time.Second
	gatePause   = 20 * time.Millisecond
)

// syncGates brings the ledger's word on an activity to the hot store. The
// ledger has decided, so it goes on although the caller may hang up, and waits
// for whoever holds a sale's lock. If it fails all the same, reconcile does it.
func (e *Engine) syncGates(ctx context.Context, id domain.ActivityID) error {
	ctx = context.WithoutCancel(ctx)
	activity, err := e.Activities.Activity(ctx, id)
	if err != nil {
		return err
	}
	var errs []error
	for _, sku := range activity.SKUs {
		sale := activity.Sale(sku.ID)
		if err := e.syncGateSoon(ctx, sale); err != nil {
			errs = append(errs, fmt.Errorf("set gate of sale %s: %w", sale, err))
		}
	}
	return errors.Join(errs...)
}

func (e *Engine) syncGateSoon(ctx context.Context, sale domain.SaleID) error {
	ctx, cancel := context.WithTimeout(ctx, gateTimeout)
	defer cancel()
	err := e.syncGate(ctx, sale)
	for (errors.Is(err, domain.ErrBusy) || errors.Is(err, domain.ErrUnavailable)) && ctx.Err() == nil {
		time.Sleep(gatePause)
		err = e.syncGate(ctx, sale)
	}
	return err
}

// syncGate reads the activity again under the sale's lock, so that of two
// commands at the same moment the one that the ledger took last is also the
// last one in the hot store.
func (e *Engine) syncGate(ctx context.Context, sale domain.SaleID) error {
	return e.Lock.Do(ctx, e.lockKey(sale), e.cfg.LockTTL, func(ctx context.Context, lease domain.Lease) error {
		activity, err := e.Activities.Activity(ctx, sale.Activity)
		if err != nil {
			return err
		}
		sku, _ := activity.SKU(sale.SKU)
		e.soldOut.forget(sale)
		return e.Stock.SetGate(ctx, sale, activity.Gate(sku), lease.Fence.Number)
	})
}
