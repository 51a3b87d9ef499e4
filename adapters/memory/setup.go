package memory

import (
	"context"
	"fmt"
	"time"

	"seckill/domain"
)

// Seal implements domain.StockSetup.
func (s *Stock) Seal(_ context.Context, id domain.SaleID, fence int64, force bool) error {
	s.mu.Lock()
	found := s.sales[id]
	if found == nil {
		found = &sale{}
		s.sales[id] = found
	}
	found.mu.Lock() // before the map is free, so that no Archive comes between
	s.mu.Unlock()
	defer found.mu.Unlock()

	if err := found.fenced(fence); err != nil {
		return err
	}
	if !force && s.busy(id, found) {
		return domain.ErrHasHolds
	}
	found.stage, found.fence = sealed, fence
	return nil
}

// Preheat implements domain.StockSetup. Here it is one step for any load.
// Entries of the sale that are still queued stay queued, under their old epoch.
func (s *Stock) Preheat(_ context.Context, load domain.Load) error {
	if err := checkLoad(load); err != nil {
		return err
	}
	s.mu.RLock()
	sale := s.sales[load.Sale]
	s.mu.RUnlock()
	if sale == nil {
		return domain.ErrState
	}
	sale.mu.Lock()
	defer sale.mu.Unlock()
	if err := sale.fenced(load.Fence); err != nil {
		return err
	}
	if sale.stage != sealed {
		return domain.ErrState
	}
	sale.load(load)
	return nil
}

// SetGate implements domain.StockSetup.
func (s *Stock) SetGate(_ context.Context, id domain.SaleID, gate domain.Gate, fence int64) error {
	if err := checkGate(gate); err != nil {
		return err
	}
	sale, err := s.find(id)
	if err != nil {
		return err
	}
	defer sale.mu.Unlock()
	if err := sale.fenced(fence); err != nil {
		return err
	}
	sale.fence, sale.gate = fence, whole(gate)
	return nil
}

// Gate implements domain.StockSetup.
func (s *Stock) Gate(_ context.Context, id domain.SaleID) (domain.Gate, error) {
	sale, err := s.find(id)
	if err != nil {
		return domain.Gate{}, err
	}
	defer sale.mu.Unlock()
	return sale.gate, nil
}

// SetTotal implements domain.StockSetup.
func (s *Stock) SetTotal(_ context.Context, id domain.SaleID, seen, total, fence int64) error {
	if total < 1 || total > domain.MaxInteger {
		return domain.Invalid("total", "must be an integer from 1 to %d", int64(domain.MaxInteger))
	}
	sale, err := s.find(id)
	if err != nil {
		return err
	}
	defer sale.mu.Unlock()
	if sale.total == total {
		return nil
	}
	if err := sale.fenced(fence); err != nil {
		return err
	}
	switch {
	case sale.total != seen:
		return fmt.Errorf("the total is %d: %w", sale.total, domain.ErrConflict)
	case sale.available < seen-total:
		return fmt.Errorf("%d units are available: %w", sale.available, domain.ErrUnbalanced)
	}
	sale.fence = fence
	sale.available += total - seen
	sale.total = total
	return nil
}

// Archive implements domain.StockSetup. The sale's fence is forgotten with it.
func (s *Stock) Archive(_ context.Context, id domain.SaleID, fence int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := s.sales[id]
	if found == nil {
		return nil
	}
	found.mu.Lock()
	defer found.mu.Unlock()
	if err := found.fenced(fence); err != nil {
		return err
	}
	if s.busy(id, found) {
		return domain.ErrHasHolds
	}
	// Whoever looked the sale up before and waits for its mutex finds it absent.
	found.stage, found.holds = absent, nil
	delete(s.sales, id)
	return nil
}

// busy says whether a sale has holds or queued orders.
func (s *Stock) busy(id domain.SaleID, sale *sale) bool {
	return sale.heldUnits > 0 || s.queue.units(id) > 0
}

// load replaces the whole account.
func (s *sale) load(load domain.Load) {
	s.stage, s.fence = ready, load.Fence
	s.epoch, s.gate, s.total = load.Epoch, whole(load.Gate), load.Total
	s.heldUnits, s.soldUnits = 0, 0
	s.holds = make(map[domain.OrderID]*domain.Hold, len(load.Holds))
	s.listing = make([]*domain.Hold, 0, len(load.Holds))
	s.generation++
	s.requests = make(map[request]domain.OrderID, len(load.Holds))
	s.buyers = map[domain.BuyerID]int64{}
	for _, hold := range load.Holds {
		s.add(hold)
	}
	s.available = s.total - s.heldUnits - s.soldUnits
}

// whole cuts a gate's times to the millisecond, the precision of every adapter.
func whole(gate domain.Gate) domain.Gate {
	gate.StartsAt = time.UnixMilli(gate.StartsAt.UnixMilli())
	gate.EndsAt = time.UnixMilli(gate.EndsAt.UnixMilli())
	return gate
}

func checkLoad(load domain.Load) error {
	if err := load.Validate(); err != nil {
		return err
	}
	for _, hold := range load.Holds {
		if err := checkHold(hold); err != nil {
			return err
		}
	}
	return nil
}

func checkGate(gate domain.Gate) error {
	if gate.PerUserLimit < 1 || gate.PerUserLimit > domain.MaxInteger {
		return domain.Invalid("perUserLimit", "must be an integer from 1 to %d", int64(domain.MaxInteger))
	}
	return nil
}

// checkHold accepts a hold that comes from the ledger.
func checkHold(hold domain.Hold) error {
	switch hold.State {
	case domain.Held, domain.Sold, domain.Released:
	default:
		return domain.Invalid("holds", "must be held, sold or released")
	}
	return checkClaim(domain.Claim{Order: hold.Order, Buyer: hold.Buyer, Quantity: hold.Quantity})
}
