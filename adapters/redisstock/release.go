package redisstock

import (
	"context"
	"slices"

	"github.com/redis/go-redis/v9"

	"seckill/domain"
)

// Release implements domain.Admission.
func (s *Stock) Release(ctx context.Context, sale domain.SaleID, holds ...domain.OrderID) (int64, error) {
	keys := s.keys(sale)
	return s.each(ctx, releaseScript, []string{keys.sale, keys.holds, keys.buyers}, nil, holds)
}

// Settle implements domain.Admission.
func (s *Stock) Settle(ctx context.Context, sale domain.SaleID, holds ...domain.OrderID) (int64, error) {
	keys := s.keys(sale)
	return s.each(ctx, settleScript, []string{keys.sale, keys.holds}, nil, holds)
}

// Requeue implements domain.StockAudit. A second hold (OrderID.Late) never had
// an intent, so it is left alone.
func (s *Stock) Requeue(ctx context.Context, sale domain.SaleID, holds ...domain.OrderID) (int, error) {
	first := slices.DeleteFunc(slices.Clone(holds), func(id domain.OrderID) bool { return id != id.Order() })
	keys := s.keys(sale)
	n, err := s.each(ctx, requeueScript, []string{keys.sale, keys.holds, keys.queue, keys.depth}, []any{keys.id}, first)
	return int(n), err
}

// each runs a script over ids, at most maxIDs a call, and adds up what the
// calls returned. Without ids it only finds out whether the sale is ready.
func (s *Stock) each(ctx context.Context, script *redis.Script, keys []string, args []any, ids []domain.OrderID) (int64, error) {
	if err := checkIDs(ids); err != nil {
		return 0, err
	}
	if len(ids) == 0 {
		return 0, s.ready(ctx, keys[0])
	}
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
