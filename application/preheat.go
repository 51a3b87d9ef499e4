package application

import (
	"context"
	"fmt"

	"seckill/domain"
)

// holdPage is how many ledger orders are read at a time.
const holdPage = 1000

// Preheat loads the activity's sales from the ledger into the hot store. It
// sets, never adds: twice is the same as once. A draft or closed activity
// becomes Ready; any other keeps its state.
//
// Errors: ErrNotFound; ErrState when archived; ErrHasHolds when a sale has
// holds or queued orders; ErrUnbalanced when a ledger row does not add up;
// ErrBusy; ErrUnavailable. After the last two, sales that were reached may be
// not ready until the command is given again.
func (e *Engine) Preheat(ctx context.Context, id domain.ActivityID) (domain.Activity, error) {
	activity, err := e.Activities.Activity(ctx, id)
	if err != nil {
		return domain.Activity{}, fmt.Errorf("preheat activity %d: %w", id, err)
	}
	// Look before touching anything: a refusal should leave every sale as it is.
	if err := e.idle(ctx, activity); err != nil {
		return domain.Activity{}, fmt.Errorf("preheat activity %d: %w", id, err)
	}
	switch activity.State {
	case domain.Archived:
		return domain.Activity{}, fmt.Errorf("preheat activity %d: %w: it is archived", id, domain.ErrState)
	case domain.Draft, domain.Closed:
		if err := e.Activities.SetState(ctx, id, activity.State, domain.Ready); err != nil {
			return domain.Activity{}, fmt.Errorf("preheat activity %d: %w", id, err)
		}
		activity.State = domain.Ready
	}
	e.catalog.forget(id)
	for _, sku := range activity.SKUs {
		if err := e.load(ctx, activity.Sale(sku.ID)); err != nil {
			return domain.Activity{}, fmt.Errorf("preheat sale %s: %w", activity.Sale(sku.ID), err)
		}
	}
	e.log.Info("activity preheated", "activity", id, "state", activity.State)
	return activity, nil
}

// idle refuses an activity with holds or queued orders, or with a ledger row
// that does not add up.
func (e *Engine) idle(ctx context.Context, activity domain.Activity) error {
	if err := e.noHolds(ctx, activity); err != nil {
		return err
	}
	for _, sku := range activity.SKUs {
		sale := activity.Sale(sku.ID)
		tally, err := e.Orders.Tally(ctx, sale)
		if err != nil {
			return err
		}
		if !tally.Balanced() {
			return fmt.Errorf("sale %s: %w: total %d, reserved %d (orders: %d), sold %d (orders: %d)", sale,
				domain.ErrUnbalanced, tally.Total, tally.Reserved, tally.Pending, tally.Sold, tally.Paid)
		}
	}
	return nil
}

// load puts one sale into the hot store, under its lock, if nothing is held.
func (e *Engine) load(ctx context.Context, sale domain.SaleID) error {
	return e.Lock.Do(ctx, e.lockKey(sale), e.cfg.LockTTL, func(ctx context.Context, lease domain.Lease) error {
		return e.loadUnder(ctx, lease, sale, false)
	})
}

// loadUnder loads a sale from the ledger. The order matters: sealed first, so
// that no grab slips in; then a new epoch, so that the ledger rejects what was
// queued before; then the ledger's account is read and loaded.
func (e *Engine) loadUnder(ctx context.Context, lease domain.Lease, sale domain.SaleID, force bool) error {
	fence := lease.Fence
	if err := e.Stock.Seal(ctx, sale, fence.Number, force); err != nil {
		return err
	}
	epoch, err := e.Activities.BeginEpoch(ctx, sale, fence)
	if err != nil {
		return err
	}
	activity, err := e.Activities.Activity(ctx, sale.Activity)
	if err != nil {
		return err
	}
	sku, _ := activity.SKU(sale.SKU)
	holds, err := e.ledgerHolds(ctx, sale)
	if err != nil {
		return err
	}
	return e.Stock.Preheat(ctx, domain.Load{
		Sale: sale, Epoch: epoch, Gate: activity.Gate(sku), Total: sku.Total,
		Holds: holds, Fence: fence.Number, Segments: sku.Segments,
	})
}

// ledgerHolds reads the holds that the ledger's orders stand for.
func (e *Engine) ledgerHolds(ctx context.Context, sale domain.SaleID) ([]domain.Hold, error) {
	var holds []domain.Hold
	var after domain.OrderID
	for {
		page, err := e.Orders.Holds(ctx, sale, after, holdPage)
		if err != nil {
			return nil, err
		}
		for _, order := range page {
			holds = append(holds, holdOf(order))
			after = order.ID
		}
		if len(page) < holdPage {
			return holds, nil
		}
	}
}

func holdOf(order domain.Order) domain.Hold {
	hold := domain.Hold{
		Order: order.Hold, Buyer: order.Buyer, Request: order.Request,
		Quantity: order.Quantity, State: domain.Released, CreatedAt: order.CreatedAt,
	}
	switch order.Status {
	case domain.Pending:
		hold.State = domain.Held
	case domain.Paid:
		hold.State = domain.Sold
	}
	return hold
}
