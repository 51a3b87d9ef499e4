package redisstock

import (
	"context"
	"slices"

	"github.com/redis/go-redis/v9"

	"seckill/domain"
)

// Release implements domain.Admission.
func (s *Stock) Release(ctx context.Context, sale domain.SaleID, holds ...domain.OrderID) (int64, error) {
	return s.each(ctx, sale, holds, func(keys saleKeys, ids []domain.OrderID) (int64, error) {
		return s.apply(ctx, releaseScript, []string{keys.sale, keys.holds, keys.buyers}, nil, ids)
	})
}

// Settle implements domain.Admission.
func (s *Stock) Settle(ctx context.Context, sale domain.SaleID, holds ...domain.OrderID) (int64, error) {
	return s.each(ctx, sale, holds, func(keys saleKeys, ids []domain.OrderID) (int64, error) {
		return s.apply(ctx, settleScript, []string{keys.sale, keys.holds}, nil, ids)
	})
}

// Requeue implements domain.StockAudit. A second hold (OrderID.Late) never had
// an intent, so it is left alone.
func (s *Stock) Requeue(ctx context.Context, sale domain.SaleID, holds ...domain.OrderID) (int, error) {
	first := slices.DeleteFunc(slices.Clone(holds), func(id domain.OrderID) bool { return id != id.Order() })
	n, err := s.each(ctx, sale, first, func(keys saleKeys, ids []domain.OrderID) (int64, error) {
		return s.apply(ctx, requeueScript, []string{keys.sale, keys.holds, keys.queue, keys.depth}, []any{keys.id}, ids)
	})
	return int(n), err
}

// each does something for the ids of each segment, and adds up. Without ids it
// only finds out whether the sale is ready.
func (s *Stock) each(ctx context.Context, sale domain.SaleID, ids []domain.OrderID, do func(saleKeys, []domain.OrderID) (int64, error)) (int64, error) {
	if err := checkIDs(ids); err != nil {
		return 0, err
	}
	layout, err := s.find(ctx, sale)
	if err != nil {
		return 0, err
	}
	if len(ids) == 0 {
		return 0, s.ready(ctx, layout.segments[0].sale)
	}
	lists, err := s.locate(ctx, layout, ids)
	if err != nil {
		return 0, err
	}
	var sum int64
	for number, list := range lists {
		n, err := do(layout.segments[number], list)
		sum += n
		if err != nil {
			return sum, err
		}
	}
	return sum, nil
}

// apply runs a script over ids, at most maxIDs a call, and adds up what the
// calls returned.
func (s *Stock) apply(ctx context.Context, script *redis.Script, keys []string, args []any, ids []domain.OrderID) (int64, error) {
	var sum int64
	for part := range slices.Chunk(ids, maxIDs) {
		all := slices.Grow(slices.Clone(args), len(part))
		for _, id := range part {
			all = append(all, string(id))
		}
		reply, err := s.command(ctx, script, keys, all...)
		if err != nil {
			return sum, err
		}
		n, err := reply.number(1)
		if err != nil {
			return sum, err
		}
		sum += n
	}
	return sum, nil
}

func (s *Stock) ready(ctx context.Context, saleKey string) error {
	values, err := s.config.Client.HMGet(ctx, saleKey, "state").Result()
	if err != nil {
		return unavailable(err)
	}
	if state, _ := values[0].(string); state == "" || state == sealedState {
		return domain.ErrNotReady
	}
	return nil
}
