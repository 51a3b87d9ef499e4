package conformance

import "seckill/domain"

// covers P3, S1, S6, N1, N5
var releaseTests = []stockTest{
	{"gives the units back", func(s *stockStage) {
		sale := s.openSale(10, 5)
		order := s.grab(sale, "alice", 3)
		s.release(sale, 3, order)
		s.wantUnits(sale, 10, 0, 0)
		s.wantHold(sale, order, domain.Released)
	}},
	{"frees once when it is repeated a hundred times", func(s *stockStage) {
		sale := s.openSale(10, 5)
		s.grab(sale, "bob", 4)
		order := s.grab(sale, "alice", 3)
		s.release(sale, 3, order)
		for range 99 {
			s.release(sale, 0, order)
		}
		s.wantUnits(sale, 6, 4, 0)
		s.grab(sale, "alice", 5)
		s.wantVerdict(sale, s.claim(sale, "alice", 1), domain.LimitReached) // the allowance came back once, too
	}},
	{"frees several holds in one call, each once", func(s *stockStage) {
		sale := s.openSale(10, 5)
		one, two, three := s.grab(sale, "alice", 1), s.grab(sale, "bob", 2), s.grab(sale, "carol", 3)
		s.settle(sale, 3, three)
		s.release(sale, 3, one, two, one, three, mintOrder(sale), two)
		s.wantUnits(sale, 7, 0, 3)
	}},
	{"never lifts the stock above the total", func(s *stockStage) {
		sale := s.openSale(3, 3)
		order := s.grab(sale, "alice", 1)
		for range 5 {
			_, err := s.Stock.Release(s.Context(), sale, order, mintOrder(sale))
			s.must(err)
			if level := s.level(sale); level.Available > level.Total {
				s.Fatalf("available %d is above the total %d", level.Available, level.Total)
			}
		}
		s.wantUnits(sale, 3, 0, 0)
	}},
	{"leaves a tombstone when it comes before the grab", func(s *stockStage) {
		sale := s.openSale(10, 5)
		late := s.request(sale, "alice", "r-1", 2)
		s.release(sale, 0, late.Order)
		hold := s.wantHold(sale, late.Order, domain.Released)
		if hold.Buyer != "" || hold.Quantity != 0 {
			s.Fatalf("tombstone is %+v, want no buyer and no units", hold)
		}
		for range 3 {
			outcome := s.wantVerdict(sale, late, domain.Withdrawn)
			s.wantStock(outcome, 10, 10)
		}
		s.release(sale, 0, late.Order)
		s.settle(sale, 0, late.Order)
		s.wantUnits(sale, 10, 0, 0)
		s.wantDepth(0)
		again := s.request(sale, "alice", "r-1", 2) // a withdrawn claim used up no request id
		s.wantFresh(s.reserve(sale, again)[0], again.Order)
	}},
	{"leaves a tombstone in the middle of a batch", func(s *stockStage) {
		sale := s.openSale(10, 5)
		gone := s.claim(sale, "alice", 2)
		s.release(sale, 0, gone.Order)
		s.wantVerdicts(sale, []domain.Claim{s.claim(sale, "alice", 5), gone, s.claim(sale, "bob", 5)},
			domain.Accepted, domain.Withdrawn, domain.Accepted)
		s.drain(2)
	}},
	{"settles a hold once", func(s *stockStage) {
		sale := s.openSale(10, 5)
		one, two := s.grab(sale, "alice", 3), s.grab(sale, "bob", 1)
		s.settle(sale, 3, one)
		s.settle(sale, 0, one)
		s.settle(sale, 1, one, two, two)
		s.wantUnits(sale, 6, 0, 4)
		s.wantHold(sale, one, domain.Sold)
	}},
	{"leaves a sold hold sold", func(s *stockStage) {
		sale := s.openSale(10, 3)
		order := s.grab(sale, "alice", 3)
		s.settle(sale, 3, order)
		s.release(sale, 0, order)
		s.wantUnits(sale, 7, 0, 3)
		s.wantHold(sale, order, domain.Sold)
		s.wantVerdict(sale, s.claim(sale, "alice", 1), domain.LimitReached)
	}},
	{"leaves a released hold released", func(s *stockStage) {
		sale := s.openSale(10, 3)
		order := s.grab(sale, "alice", 3)
		s.release(sale, 3, order)
		s.settle(sale, 0, order)
		s.wantUnits(sale, 10, 0, 0)
		s.wantHold(sale, order, domain.Released)
	}},
	{"settles no hold that it does not know, and leaves no trace of it", func(s *stockStage) {
		sale := s.openSale(10, 3)
		c := s.claim(sale, "alice", 1)
		s.settle(sale, 0, c.Order)
		s.wantNoHold(sale, c.Order)
		s.wantVerdict(sale, c, domain.Accepted)
	}},
	{"works while the sale is paused, closed and past its end", func(s *stockStage) {
		sale := s.openSale(10, 3)
		one, two := s.grab(sale, "alice", 3), s.grab(sale, "bob", 2)
		gate := s.openGate(3)
		gate.State = domain.Closed
		gate.StartsAt, gate.EndsAt = gate.StartsAt.AddDate(0, 0, -1), gate.EndsAt.AddDate(0, 0, -1)
		s.must(s.Stock.SetGate(s.Context(), sale, gate, 1))
		s.release(sale, 3, one)
		s.settle(sale, 2, two)
		s.wantUnits(sale, 8, 0, 2)
	}},
	{"makes freed units available to the very next grab", func(s *stockStage) {
		sale := s.openSale(1, 1)
		order := s.grab(sale, "alice", 1)
		s.wantVerdict(sale, s.claim(sale, "bob", 1), domain.SoldOut)
		s.release(sale, 1, order)
		s.grab(sale, "bob", 1)
		s.wantVerdict(sale, s.claim(sale, "alice", 1), domain.SoldOut)
	}},
	{"does nothing for no holds", func(s *stockStage) {
		sale := s.openSale(5, 1)
		s.release(sale, 0)
		s.settle(sale, 0)
		s.wantUnits(sale, 5, 0, 0)
	}},
	{"does not take a hold's units out of the queue", func(s *stockStage) {
		sale := s.openSale(10, 3)
		s.release(sale, 3, s.grab(sale, "alice", 3))
		s.wantQueued(sale, 3)
		s.drain(1)
		s.wantQueued(sale, 0)
	}},
}
