package sqlstore

import (
	"context"

	"seckill/domain"
)

// Erase removes a sale and all that is held and queued of it, whatever its
// state: it is how a benchmark takes its scratch sale away. Repeat: does nothing.
func (s *Stock) Erase(ctx context.Context, sale domain.SaleID, fence int64) error {
	if err := s.Seal(ctx, sale, fence, true); err != nil {
		return err
	}
	_, err := s.store.change(ctx, s.store.write, "DELETE FROM hot_intents WHERE sale = ?", string(keyOf(sale)))
	if err != nil {
		return fault(err)
	}
	gate := domain.Gate{State: domain.Closed, PerUserLimit: 1}
	if err := s.Preheat(ctx, domain.Load{Sale: sale, Gate: gate, Total: 1, Fence: fence}); err != nil {
		return err
	}
	return s.Archive(ctx, sale, fence)
}

// Partition is the number of the queue that a sale's intents are in.
func (s *Stock) Partition(sale domain.SaleID) int { return s.queue.home(sale.String()) }
