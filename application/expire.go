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
		err := e.Lock.Do(ctx, e.lockKey(sale), e.cfg.LockTTL, func(ctx context.Context, lease domain.Lease) error {
			for {
				effects, err := e.Orders.Expire(ctx, sale, expireMax, lease.Fence)
				if err != nil {
					return err
				}
				closed += len(effects)
				e.applyNow(ctx, effects...)
				if len(effects) < expireMax {
					return nil
				}
			}
		})
		if err != nil && !errors.Is(err, domain.ErrBusy) {
			errs = append(errs, fmt.Errorf("expire sale %s: %w", sale, err))
		}
	}
	return closed, errors.Join(errs...)
}
