package conformance

import (
	"fmt"
	"math/rand/v2"

	"seckill/domain"
)

// covers P5
var reacquireTests = []stockTest{
	{"takes units again after the first hold was released", func(s *stockStage) {
		sale := s.openSale(10, 3)
		c := s.expired(sale, "alice", 2)
		outcome := s.reacquire(sale, c)
		s.wantFresh(outcome, c.Order)
		s.wantStock(outcome, 10, 8)
		s.wantUnits(sale, 8, 2, 0)
		s.wantHold(sale, c.Order, domain.Released)
		late := s.wantHold(sale, c.Order.Late(), domain.Held)
		if late.Buyer != c.Buyer || late.Quantity != 2 {
			s.Fatalf("second hold is %+v, want that of %+v", late, c)
		}
		s.settle(sale, 2, c.Order.Late())
		s.wantUnits(sale, 8, 0, 2)
	}},
	{"takes nothing while the first hold has its units", func(s *stockStage) {
		sale := s.openSale(10, 9)
		held, sold := s.request(sale, "alice", "r-1", 2), s.claim(sale, "bob", 2)
		s.wantVerdicts(sale, []domain.Claim{held, sold}, domain.Accepted, domain.Accepted)
		s.settle(sale, 2, sold.Order)
		for _, c := range []domain.Claim{held, sold} {
			if outcome := s.reacquire(sale, c); outcome.Verdict == domain.Accepted {
				s.Fatalf("outcome is %+v, want a refusal", outcome)
			}
			s.wantNoHold(sale, c.Order.Late())
		}
		s.wantUnits(sale, 6, 2, 2)
	}},
	{"takes units for an order whose first hold the hot store does not know", func(s *stockStage) {
		sale := s.openSale(10, 9) // as after a rebuild: expired orders are not loaded
		c := s.claim(sale, "alice", 2)
		s.wantFresh(s.reacquire(sale, c), c.Order)
		s.wantUnits(sale, 8, 2, 0)
	}},
	{"ignores the gate", func(s *stockStage) {
		sale := s.openSale(10, 3)
		for _, state := range []domain.State{domain.Paused, domain.Closed, domain.Ready} {
			c := s.expired(sale, "alice", 1)
			gate := s.openGate(3)
			gate.State = state
			s.must(s.Stock.SetGate(s.Context(), sale, gate, 1))
			s.wantFresh(s.reacquire(sale, c), c.Order)
			s.must(s.Stock.SetGate(s.Context(), sale, s.openGate(3), 1))
		}
		s.wantUnits(sale, 7, 3, 0)
	}},
	{"keeps the buyer's limit", func(s *stockStage) {
		sale := s.openSale(10, 2)
		c := s.expired(sale, "alice", 2)
		second := s.grab(sale, "alice", 1)
		if outcome := s.reacquire(sale, c); outcome.Verdict != domain.LimitReached {
			s.Fatalf("outcome is %+v, want %v", outcome, domain.LimitReached)
		}
		s.wantNoHold(sale, c.Order.Late())
		s.release(sale, 1, second)
		s.wantFresh(s.reacquire(sale, c), c.Order)
		s.wantVerdict(sale, s.claim(sale, "alice", 1), domain.LimitReached) // it counts
	}},
	{"is refused when the units are gone", func(s *stockStage) {
		sale := s.openSale(2, 2)
		c := s.expired(sale, "alice", 2)
		s.grab(sale, "bob", 1)
		outcome := s.reacquire(sale, c)
		if outcome.Verdict != domain.SoldOut {
			s.Fatalf("outcome is %+v, want %v", outcome, domain.SoldOut)
		}
		s.wantStock(outcome, 1, 1)
		s.wantNoHold(sale, c.Order.Late())
	}},
	{"deducts once when it is repeated", func(s *stockStage) {
		sale := s.openSale(10, 2)
		c := s.expired(sale, "alice", 2)
		s.wantFresh(s.reacquire(sale, c), c.Order)
		for range 10 {
			s.wantReplay(s.reacquire(sale, c), c.Order)
		}
		s.settle(sale, 2, c.Order.Late())
		s.wantReplay(s.reacquire(sale, c), c.Order)
		s.wantUnits(sale, 8, 0, 2)
	}},
	{"queues nothing", func(s *stockStage) {
		sale := s.openSale(10, 2)
		c := s.expired(sale, "alice", 2)
		s.wantFresh(s.reacquire(sale, c), c.Order)
		s.wantDepth(0)
		s.wantQueued(sale, 0)
	}},
	{"takes units again after the second hold was released too", func(s *stockStage) {
		sale := s.openSale(10, 2)
		c := s.expired(sale, "alice", 2)
		for range 3 {
			s.wantFresh(s.reacquire(sale, c), c.Order)
			s.wantReplay(s.reacquire(sale, c), c.Order)
			s.wantUnits(sale, 8, 2, 0)
			late := s.wantHold(sale, c.Order.Late(), domain.Held)
			if late.Buyer != c.Buyer || late.Quantity != 2 {
				s.Fatalf("second hold is %+v, want that of %+v", late, c)
			}
			s.wantVerdict(sale, s.claim(sale, "alice", 1), domain.LimitReached)
			s.release(sale, 2, c.Order.Late())
			s.release(sale, 0, c.Order.Late())
			s.wantUnits(sale, 10, 0, 0)
			if n := len(s.listHolds(sale)); n != 0 {
				s.Fatalf("%d holds are listed, want none", n)
			}
		}
		s.wantFresh(s.reacquire(sale, c), c.Order)
		if n := len(s.listHolds(sale)); n != 1 {
			s.Errorf("%d holds are listed, want 1", n)
		}
		s.settle(sale, 2, c.Order.Late())
		s.release(sale, 0, c.Order.Late())
		s.wantReplay(s.reacquire(sale, c), c.Order)
		s.wantUnits(sale, 8, 0, 2)
		s.wantDepth(0)
	}},
	{"asks limit and stock again after the second hold was released", func(s *stockStage) {
		sale := s.openSale(3, 2)
		c := s.expired(sale, "alice", 2)
		s.wantFresh(s.reacquire(sale, c), c.Order)
		s.release(sale, 2, c.Order.Late())

		own := s.grab(sale, "alice", 1)
		if outcome := s.reacquire(sale, c); outcome.Verdict != domain.LimitReached {
			s.Fatalf("outcome is %+v, want %v", outcome, domain.LimitReached)
		}
		s.release(sale, 1, own)
		other := s.grab(sale, "bob", 2)
		outcome := s.reacquire(sale, c)
		if outcome.Verdict != domain.SoldOut {
			s.Fatalf("outcome is %+v, want %v", outcome, domain.SoldOut)
		}
		s.wantStock(outcome, 1, 1)
		s.wantHold(sale, c.Order.Late(), domain.Released)
		s.wantUnits(sale, 1, 2, 0)
		s.release(sale, 2, other)
		s.wantFresh(s.reacquire(sale, c), c.Order)
		s.wantUnits(sale, 1, 2, 0)
	}},
	{"takes nothing while the first hold has its units again, whatever became of the second", func(s *stockStage) {
		sale := s.openSale(10, 9)
		c := s.expired(sale, "alice", 2)
		s.wantFresh(s.reacquire(sale, c), c.Order)
		s.release(sale, 2, c.Order.Late())
		s.adopt(sale, 2, domain.Hold{Order: c.Order, Buyer: c.Buyer, Quantity: 2, State: domain.Held, CreatedAt: s.Now()})
		if outcome := s.reacquire(sale, c); outcome.Verdict != domain.LimitReached {
			s.Fatalf("outcome is %+v, want %v", outcome, domain.LimitReached)
		}
		s.wantUnits(sale, 8, 2, 0)
	}},
	{"fails after a release that came first, each time", func(s *stockStage) {
		sale := s.openSale(10, 2)
		c := s.expired(sale, "alice", 2)
		for range 3 {
			s.release(sale, 0, c.Order.Late())
			if outcome := s.reacquire(sale, c); outcome.Verdict != domain.Withdrawn {
				s.Fatalf("outcome is %+v, want %v", outcome, domain.Withdrawn)
			}
		}
		s.wantUnits(sale, 10, 0, 0)
	}},
	{"leaves the answer to the first request as it was", func(s *stockStage) {
		sale := s.openSale(10, 4)
		c := s.expired(sale, "alice", 2)
		s.wantFresh(s.reacquire(sale, c), c.Order)
		outcome := s.reserve(sale, s.request(sale, "alice", string(c.Request), 2))[0]
		s.wantReplay(outcome, c.Order)
		if outcome.Order != c.Order {
			s.Fatalf("the buyer hears %s, want %s", outcome.Order, c.Order)
		}
		s.wantVerdict(sale, c, domain.Withdrawn)
	}},
}

// expired makes a hold, takes its intent off the queue and releases it.
func (s *stockStage) expired(sale domain.SaleID, buyer string, quantity int64) domain.Claim {
	s.Helper()
	c := s.request(sale, buyer, fmt.Sprintf("r-%016x", rand.Uint64()), quantity)
	s.wantFresh(s.reserve(sale, c)[0], c.Order)
	s.drain(1)
	s.release(sale, quantity, c.Order)
	return c
}

func (s *stockStage) reacquire(sale domain.SaleID, c domain.Claim) domain.Outcome {
	s.Helper()
	outcome, err := s.Stock.Reacquire(s.Context(), sale, c)
	s.must(err)
	return outcome
}
