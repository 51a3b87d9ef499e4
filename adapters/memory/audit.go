package memory

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"seckill/domain"
)

// Bounds of what one call lists.
const (
	maxDrifts = 100  // buyers named by an audit
	holdsPage = 1000 // records that one page of Holds looks at
)

// Audit implements domain.StockAudit.
func (s *Stock) Audit(_ context.Context, id domain.SaleID) (domain.Audit, error) {
	sale, err := s.find(id)
	if err != nil {
		return domain.Audit{}, err
	}
	defer sale.mu.Unlock()
	return s.audit(id, sale), nil
}

func (s *Stock) audit(id domain.SaleID, sale *sale) domain.Audit {
	count := sale.count()
	audit := domain.Audit{Level: sale.level(), HeldUnits: count.held, SoldUnits: count.sold}
	audit.Level.Queued, audit.QueuedUnits = s.queue.count(id)
	name := func(buyer domain.BuyerID) {
		recorded, counted := sale.buyers[buyer], count.buyers[buyer]
		if recorded != counted && len(audit.Buyers) < maxDrifts {
			audit.Buyers = append(audit.Buyers, domain.BuyerDrift{Buyer: buyer, Recorded: recorded, Counted: counted})
		}
	}
	for buyer := range count.buyers {
		name(buyer)
	}
	for buyer := range sale.buyers {
		if _, done := count.buyers[buyer]; !done {
			name(buyer)
		}
	}
	return audit
}

// count is what the records of a sale add up to.
type count struct {
	held, sold int64
	buyers     map[domain.BuyerID]int64
}

func (s *sale) count() count {
	c := count{buyers: map[domain.BuyerID]int64{}}
	for _, hold := range s.holds {
		switch hold.State {
		case domain.Held:
			c.held += hold.Quantity
		case domain.Sold:
			c.sold += hold.Quantity
		case domain.Released:
			continue
		}
		c.buyers[hold.Buyer] += hold.Quantity
	}
	return c
}

// Holds implements domain.StockAudit. The cursor is a place in the listing by
// arrival; when the sale was loaded anew since, the listing starts over.
func (s *Stock) Holds(_ context.Context, id domain.SaleID, cursor string) ([]domain.Hold, string, error) {
	sale, err := s.find(id)
	if err != nil {
		return nil, "", nil // a sale that is not there has no holds
	}
	defer sale.mu.Unlock()
	from, err := sale.place(cursor)
	if err != nil {
		return nil, "", err
	}
	to := min(from+holdsPage, len(sale.listing))
	var page []domain.Hold
	for _, hold := range sale.listing[from:to] {
		if hold.State == domain.Held {
			page = append(page, *hold)
		}
	}
	if to == len(sale.listing) {
		return page, "", nil
	}
	return page, fmt.Sprintf("%d.%d", sale.generation, to), nil
}

func (s *sale) place(cursor string) (int, error) {
	if cursor == "" {
		return 0, nil
	}
	left, right, _ := strings.Cut(cursor, ".")
	generation, err1 := strconv.ParseInt(left, 10, 64)
	place, err2 := strconv.Atoi(right)
	switch {
	case err1 != nil || err2 != nil || place < 0:
		return 0, domain.Invalid("cursor", "was not returned by an earlier page")
	case generation != s.generation || place > len(s.listing):
		return 0, nil
	}
	return place, nil
}

// Requeue implements domain.StockAudit. A second hold (OrderID.Late) never had
// an intent, so it is left alone.
func (s *Stock) Requeue(_ context.Context, id domain.SaleID, holds ...domain.OrderID) (int, error) {
	sale, err := s.find(id)
	if err != nil {
		return 0, err
	}
	defer sale.mu.Unlock()
	now := s.clock.Now()
	var intents []domain.Intent
	for _, order := range holds {
		hold := sale.holds[order]
		if hold == nil || hold.State != domain.Held || order != order.Order() {
			continue
		}
		intents = append(intents, sale.intent(id, hold, now))
	}
	s.queue.push(id, intents, now)
	return len(intents), nil
}

// Adopt implements domain.StockAudit. The buyer's limit is not asked: the
// ledger has accepted the order.
func (s *Stock) Adopt(_ context.Context, id domain.SaleID, hold domain.Hold, fence int64) (int64, error) {
	if hold.State == domain.Released {
		return 0, domain.Invalid("hold", "must be held or sold")
	}
	if err := checkHold(hold); err != nil {
		return 0, err
	}
	sale, err := s.find(id)
	if err != nil {
		return 0, err
	}
	defer sale.mu.Unlock()
	if err := sale.fenced(fence); err != nil {
		return 0, err
	}
	if old := sale.holds[hold.Order]; old != nil && old.State != domain.Released {
		return 0, nil
	}
	if sale.available < hold.Quantity {
		return 0, fmt.Errorf("%d units available, %d needed: %w", sale.available, hold.Quantity, domain.ErrConflict)
	}
	sale.fence = fence
	sale.add(hold)
	sale.available -= hold.Quantity
	return hold.Quantity, nil
}

// Correct implements domain.StockAudit. State and queued units may differ from
// what was seen: they are no part of the account of units.
func (s *Stock) Correct(_ context.Context, id domain.SaleID, seen domain.Level, fence int64) (domain.Audit, error) {
	sale, err := s.find(id)
	if err != nil {
		return domain.Audit{}, err
	}
	defer sale.mu.Unlock()
	if err := sale.fenced(fence); err != nil {
		return domain.Audit{}, err
	}
	level := sale.level()
	seen.State, seen.Queued = level.State, level.Queued
	if level != seen {
		return domain.Audit{}, domain.ErrConflict
	}
	count := sale.count()
	if count.held+count.sold > sale.total {
		return domain.Audit{}, fmt.Errorf("%d units held and sold of %d: %w", count.held+count.sold, sale.total, domain.ErrUnbalanced)
	}
	sale.fence = fence
	sale.heldUnits, sale.soldUnits, sale.buyers = count.held, count.sold, count.buyers
	sale.available = sale.total - count.held - count.sold
	s.queue.recount(id)
	return s.audit(id, sale), nil
}
