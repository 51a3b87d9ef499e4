package conformance

import "seckill/domain"

// covers L5
var fenceTests = []stockTest{
	{"refuses setup writes with an older number and changes nothing", func(s *stockStage) {
		sale := s.newSale()
		s.preheat(domain.Load{Sale: sale, Epoch: 1, Gate: s.openGate(2), Total: 10, Fence: 10})
		before := s.level(sale)

		s.wantErr(s.Stock.Seal(s.Context(), sale, 9, false), domain.ErrFenced)
		s.wantErr(s.Stock.Seal(s.Context(), sale, 9, true), domain.ErrFenced)
		closed := s.openGate(2)
		closed.State = domain.Closed
		s.wantErr(s.Stock.SetGate(s.Context(), sale, closed, 9), domain.ErrFenced)
		s.wantErr(s.Stock.Archive(s.Context(), sale, 9), domain.ErrFenced)
		hold := domain.Hold{Order: mintOrder(sale), Buyer: "alice", Quantity: 1, State: domain.Held, CreatedAt: s.Now()}
		_, err := s.Stock.Adopt(s.Context(), sale, hold, 9)
		s.wantErr(err, domain.ErrFenced)
		_, err = s.Stock.Correct(s.Context(), sale, before, 9)
		s.wantErr(err, domain.ErrFenced)

		if after := s.level(sale); after != before {
			s.Fatalf("level is %+v, want %+v", after, before)
		}
		s.wantNoHold(sale, hold.Order)
		s.grab(sale, "alice", 1)
	}},
	{"refuses a preheat with an older number than the seal", func(s *stockStage) {
		sale := s.newSale()
		s.must(s.Stock.Seal(s.Context(), sale, 5, false))
		load := domain.Load{Sale: sale, Epoch: 1, Gate: s.openGate(2), Total: 10, Fence: 4}
		s.wantErr(s.Stock.Preheat(s.Context(), load), domain.ErrFenced)
		s.wantVerdict(sale, s.claim(sale, "alice", 1), domain.NotReady)
		load.Fence = 5
		s.must(s.Stock.Preheat(s.Context(), load))
	}},
	{"refuses a seal with an older number than the one before", func(s *stockStage) {
		sale := s.newSale()
		s.must(s.Stock.Seal(s.Context(), sale, 5, false))
		s.wantErr(s.Stock.Seal(s.Context(), sale, 4, false), domain.ErrFenced)
		s.wantErr(s.Stock.Archive(s.Context(), sale, 4), domain.ErrFenced)
		s.preheat(domain.Load{Sale: sale, Epoch: 1, Gate: s.openGate(2), Total: 10, Fence: 5})
	}},
	{"takes the same and higher numbers", func(s *stockStage) {
		sale := s.newSale()
		s.preheat(domain.Load{Sale: sale, Epoch: 1, Gate: s.openGate(2), Total: 10, Fence: 10})
		s.must(s.Stock.SetGate(s.Context(), sale, s.openGate(2), 10))
		s.must(s.Stock.SetGate(s.Context(), sale, s.openGate(3), 12))
		s.wantErr(s.Stock.SetGate(s.Context(), sale, s.openGate(4), 11), domain.ErrFenced)
		s.must(s.Stock.Seal(s.Context(), sale, 12, false))
		s.must(s.Stock.Preheat(s.Context(), domain.Load{Sale: sale, Epoch: 2, Gate: s.openGate(2), Total: 10, Fence: 14}))
		s.wantErr(s.Stock.SetGate(s.Context(), sale, s.openGate(4), 13), domain.ErrFenced)
		hold := domain.Hold{Order: mintOrder(sale), Buyer: "alice", Quantity: 1, State: domain.Held, CreatedAt: s.Now()}
		_, err := s.Stock.Adopt(s.Context(), sale, hold, 16)
		s.must(err)
		s.wantErr(s.Stock.SetGate(s.Context(), sale, s.openGate(4), 15), domain.ErrFenced)
		_, err = s.Stock.Correct(s.Context(), sale, s.level(sale), 18)
		s.must(err)
		s.wantErr(s.Stock.SetGate(s.Context(), sale, s.openGate(4), 17), domain.ErrFenced)
		s.must(s.Stock.SetGate(s.Context(), sale, s.openGate(4), domain.MaxInteger))
		s.wantErr(s.Stock.SetGate(s.Context(), sale, s.openGate(4), domain.MaxInteger-1), domain.ErrFenced)
	}},
	{"compares numbers and not texts", func(s *stockStage) {
		sale := s.newSale()
		s.preheat(domain.Load{Sale: sale, Epoch: 1, Gate: s.openGate(2), Total: 10, Fence: 9})
		s.must(s.Stock.SetGate(s.Context(), sale, s.openGate(2), 10))
		s.wantErr(s.Stock.SetGate(s.Context(), sale, s.openGate(2), 9), domain.ErrFenced)
	}},
	{"does not touch grabs, releases and settles", func(s *stockStage) {
		sale := s.newSale()
		s.preheat(domain.Load{Sale: sale, Epoch: 1, Gate: s.openGate(2), Total: 10, Fence: 1000})
		s.release(sale, 1, s.grab(sale, "alice", 1))
		s.settle(sale, 1, s.grab(sale, "alice", 1))
	}},
}
