package conformance

import "seckill/domain"

// covers S5, N5, T6
var replayTests = []stockTest{
	{"answers a repeated order id with the first answer and deducts once", func(s *stockStage) {
		sale := s.openSale(10, 1)
		c := s.claim(sale, "alice", 1)
		s.wantFresh(s.reserve(sale, c)[0], c.Order)
		for range 20 {
			outcome := s.reserve(sale, c)[0]
			s.wantReplay(outcome, c.Order)
			s.wantStock(outcome, 9, 9)
		}
		s.wantUnits(sale, 9, 1, 0)
		s.drain(1)
	}},
	{"answers a repeated request with the first order id and deducts once", func(s *stockStage) {
		sale := s.openSale(10, 9)
		first := s.request(sale, "alice", "r-1", 2)
		s.wantVerdict(sale, first, domain.Accepted)
		for range 20 {
			again := s.request(sale, "alice", "r-1", 2)
			s.wantReplay(s.reserve(sale, again)[0], first.Order)
			s.wantNoHold(sale, again.Order)
		}
		s.wantUnits(sale, 8, 2, 0)
		s.drain(1)
	}},
	{"tells a request that is used again for another quantity", func(s *stockStage) {
		sale := s.openSale(10, 9)
		first := s.request(sale, "alice", "r-1", 2)
		s.wantVerdict(sale, first, domain.Accepted)
		outcome := s.wantVerdict(sale, s.request(sale, "alice", "r-1", 1), domain.RequestReused)
		s.wantStock(outcome, 8, 8)
		s.wantUnits(sale, 8, 2, 0)
	}},
	{"keeps requests of different buyers apart", func(s *stockStage) {
		sale := s.openSale(10, 9)
		for _, names := range [][2]string{{"alice", "r-1"}, {"bob", "r-1"}, {"a", "b.c"}, {"a.b", "c"}, {"a@b", "c"}, {"a", "b@c"}, {"a-b", "c"}, {"a", "b-c"}} {
			c := s.request(sale, names[0], names[1], 1)
			s.wantFresh(s.reserve(sale, c)[0], c.Order)
		}
	}},
	{"does not take grabs without a request id for repeats", func(s *stockStage) {
		sale := s.openSale(10, 9)
		s.grab(sale, "alice", 1)
		s.grab(sale, "alice", 1)
		s.wantUnits(sale, 8, 2, 0)
	}},
	{"replays after the stock has gone", func(s *stockStage) {
		sale := s.openSale(1, 1)
		first := s.request(sale, "alice", "r-1", 1)
		s.wantVerdict(sale, first, domain.Accepted)
		s.wantReplay(s.reserve(sale, first)[0], first.Order)
		s.wantReplay(s.reserve(sale, s.request(sale, "alice", "r-1", 1))[0], first.Order)
	}},
	{"replays after the order was settled", func(s *stockStage) {
		sale := s.openSale(10, 1)
		first := s.request(sale, "alice", "r-1", 1)
		s.wantVerdict(sale, first, domain.Accepted)
		s.settle(sale, 1, first.Order)
		s.wantReplay(s.reserve(sale, first)[0], first.Order)
		s.wantReplay(s.reserve(sale, s.request(sale, "alice", "r-1", 1))[0], first.Order)
		s.wantUnits(sale, 9, 0, 1)
	}},
	{"replays the request of a released order and withdraws its order id", func(s *stockStage) {
		sale := s.openSale(10, 1)
		first := s.request(sale, "alice", "r-1", 1)
		s.wantVerdict(sale, first, domain.Accepted)
		s.release(sale, 1, first.Order)
		s.wantVerdict(sale, first, domain.Withdrawn)
		s.wantReplay(s.reserve(sale, s.request(sale, "alice", "r-1", 1))[0], first.Order)
		s.wantVerdict(sale, s.request(sale, "alice", "r-1", 2), domain.RequestReused)
		s.wantUnits(sale, 10, 0, 0)
		s.grab(sale, "alice", 1) // under another request the buyer may try again
	}},
	{"replays before it asks for the limit", func(s *stockStage) {
		sale := s.openSale(10, 2)
		first := s.request(sale, "alice", "r-1", 2)
		s.wantVerdict(sale, first, domain.Accepted)
		s.must(s.Stock.SetGate(s.Context(), sale, s.openGate(1), 1))
		s.wantReplay(s.reserve(sale, first)[0], first.Order)
		s.wantReplay(s.reserve(sale, s.request(sale, "alice", "r-1", 2))[0], first.Order)
	}},
}
