package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"seckill/bootstrap/seckill/load"
	"seckill/domain"
)

// persistBatches are orders per transaction: row by row, and as the consumers do.
var persistBatches = []int{1, 500}

// maxPersist bounds the orders of one timed part: they have to be removed again.
const maxPersist = 50_000

// persist places fresh orders of a scratch activity, one batch after the other,
// and returns orders per second. Orders, their buyers' quotas and the stock row
// are written, as for every order of the engine.
func (r *rig) persist(ctx context.Context, batch int) (_ float64, err error) {
	sale := r.next()
	now := time.Now()
	defer func(ctx context.Context) { err = errors.Join(err, r.erase(ctx, sale.Activity)) }(ctx)
	err = r.store.Save(ctx, domain.Activity{
		ID: sale.Activity, Name: "Benchmark", StartsAt: now.Add(-time.Hour), EndsAt: now.Add(24 * time.Hour), PaymentWindow: 24 * time.Hour,
		SKUs: []domain.SKU{{ID: sku, Name: "Benchmark", Total: lots, PerUserLimit: 1, Segments: 1}},
	})
	if err != nil {
		return 0, err
	}
	var failed failures
	ctx, cancel := context.WithTimeout(ctx, r.Budget+graceTime)
	defer cancel()
	plan := load.Plan{Calls: maxPersist / int64(batch), Callers: 1, For: r.Budget}
	measured := load.Run(ctx, plan, func(ctx context.Context, _ int, n int64) bool {
		orders := make([]domain.Order, batch)
		for i := range orders {
			claim := r.claim(sale, n*int64(batch)+int64(i))
			orders[i] = domain.Order{ID: claim.Order, Hold: claim.Order, Sale: sale, Buyer: claim.Buyer, Quantity: 1}
		}
		placed, err := r.store.Place(ctx, orders)
		for _, p := range placed {
			if err == nil && p.Order.Status != domain.Pending {
				err = fmt.Errorf("order %s is %s %s: %w", p.Order.ID, p.Order.Status, p.Order.Reason, p.Err)
			}
		}
		if err != nil {
			failed.add(err)
		}
		return err == nil
	})
	if failed.first != nil {
		return 0, failed.first
	}
	return measured.PerSecond() * float64(batch), ctx.Err()
}

// erase removes a scratch activity, also when ctx has ended.
func (r *rig) erase(ctx context.Context, id domain.ActivityID) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), graceTime)
	defer cancel()
	if err := r.store.Erase(ctx, id); err != nil {
		return fmt.Errorf("remove scratch activity %d from the database: %w", id, err)
	}
	return nil
}
