package application

import (
	"context"
	"errors"
	"fmt"
	"time"

	"seckill/domain"
)

const (
	relayAge   = time.Second // younger effects are left to whoever made the decision
	relayMax   = 500         // effects in one page
	relayPages = 100         // pages in one round
)

// apply brings effects to the hot store, tells the subscribers and removes the
// effects from the outbox, in this order, so that a crash anywhere repeats a
// step and skips none. It returns how many are done.
func (e *Engine) apply(ctx context.Context, effects []domain.Effect) (int, error) {
	type group struct {
		sale    domain.SaleID
		settles bool
	}
	holds := map[group][]domain.OrderID{}
	for _, f := range effects {
		g := group{f.Order.Sale, f.Settles()}
		holds[g] = append(holds[g], f.Hold)
	}
	stuck := map[domain.SaleID]error{}
	for g, ids := range holds {
		if err := e.applyGroup(ctx, g.sale, g.settles, ids); err != nil {
			stuck[g.sale] = err
		}
	}
	var done []int64
	var errs []error
	for _, f := range effects {
		if stuck[f.Order.Sale] != nil {
			continue
		}
		if err := e.publish(ctx, f.Order); err != nil {
			errs = append(errs, fmt.Errorf("tell of order %s: %w", f.Order.ID, err))
			continue
		}
		done = append(done, f.ID)
	}
	for sale, err := range stuck {
		errs = append(errs, fmt.Errorf("apply effects of sale %s: %w", sale, err))
	}
	if len(done) > 0 {
		errs = append(errs, e.Outbox.Applied(ctx, done...))
	}
	return len(done), errors.Join(errs...)
}

func (e *Engine) applyGroup(ctx context.Context, sale domain.SaleID, settles bool, ids []domain.OrderID) error {
	change := e.giveBack
	if settles {
		change = e.Stock.Settle
	}
	_, err := change(ctx, sale, ids...)
	if !errors.Is(err, domain.ErrNotReady) {
		return err
	}
	// An archived sale has no hot store to tell. Any other one is being loaded
	// or was lost: wait until it is back.
	activity, findErr := e.Activities.Activity(ctx, sale.Activity)
	if findErr != nil {
		return findErr
	}
	if activity.State == domain.Archived {
		return nil
	}
	return err
}

// applyNow applies a decision as soon as it is made. If that fails, the relay
// does it: the effect is in the outbox since the decision. An effect without
// an id is the repeat of a decision that has been applied or waits there.
func (e *Engine) applyNow(ctx context.Context, effects ...domain.Effect) {
	var fresh []domain.Effect
	for _, f := range effects {
		if f.ID != 0 {
			fresh = append(fresh, f)
		}
	}
	if len(fresh) == 0 {
		return
	}
	ctx, cancel := detached(ctx)
	defer cancel()
	if _, err := e.apply(ctx, fresh); err != nil {
		e.log.Warn("effects are left to the relay", "effects", len(fresh), "error", err)
	}
}

// Relay applies the effects that nobody has applied yet: their process died, or
// the hot store was away. It returns how many it applied. One process does it
// at a time; two would only do work twice.
func (e *Engine) Relay(ctx context.Context) (int, error) {
	applied := 0
	err := e.Lock.Do(ctx, "relay", e.cfg.LockTTL, func(ctx context.Context, _ domain.Lease) error {
		var errs []error
		after := int64(0)
		// What cannot be applied yet must not hold up what comes after it.
		for range relayPages {
			effects, err := e.Outbox.Effects(ctx, relayAge, after, relayMax)
			if err != nil {
				return errors.Join(append(errs, err)...)
			}
			done, err := e.apply(ctx, effects)
			applied += done
			if err != nil {
				errs = append(errs, err)
			}
			if len(effects) < relayMax {
				break
			}
			after = effects[len(effects)-1].ID
		}
		return errors.Join(errs...)
	})
	if errors.Is(err, domain.ErrBusy) {
		return applied, nil
	}
	if err != nil {
		return applied, fmt.Errorf("relay: %w", err)
	}
	return applied, nil
}

// giveBack releases holds. This process then asks the hot store
// again whether it is sold out.
func (e *Engine) giveBack(ctx context.Context, sale domain.SaleID, holds ...domain.OrderID) (int64, error) {
	units, err := e.Stock.Release(ctx, sale, holds...)
	if units > 0 {
		e.soldOut.forget(sale)
	}
	return units, err
}
