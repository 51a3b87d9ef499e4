package application

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"

	"seckill/domain"
)

// EditStock adds units to a sale, or withdraws some that are free, also while it
// runs. An edit without a key gets one, so that every call is an edit of its own.
// It returns the edit as the ledger recorded it, and with an error its key.
//
// More units are in the ledger first and fewer in the hot store first: at no
// time does the hot store give away what the ledger would refuse.
//
// Errors: ErrInvalid (names the field); ErrNotFound; ErrState when the activity
// is archived; ErrNotReady when the hot store should have the sale and has not;
// a WithdrawalError when fewer units are free than are withdrawn; ErrConflict when
// the key was used for another edit; ErrBusy; ErrUnavailable: give the same
// edit with the same key again. What only one of the two has heard of by then,
// reconcile tells the other.
func (e *Engine) EditStock(ctx context.Context, edit domain.StockEdit) (domain.StockEdit, error) {
	if edit.Key == "" {
		edit.Key = domain.RequestID(rand.Text())
	}
	if err := edit.Validate(); err != nil {
		return domain.StockEdit{}, err
	}
	made, err := e.editStock(ctx, edit)
	if err != nil {
		return domain.StockEdit{Key: edit.Key}, fmt.Errorf("edit stock of sale %s: %w", edit.Sale, err)
	}
	e.catalog.forget(edit.Sale.Activity)
	e.soldOut.forget(edit.Sale)
	e.log.Info("stock edited", "sale", edit.Sale.String(), "delta", made.Delta, "total", made.Total, "reason", made.Reason)
	return made, nil
}

func (e *Engine) editStock(ctx context.Context, edit domain.StockEdit) (made domain.StockEdit, err error) {
	err = e.Lock.Do(ctx, e.lockKey(edit.Sale), e.cfg.LockTTL, func(ctx context.Context, lease domain.Lease) error {
		activity, err := e.Activities.Activity(ctx, edit.Sale.Activity)
		if err != nil {
			return err
		}
		sku, found := activity.SKU(edit.Sale.SKU)
		switch {
		case !found:
			return fmt.Errorf("SKU %d: %w", edit.Sale.SKU, domain.ErrNotFound)
		case activity.State == domain.Archived:
			return fmt.Errorf("%w: the activity is archived", domain.ErrState)
		case edit.Delta < 0 && preheated(activity.State):
			made, err = e.withdraw(ctx, lease, edit, sku.Total)
			return err
		}
		if preheated(activity.State) {
			// A sale that is not loaded refuses before anything is written.
			if _, err := e.Stock.Level(ctx, edit.Sale); err != nil {
				return err
			}
		}
		made, err = e.Activities.EditStock(ctx, edit, lease.Fence)
		if errors.Is(err, domain.ErrUnbalanced) {
			return e.tooMany(ctx, edit.Sale, err)
		}
		if err != nil || !preheated(activity.State) {
			return err
		}
		return e.matchTotal(ctx, lease, edit.Sale)
	})
	return made, err
}

// withdraw takes units out of the hot store and then out of the ledger. If the
// ledger refuses them, the hot store gets them back.
func (e *Engine) withdraw(ctx context.Context, lease domain.Lease, edit domain.StockEdit, total int64) (domain.StockEdit, error) {
	edits, err := e.Activities.StockEdits(ctx, edit.Sale)
	if err != nil {
		return domain.StockEdit{}, err
	}
	for _, earlier := range edits {
		if earlier.Key == edit.Key { // the ledger answers it; the hot store may have missed it
			made, err := e.Activities.EditStock(ctx, edit, lease.Fence)
			if err != nil {
				return domain.StockEdit{}, err
			}
			return made, e.matchTotal(ctx, lease, edit.Sale)
		}
	}
	if total+edit.Delta < 1 {
		return domain.StockEdit{}, e.tooMany(ctx, edit.Sale, domain.ErrUnbalanced)
	}
	// An earlier edit may have reached one of the two only.
	if err := e.matchTotal(ctx, lease, edit.Sale); err != nil {
		return domain.StockEdit{}, err
	}
	err = e.Stock.SetTotal(ctx, edit.Sale, total, total+edit.Delta, lease.Fence.Number)
	if errors.Is(err, domain.ErrUnbalanced) {
		return domain.StockEdit{}, e.tooMany(ctx, edit.Sale, err)
	}
	if err != nil {
		return domain.StockEdit{}, err
	}
	made, err := e.Activities.EditStock(ctx, edit, lease.Fence)
	if err == nil {
		// It may have known the key from further back than the list goes. The edit is
		// made, so what fails now is no error of it: reconcile does it again.
		if err := e.matchTotal(ctx, lease, edit.Sale); err != nil {
			e.log.Warn("the hot store's total is left to reconcile", "sale", edit.Sale.String(), "error", err)
		}
		return made, nil
	}
	if ctx.Err() == nil { // else the lease may be over, and reconcile does it
		err = errors.Join(err, e.matchTotal(ctx, lease, edit.Sale))
	}
	return domain.StockEdit{}, err
}

// tooMany says how many units could be withdrawn, as far as the stores tell; else
// it is the error that it was given.
func (e *Engine) tooMany(ctx context.Context, sale domain.SaleID, refused error) error {
	tally, err := e.Orders.Tally(ctx, sale)
	if err != nil {
		return refused
	}
	most := min(tally.Total-1, tally.Total-tally.Reserved-tally.Sold)
	level, err := e.Stock.Level(ctx, sale)
	switch {
	case err == nil:
		most = min(most, level.Available)
	case !errors.Is(err, domain.ErrNotReady):
		return refused
	}
	return &domain.WithdrawalError{Most: max(most, 0)}
}

// matchTotal has the hot store take over the ledger's total.
func (e *Engine) matchTotal(ctx context.Context, lease domain.Lease, sale domain.SaleID) error {
	level, err := e.Stock.Level(ctx, sale)
	if err != nil {
		return err
	}
	tally, err := e.Orders.Tally(ctx, sale)
	if err != nil {
		return err
	}
	if level.Total == tally.Total {
		return nil
	}
	return e.Stock.SetTotal(ctx, sale, level.Total, tally.Total, lease.Fence.Number)
}

// StockEdits lists what operators have changed of a sale's total, the newest
// first. Errors: ErrNotFound, ErrUnavailable.
func (e *Engine) StockEdits(ctx context.Context, sale domain.SaleID) ([]domain.StockEdit, error) {
	activity, err := e.Activities.Activity(ctx, sale.Activity)
	if err != nil {
		return nil, fmt.Errorf("stock edits of sale %s: %w", sale, err)
	}
	if _, found := activity.SKU(sale.SKU); !found {
		return nil, fmt.Errorf("stock edits of sale %s: %w", sale, domain.ErrNotFound)
	}
	edits, err := e.Activities.StockEdits(ctx, sale)
	if err != nil {
		return nil, fmt.Errorf("stock edits of sale %s: %w", sale, err)
	}
	return edits, nil
}
