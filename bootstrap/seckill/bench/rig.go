package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"seckill/adapters/redisstock"
	"seckill/adapters/sqlstore"
	"seckill/adapters/system"
	"seckill/domain"
)

const (
	sku      = domain.SKUID(1)
	lots     = domain.MaxInteger // units of a sale that is not to sell out
	fence    = 1
	scanPage = 1000
)

// quietFrom is the first of the database's queues that scratch sales use. A
// service on the same database reads those with lower numbers, as many as it has
// partitions, and would take a scratch sale's intents for its own.
const quietFrom = 512

// rig is what all strategies share.
type rig struct {
	Config
	client   redis.UniversalClient // nil: no Redis
	blocking redis.UniversalClient
	store    *sqlstore.Store
	product  string
	ids      system.IDs
	last     domain.ActivityID // handed out
	skipped  []string
}

func open(ctx context.Context, config Config) (_ *rig, err error) {
	r := &rig{Config: config, last: config.First - 1, skipped: []string{}}
	defer func() {
		if err != nil {
			err = errors.Join(err, r.disconnect())
		}
	}()
	if r.store, err = sqlstore.Open(ctx, config.Ledger); err != nil {
		return nil, fmt.Errorf("database: %w", err)
	}
	if err := r.store.CheckSchema(ctx); err != nil {
		return nil, fmt.Errorf("database: %w", err)
	}
	if r.product, err = r.store.Product(ctx); err != nil {
		return nil, fmt.Errorf("database: %w", err)
	}
	if config.Redis == nil {
		return r, nil
	}
	if r.client, r.blocking, err = redisstock.Connect(*config.Redis); err != nil {
		return nil, fmt.Errorf("redis: %w", err)
	}
	if err := r.client.Ping(ctx).Err(); err != nil {
		return nil, fmt.Errorf("redis: no answer from %v: %w", config.Redis.Addrs, err)
	}
	return r, nil
}

// entries are the strategies that can run, in their order.
func (r *rig) entries() []strategy {
	var list []strategy
	for _, s := range strategies {
		switch {
		case len(r.Only) > 0 && !slices.Contains(r.Only, s.name):
		case s.needsRedis && r.client == nil:
			r.skipped = append(r.skipped, fmt.Sprintf("%s %s: no Redis is configured (SECKILL_REDIS_ADDRS)", s.name, s.mode))
		default:
			list = append(list, s)
		}
	}
	if r.client == nil {
		r.skipped = append(r.skipped, "limit: no Redis is configured (SECKILL_REDIS_ADDRS)")
	}
	return list
}

// stage opens a strategy's stock with a sale of so many units on it, both of
// which nobody else uses. remove takes away what they left.
func (r *rig) stage(ctx context.Context, s strategy, units int64) (stock domain.Stock, sale domain.SaleID, remove func() error, err error) {
	sale = r.next()
	prefix := fmt.Sprintf("%s:%d", r.Prefix, sale.Activity)
	if stock, err = s.open(r, prefix); err != nil {
		return nil, sale, nil, err
	}
	inSQL, isSQL := stock.(*sqlstore.Stock)
	for isSQL && inSQL.Partition(sale) < quietFrom {
		sale = r.next()
	}
	remove = func() error {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), graceTime)
		defer cancel()
		if isSQL {
			return inSQL.Erase(ctx, sale, fence)
		}
		return r.unlink(ctx, prefix)
	}
	now := time.Now()
	gate := domain.Gate{State: domain.Open, StartsAt: now.Add(-time.Hour), EndsAt: now.Add(24 * time.Hour), PerUserLimit: 1}
	err = stock.Seal(ctx, sale, fence, true)
	if err == nil {
		err = stock.Preheat(ctx, domain.Load{Sale: sale, Epoch: 1, Gate: gate, Total: units, Fence: fence})
	}
	if err != nil {
		return nil, sale, nil, errors.Join(err, remove())
	}
	return stock, sale, remove, nil
}

func (r *rig) next() domain.SaleID {
	r.last++
	return domain.SaleID{Activity: r.last, SKU: sku}
}

// unlink removes all keys with the prefix.
func (r *rig) unlink(ctx context.Context, prefix string) error {
	if r.client == nil {
		return nil
	}
	on := func(ctx context.Context, node redis.Cmdable) error {
		scan := node.Scan(ctx, 0, prefix+":*", scanPage).Iterator()
		for scan.Next(ctx) {
			// One by one: the keys of a cluster lie in different slots.
			if err := node.Unlink(ctx, scan.Val()).Err(); err != nil {
				return err
			}
		}
		return scan.Err()
	}
	if cluster, ok := r.client.(*redis.ClusterClient); ok {
		return cluster.ForEachMaster(ctx, func(ctx context.Context, node *redis.Client) error { return on(ctx, node) })
	}
	return on(ctx, r.client)
}

// close removes what is left of the run and disconnects, also when ctx has ended.
func (r *rig) close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), graceTime)
	defer cancel()
	return errors.Join(r.unlink(ctx, r.Prefix), r.disconnect())
}

func (r *rig) disconnect() error {
	var errs []error
	if r.client != nil {
		errs = append(errs, r.client.Close(), r.blocking.Close())
	}
	if r.store != nil {
		errs = append(errs, r.store.Close())
	}
	return errors.Join(errs...)
}
