// Package memory keeps everything in the memory of one process: for the
// embedded mode, for tests, and as the yardstick that the other adapters are
// compared with. Nothing survives the process; what must survive a crash is in
// the ledger before the buyer is answered (accept = committed).
package memory

import (
	"context"
	"sync"

	"seckill/domain"
)

// maxClaims bounds one Reserve call: one lock is held for all its claims.
const maxClaims = 1000

// Stock is the hot store of one process. Every sale has a mutex of its own, and
// every method of the port is one critical section under it, Preheat included.
// The queue entry is written under the same mutex as the hold, so there are
// both or neither.
//
// Released holds stay, because a repeat must find them: a sale's memory grows
// with its accepted grabs until it is preheated again or archived.
type Stock struct {
	clock domain.Clock
	queue *Queue

	mu    sync.RWMutex // guards the map; taken before a sale's own mutex
	sales map[domain.SaleID]*sale
}

var _ domain.Stock = (*Stock)(nil)

// NewStock makes an empty hot store that judges windows by clock.
func NewStock(clock domain.Clock, options ...Option) *Stock {
	return &Stock{
		clock: clock,
		queue: newQueue(clock, options),
		sales: map[domain.SaleID]*sale{},
	}
}

// Queue is where Reserve and Requeue put their order intents.
func (s *Stock) Queue() *Queue { return s.queue }

// find locks a sale that is ready. The caller unlocks it.
// A sale that is archived between the look-up and the lock is not ready then.
func (s *Stock) find(id domain.SaleID) (*sale, error) {
	s.mu.RLock()
	found := s.sales[id]
	s.mu.RUnlock()
	if found == nil {
		return nil, domain.ErrNotReady
	}
	found.mu.Lock()
	if found.stage != ready {
		found.mu.Unlock()
		return nil, domain.ErrNotReady
	}
	return found, nil
}

// Reserve implements domain.Admission.
func (s *Stock) Reserve(_ context.Context, id domain.SaleID, claims []domain.Claim) ([]domain.Outcome, error) {
	if err := checkClaims(claims); err != nil {
		return nil, err
	}
	outcomes := make([]domain.Outcome, len(claims))
	sale, err := s.find(id)
	if err != nil {
		for i := range outcomes {
			outcomes[i].Verdict = domain.NotReady
		}
		return outcomes, nil
	}
	defer sale.mu.Unlock()

	now := s.clock.Now()
	var accepted []domain.Intent
	for i, claim := range claims {
		outcomes[i] = sale.reserve(claim, now)
		if outcomes[i].Verdict == domain.Accepted && !outcomes[i].Replayed {
			accepted = append(accepted, sale.intent(id, sale.holds[claim.Order], now))
		}
	}
	s.queue.push(id, accepted, now)
	return outcomes, nil
}

// Reacquire implements domain.Admission. While the first hold still has its
// units, a second one would count them twice: LimitReached.
func (s *Stock) Reacquire(_ context.Context, id domain.SaleID, claim domain.Claim) (domain.Outcome, error) {
	if err := checkClaim(claim); err != nil {
		return domain.Outcome{}, err
	}
	sale, err := s.find(id)
	if err != nil {
		return domain.Outcome{Verdict: domain.NotReady}, nil
	}
	defer sale.mu.Unlock()
	return sale.reacquire(claim, s.clock.Now()), nil
}

// Release implements domain.Admission.
func (s *Stock) Release(_ context.Context, id domain.SaleID, holds ...domain.OrderID) (int64, error) {
	sale, err := s.find(id)
	if err != nil {
		return 0, err
	}
	defer sale.mu.Unlock()
	now := s.clock.Now()
	var units int64
	for _, hold := range holds {
		units += sale.release(hold, now)
	}
	return units, nil
}

// Settle implements domain.Admission.
func (s *Stock) Settle(_ context.Context, id domain.SaleID, holds ...domain.OrderID) (int64, error) {
	sale, err := s.find(id)
	if err != nil {
		return 0, err
	}
	defer sale.mu.Unlock()
	var units int64
	for _, hold := range holds {
		units += sale.settle(hold)
	}
	return units, nil
}

// Level implements domain.Admission.
func (s *Stock) Level(_ context.Context, id domain.SaleID) (domain.Level, error) {
	sale, err := s.find(id)
	if err != nil {
		return domain.Level{}, err
	}
	defer sale.mu.Unlock()
	return s.level(id, sale), nil
}

func (s *Stock) level(id domain.SaleID, sale *sale) domain.Level {
	level := sale.level()
	level.Queued = s.queue.units(id)
	return level
}

// Hold implements domain.Admission. A sealed sale still shows its holds, so
// that a buyer who polls during a rebuild is not told that the order is unknown.
func (s *Stock) Hold(_ context.Context, id domain.SaleID, order domain.OrderID) (domain.Hold, error) {
	s.mu.RLock()
	sale := s.sales[id]
	s.mu.RUnlock()
	if sale == nil {
		return domain.Hold{}, domain.ErrNotFound
	}
	sale.mu.Lock()
	defer sale.mu.Unlock()
	hold := sale.holds[order]
	if hold == nil {
		return domain.Hold{}, domain.ErrNotFound
	}
	return *hold, nil
}

func checkClaims(claims []domain.Claim) error {
	if len(claims) > maxClaims {
		return domain.Invalid("claims", "must be at most %d", maxClaims)
	}
	for _, claim := range claims {
		if err := checkClaim(claim); err != nil {
			return err
		}
	}
	return nil
}

func checkClaim(claim domain.Claim) error {
	switch {
	case claim.Order == "":
		return domain.Invalid("orderId", "is missing")
	case claim.Buyer == "":
		return domain.Invalid("userId", "is missing")
	case claim.Quantity < 1 || claim.Quantity > domain.MaxQuantity:
		return domain.Invalid("quantity", "must be an integer from 1 to %d", domain.MaxQuantity)
	}
	return nil
}
