package application

import (
	"context"
	"errors"
	"fmt"
	"time"

	"seckill/domain"
)

const (
	drainPause = 20 * time.Millisecond
	// lostAfter is how long after a rebuild an order id that nobody knows is
	// still in doubt: a grab that was on its way may yet arrive.
	lostAfter = 10 * time.Second
)

// Watch looks whether the hot store may have lost something, and if so puts it
// right. From the moment it sees it, this process answers grabs of the sales
// concerned with NotReady. One process at a time seals them, lets the consumers,
// which must run, place what is still queued, and loads them from the ledger under
// a new epoch: stock, holds, buyers. What was accepted and is in neither is lost,
// and Order says so.
//
// Without a hot store that can lose anything it does nothing.
// Errors: ErrUnavailable; then the sales stay not ready, and it is called again.
func (e *Engine) Watch(ctx context.Context) error {
	if e.Continuity == nil {
		return nil
	}
	doubts, err := e.Continuity.Doubts(ctx)
	if err != nil {
		return fmt.Errorf("watch hot store: %w", err)
	}
	if len(doubts) == 0 {
		e.doubts.Store(nil)
		return nil
	}
	if e.doubts.Swap(&doubts) == nil {
		e.log.Error("the hot store may have lost data: its sales are loaded anew", "parts", len(doubts))
	}
	err = e.Lock.Do(ctx, "watch", e.cfg.LockTTL, func(ctx context.Context, _ domain.Lease) error {
		return e.rebuildDoubted(ctx)
	})
	if errors.Is(err, domain.ErrBusy) {
		return nil // another process is at it
	}
	if err != nil {
		return fmt.Errorf("rebuild hot store: %w", err)
	}
	e.doubts.Store(nil)
	return nil
}

// doubted says whether a sale waits for its rebuild.
func (e *Engine) doubted(sale domain.SaleID) bool {
	doubts := e.doubts.Load()
	return doubts != nil && e.Continuity.Concern(*doubts, sale, 0)
}

func (e *Engine) rebuildDoubted(ctx context.Context) error {
	// Another process may just have been through with it.
	doubts, err := e.Continuity.Doubts(ctx)
	if err != nil || len(doubts) == 0 {
		return err
	}
	var sales []domain.SaleID
	err = e.eachActivity(ctx, func(activity domain.Activity) error {
		for _, sku := range activity.SKUs {
			if sale := activity.Sale(sku.ID); preheated(activity.State) && e.Continuity.Concern(doubts, sale, sku.Segments) {
				sales = append(sales, sale)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, sale := range sales {
		err := e.Lock.Do(ctx, e.lockKey(sale), e.cfg.LockTTL, func(ctx context.Context, lease domain.Lease) error {
			return e.Stock.Seal(ctx, sale, lease.Fence.Number, true)
		})
		if err != nil {
			return fmt.Errorf("seal sale %s: %w", sale, err)
		}
	}
	if len(sales) > 0 {
		if err := e.drain(ctx); err != nil {
			return err
		}
	}
	for _, sale := range sales {
		err := e.Lock.Do(ctx, e.lockKey(sale), e.cfg.LockTTL, func(ctx context.Context, lease domain.Lease) error {
			return e.loadUnder(ctx, lease, sale, true)
		})
		switch {
		case errors.Is(err, domain.ErrUnbalanced), errors.Is(err, domain.ErrNotFound):
			// It stays sealed; the others are not to wait for it.
			e.log.Error("a sale cannot be loaded anew", "sale", sale.String(), "error", err)
		case err != nil:
			return fmt.Errorf("load sale %s: %w", sale, err)
		default:
			e.soldOut.forget(sale)
			e.log.Warn("sale loaded anew", "sale", sale.String())
		}
	}
	return e.Continuity.Vouch(ctx, doubts)
}

// drain waits until everything that was queued before it was called is done
// with, but not for ever.
func (e *Engine) drain(ctx context.Context) error {
	start := time.Now()
	for {
		depth, err := e.Queue.Depth(ctx)
		if err != nil {
			return err
		}
		waited := time.Since(start)
		if depth.Oldest < waited {
			return nil
		}
		if waited > e.cfg.DrainWait {
			e.log.Error("orders are still queued and will be rejected", "orders", depth.Orders, "oldest", depth.Oldest.String())
			return nil
		}
		select {
		case <-time.After(drainPause):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// lost answers for an order id that neither store knows: if its sale was loaded
// anew since it was minted, it was accepted, if ever, by a hot store that has
// lost it. It is final only when nothing of that time can be on its way any more.
func (e *Engine) lost(ctx context.Context, id domain.OrderID) (domain.Order, error) {
	minted, known := e.IDs.Minted(id)
	if !known {
		return domain.Order{}, domain.ErrNotFound
	}
	epoch, since, err := e.Activities.Epoch(ctx, id.Sale())
	if err != nil {
		return domain.Order{}, err
	}
	switch {
	case epoch < 2, !minted.Before(since):
		return domain.Order{}, domain.ErrNotFound
	case e.Clock.Now().Before(since.Add(lostAfter)):
		return domain.Order{}, fmt.Errorf("%w: whether the order survived is not known yet", domain.ErrNotReady)
	}
	return domain.Order{ID: id, Sale: id.Sale(), Status: domain.Rejected, Reason: domain.ReasonLost}, nil
}
