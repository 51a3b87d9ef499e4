package application

import (
	"context"
	"errors"
	"fmt"

	"seckill/domain"
)

const (
	expireSales = 100 // sales in one sweep
	expireMax   = 500 // orders in one transaction
	// batches of one sale in one sweep; more wait for the next
	expireBatches = 200
)

// Expire closes unpaid orders that are past their deadline and frees their
// units. It returns how many it closed. One process sweeps a sale at a time;
// two would be correct as well, since each order is decided once.
func (e *Engine) Expire(ctx context.Context) (int, error) {
	sales, err := e.Orders.Due(ctx, expireSales)
	if err != nil {
		return 0, fmt.Errorf("expire: %w", err)
	}
	closed := 0
	var errs []error
	for _, sale := range sales {
		for range expireBatches {
			n, err := e.expireSale(ctx, sale)
			closed += n
			if err != nil && !errors.Is(err, domain.ErrBusy) {
				errs = append(errs, fmt.Errorf("expire sale %s: %w", sale, err))
			}
			if err != nil || n < expireMax {
				break
			}
		}
	}
	return closed, errors.Join(errs...)
}

// expireSale closes one batch. The lock is free between batches, so that an
// operator's command need not wait for all of them.
func (e *Engine) expireSale(ctx context.Context, sale domain.SaleID) (n int, err error) {
	err = e.Lock.Do(ctx, e.lockKey(sale), e.cfg.LockTTL, func(ctx context.Context, lease domain.Lease) error {
		effects, err := e.Orders.Expire(ctx, sale, expireMax, lease.Fence)
		if err != nil {
			return err
		}
		n = len(effects)
		e.applyNow(ctx, effects...)
		return nil
	})
	return n, err
}
