package memory

import (
	"sync"
	"time"

	"seckill/domain"
)

// stage says what may be done with a sale. The zero value is a sale that is
// not there, which is also what is left of an archived one.
type stage uint8

const (
	absent stage = iota
	sealed       // may be loaded; nothing else changes
	ready
)

// sale is the account of one sale. Its methods expect the mutex to be held.
type sale struct {
	mu    sync.Mutex
	stage stage
	fence int64 // highest number seen

	epoch      int64
	gate       domain.Gate
	total      int64
	available  int64
	heldUnits  int64
	soldUnits  int64
	holds      map[domain.OrderID]*domain.Hold
	listing    []*domain.Hold             // the same, by arrival: pages of it stay put while it grows
	generation int64                      // of the listing; grows when it is replaced
	requests   map[request]domain.OrderID // never under an empty id
	buyers     map[domain.BuyerID]int64   // units held and sold
}

// request is what a repeated grab is known by: two buyers may use the same id.
type request struct {
	buyer domain.BuyerID
	id    domain.RequestID
}

// reserve decides one claim: replay, gate, limit, stock.
func (s *sale) reserve(claim domain.Claim, now time.Time) domain.Outcome {
	if hold := s.holds[claim.Order]; hold != nil {
		if hold.State == domain.Released {
			return s.refuse(domain.Withdrawn)
		}
		return s.replay(claim.Order)
	}
	if first, used := s.requests[request{claim.Buyer, claim.Request}]; used {
		if !s.sameQuantity(first, claim.Quantity) {
			return s.refuse(domain.RequestReused)
		}
		return s.replay(first.Order())
	}
	if verdict := s.gate.Judge(now); verdict != domain.Accepted {
		outcome := s.refuse(verdict)
		if verdict == domain.NotStarted {
			outcome.StartsAt = s.gate.StartsAt
		}
		return outcome
	}
	return s.take(claim, claim.Order, now)
}

// reacquire decides a claim for units under the order's second hold. Of the
// released ones only a tombstone stays released.
func (s *sale) reacquire(claim domain.Claim, now time.Time) domain.Outcome {
	if late := s.holds[claim.Order.Late()]; late != nil {
		switch {
		case late.State != domain.Released:
			return s.replay(claim.Order)
		case late.Quantity == 0:
			return s.refuse(domain.Withdrawn)
		}
	}
	if first := s.holds[claim.Order]; first != nil && first.State != domain.Released {
		return s.refuse(domain.LimitReached)
	}
	return s.take(claim, claim.Order.Late(), now)
}

// take decides by limit and stock, and writes the hold.
func (s *sale) take(claim domain.Claim, id domain.OrderID, now time.Time) domain.Outcome {
	// A subtraction cannot overflow here, the sum of two large figures could.
	if s.buyers[claim.Buyer] > s.gate.PerUserLimit-claim.Quantity {
		return s.refuse(domain.LimitReached)
	}
	if s.available < claim.Quantity {
		return s.refuse(domain.SoldOut)
	}
	before := s.available
	s.add(domain.Hold{
		Order:     id,
		Buyer:     claim.Buyer,
		Request:   claim.Request,
		Quantity:  claim.Quantity,
		State:     domain.Held,
		CreatedAt: now,
	})
	s.available -= claim.Quantity
	return domain.Outcome{Verdict: domain.Accepted, Order: claim.Order, Before: before, After: s.available}
}

// add records a hold, which is no tombstone and counts no units yet,
// everywhere but in available.
func (s *sale) add(hold domain.Hold) {
	s.record(hold)
	switch hold.State {
	case domain.Held:
		s.heldUnits += hold.Quantity
		s.buyers[hold.Buyer] += hold.Quantity
	case domain.Sold:
		s.soldUnits += hold.Quantity
		s.buyers[hold.Buyer] += hold.Quantity
	case domain.Released:
	}
	key := request{hold.Buyer, hold.Request}
	if _, used := s.requests[key]; !used && hold.Request != "" {
		s.requests[key] = hold.Order
	}
}

// record writes a hold, in its old place of the listing if it has one.
func (s *sale) record(hold domain.Hold) {
	if old := s.holds[hold.Order]; old != nil {
		*old = hold
		return
	}
	s.holds[hold.Order] = &hold
	s.listing = append(s.listing, &hold)
}

// release frees a hold's units, or leaves a tombstone where there is none.
func (s *sale) release(id domain.OrderID, now time.Time) int64 {
	hold := s.holds[id]
	if hold == nil {
		s.record(domain.Hold{Order: id, State: domain.Released, CreatedAt: now})
		return 0
	}
	if hold.State != domain.Held {
		return 0
	}
	hold.State = domain.Released
	s.heldUnits -= hold.Quantity
	s.available += hold.Quantity
	s.setBuyer(hold.Buyer, s.buyers[hold.Buyer]-hold.Quantity)
	return hold.Quantity
}

func (s *sale) settle(id domain.OrderID) int64 {
	hold := s.holds[id]
	if hold == nil || hold.State != domain.Held {
		return 0
	}
	hold.State = domain.Sold
	s.heldUnits -= hold.Quantity
	s.soldUnits += hold.Quantity
	return hold.Quantity
}

func (s *sale) setBuyer(buyer domain.BuyerID, units int64) {
	if units == 0 {
		delete(s.buyers, buyer)
		return
	}
	s.buyers[buyer] = units
}

func (s *sale) sameQuantity(first domain.OrderID, quantity int64) bool {
	return s.holds[first].Quantity == quantity
}

func (s *sale) refuse(verdict domain.Verdict) domain.Outcome {
	return domain.Outcome{Verdict: verdict, Before: s.available, After: s.available}
}

func (s *sale) replay(order domain.OrderID) domain.Outcome {
	outcome := s.refuse(domain.Accepted)
	outcome.Order, outcome.Replayed = order, true
	return outcome
}

func (s *sale) intent(id domain.SaleID, hold *domain.Hold, now time.Time) domain.Intent {
	return domain.Intent{
		Order:    hold.Order,
		Sale:     id,
		Buyer:    hold.Buyer,
		Request:  hold.Request,
		Quantity: hold.Quantity,
		Epoch:    s.epoch,
		At:       now,
	}
}

// level is the account without the queue's share.
func (s *sale) level() domain.Level {
	return domain.Level{
		Epoch:     s.epoch,
		State:     s.gate.State,
		Total:     s.total,
		Available: s.available,
		Held:      s.heldUnits,
		Sold:      s.soldUnits,
	}
}

// fenced refuses a number lower than one seen before. A write that is carried
// out stores its number.
func (s *sale) fenced(fence int64) error {
	if fence < s.fence {
		return domain.ErrFenced
	}
	return nil
}
