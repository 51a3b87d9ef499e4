package conformance

import (
	"seckill/domain"
)

// covers S1, S2, S4, S7
var preheatTests = []stockTest{
	{"puts the total into the hot store", func(s *stockStage) {
		sale := s.openSale(100, 3)
		want := domain.Level{Epoch: 1, State: domain.Open, Total: 100, Available: 100}
		if got := s.level(sale); got != want {
			s.Fatalf("level is %+v, want %+v", got, want)
		}
	}},
	{"sets and never adds when it runs twice", func(s *stockStage) {
		sale := s.openSale(100, 3)
		s.preheat(domain.Load{Sale: sale, Epoch: 2, Gate: s.openGate(3), Total: 100, Fence: 1})
		want := domain.Level{Epoch: 2, State: domain.Open, Total: 100, Available: 100}
		if got := s.level(sale); got != want {
			s.Fatalf("level is %+v, want %+v", got, want)
		}
	}},
	{"sets a smaller total too", func(s *stockStage) {
		sale := s.openSale(100, 3)
		s.preheat(domain.Load{Sale: sale, Epoch: 2, Gate: s.openGate(3), Total: 7, Fence: 1})
		s.wantUnits(sale, 7, 0, 0)
	}},
	{"clears the buyers, requests and holds of the time before", func(s *stockStage) {
		sale := s.openSale(10, 1)
		old := s.request(sale, "alice", "r-1", 1)
		s.wantVerdict(sale, old, domain.Accepted)
		s.settle(sale, 1, old.Order)
		gone := s.grab(sale, "bob", 1)
		s.release(sale, 1, gone)
		tombstone := mintOrder(sale)
		s.release(sale, 0, tombstone)
		s.drain(2)
		s.preheat(domain.Load{Sale: sale, Epoch: 2, Gate: s.openGate(1), Total: 10, Fence: 1})

		s.wantUnits(sale, 10, 0, 0)
		s.wantNoHold(sale, old.Order)
		s.wantNoHold(sale, gone)
		s.wantNoHold(sale, tombstone)
		again := s.request(sale, "alice", "r-1", 1)
		s.wantFresh(s.reserve(sale, again)[0], again.Order)
		s.wantVerdict(sale, domain.Claim{Order: tombstone, Buyer: "carol", Quantity: 1}, domain.Accepted)
	}},
	{"refuses a sale that is not sealed and changes nothing", func(s *stockStage) {
		never := s.newSale()
		load := domain.Load{Sale: never, Epoch: 1, Gate: s.openGate(1), Total: 5, Fence: 1}
		s.wantErr(s.Stock.Preheat(s.Context(), load), domain.ErrState)
		_, err := s.Stock.Level(s.Context(), never)
		s.wantErr(err, domain.ErrNotReady)

		running := s.openSale(10, 3)
		s.grab(running, "alice", 2)
		load.Sale, load.Epoch = running, 2
		s.wantErr(s.Stock.Preheat(s.Context(), load), domain.ErrState)
		s.wantUnits(running, 8, 2, 0)
	}},
	{"is not sealed any more afterwards", func(s *stockStage) {
		sale := s.openSale(10, 3)
		load := domain.Load{Sale: sale, Epoch: 2, Gate: s.openGate(3), Total: 5, Fence: 1}
		s.wantErr(s.Stock.Preheat(s.Context(), load), domain.ErrState)
		s.wantUnits(sale, 10, 0, 0)
	}},
	{"refuses a load with more units than its total and stays sealed", func(s *stockStage) {
		sale := s.newSale()
		load := domain.Load{Sale: sale, Epoch: 1, Gate: s.openGate(9), Total: 5, Fence: 1, Holds: []domain.Hold{
			{Order: mintOrder(sale), Buyer: "alice", Quantity: 3, State: domain.Sold},
			{Order: mintOrder(sale), Buyer: "bob", Quantity: 3, State: domain.Held},
		}}
		s.must(s.Stock.Seal(s.Context(), sale, 1, false))
		s.wantErr(s.Stock.Preheat(s.Context(), load), domain.ErrUnbalanced)
		s.wantVerdict(sale, s.claim(sale, "carol", 1), domain.NotReady)

		load.Total = 6
		s.must(s.Stock.Preheat(s.Context(), load))
		s.wantUnits(sale, 0, 3, 3)
	}},
	{"refuses totals and limits that are no plain bounded integers", func(s *stockStage) {
		sale := s.newSale()
		s.must(s.Stock.Seal(s.Context(), sale, 1, false))
		for _, total := range []int64{0, -1, domain.MaxInteger + 1} {
			load := domain.Load{Sale: sale, Epoch: 1, Gate: s.openGate(1), Total: total, Fence: 1}
			s.wantErr(s.Stock.Preheat(s.Context(), load), domain.ErrInvalid)
		}
		for _, limit := range []int64{0, -1, domain.MaxInteger + 1} {
			load := domain.Load{Sale: sale, Epoch: 1, Gate: s.openGate(limit), Total: 1, Fence: 1}
			s.wantErr(s.Stock.Preheat(s.Context(), load), domain.ErrInvalid)
		}
		_, err := s.Stock.Level(s.Context(), sale)
		s.wantErr(err, domain.ErrNotReady)
	}},
	{"works with the largest total", func(s *stockStage) {
		sale := s.openSale(domain.MaxInteger, domain.MaxInteger)
		c := s.claim(sale, "alice", domain.MaxQuantity)
		outcome := s.wantVerdict(sale, c, domain.Accepted)
		if outcome.Before != domain.MaxInteger || outcome.After != domain.MaxInteger-domain.MaxQuantity {
			s.Fatalf("stock went from %d to %d", outcome.Before, outcome.After)
		}
		s.wantUnits(sale, domain.MaxInteger-domain.MaxQuantity, domain.MaxQuantity, 0)
		s.release(sale, domain.MaxQuantity, c.Order)
		s.release(sale, 0, c.Order)
		s.wantUnits(sale, domain.MaxInteger, 0, 0)
	}},
	{"seals a sale so that nothing works until it is loaded", func(s *stockStage) {
		sale := s.openSale(10, 3)
		order := s.grab(sale, "alice", 1)
		s.settle(sale, 1, order)
		s.drain(1)
		s.must(s.Stock.Seal(s.Context(), sale, 1, false))
		s.wantNotReady(sale)
		s.must(s.Stock.Seal(s.Context(), sale, 1, false)) // repeat
		s.wantNotReady(sale)
	}},
	{"does not know a sale that was never loaded", func(s *stockStage) {
		s.wantNotReady(s.newSale())
	}},
	{"does not seal a sale with holds", func(s *stockStage) {
		sale := s.openSale(10, 3)
		order := s.grab(sale, "alice", 1)
		s.drain(1)
		s.wantErr(s.Stock.Seal(s.Context(), sale, 1, false), domain.ErrHasHolds)
		s.wantUnits(sale, 9, 1, 0)
		s.grab(sale, "bob", 1) // it runs on
		s.drain(1)

		s.settle(sale, 1, order)
		s.wantErr(s.Stock.Seal(s.Context(), sale, 1, false), domain.ErrHasHolds)
	}},
	{"does not seal a sale with queued orders", func(s *stockStage) {
		sale := s.openSale(10, 3)
		s.release(sale, 1, s.grab(sale, "alice", 1))
		s.wantUnits(sale, 10, 0, 0)
		s.wantErr(s.Stock.Seal(s.Context(), sale, 1, false), domain.ErrHasHolds)
		deliveries := s.collect(1)
		s.wantErr(s.Stock.Seal(s.Context(), sale, 1, false), domain.ErrHasHolds)
		s.grab(sale, "bob", 1)
		s.ack(deliveries...)
		s.drain(1)
	}},
	{"seals a sale with sold units and nothing else", func(s *stockStage) {
		sale := s.openSale(10, 3)
		s.settle(sale, 2, s.grab(sale, "alice", 2))
		s.drain(1)
		s.must(s.Stock.Seal(s.Context(), sale, 1, false))
	}},
	{"leaves other sales alone", func(s *stockStage) {
		one, two := s.openSale(10, 1), s.openSale(20, 1)
		order := s.grab(one, "alice", 1)
		s.grab(two, "alice", 1) // the limit is per sale
		s.wantUnits(one, 9, 1, 0)
		s.wantUnits(two, 19, 1, 0)
		s.release(two, 0, order) // a hold of the other sale is unknown here
		s.wantHold(one, order, domain.Held)
		s.settle(two, 0, order)
		s.wantUnits(one, 9, 1, 0)

		gate := s.openGate(1)
		gate.State = domain.Closed
		s.must(s.Stock.SetGate(s.Context(), one, gate, 1))
		s.must(s.Stock.Seal(s.Context(), one, 9, true))
		s.grab(two, "bob", 1)
		s.must(s.Stock.SetGate(s.Context(), two, s.openGate(5), 2)) // fences are per sale
		s.must(s.Stock.Preheat(s.Context(), domain.Load{Sale: one, Epoch: 2, Gate: s.openGate(1), Total: 10, Fence: 9}))
		s.wantUnits(two, 18, 2, 0)
	}},
	{"archives a sale without a trace", func(s *stockStage) {
		sale := s.openSale(10, 1)
		c := s.request(sale, "alice", "r-1", 1)
		s.wantVerdict(sale, c, domain.Accepted)
		s.settle(sale, 1, c.Order)
		s.drain(1)
		s.must(s.Stock.Archive(s.Context(), sale, 7))
		s.wantNotReady(sale)
		s.wantNoHold(sale, c.Order)
		s.must(s.Stock.Archive(s.Context(), sale, 7)) // repeat
		s.wantNotReady(sale)
		load := domain.Load{Sale: sale, Epoch: 2, Gate: s.openGate(1), Total: 5, Fence: 7}
		s.wantErr(s.Stock.Preheat(s.Context(), load), domain.ErrState)

		s.preheat(load)
		s.wantUnits(sale, 5, 0, 0)
		s.wantVerdict(sale, s.request(sale, "alice", "r-1", 1), domain.Accepted)
	}},
	{"does not archive a sale with holds or queued orders", func(s *stockStage) {
		sale := s.openSale(10, 1)
		order := s.grab(sale, "alice", 1)
		deliveries := s.collect(1)
		s.ack(deliveries...)
		s.wantErr(s.Stock.Archive(s.Context(), sale, 1), domain.ErrHasHolds)
		s.wantHold(sale, order, domain.Held)
		s.release(sale, 1, order)

		s.release(sale, 1, s.grab(sale, "bob", 1))
		s.wantErr(s.Stock.Archive(s.Context(), sale, 1), domain.ErrHasHolds)
		s.drain(1)
		s.must(s.Stock.Archive(s.Context(), sale, 1))
	}},
	{"archives a sale that was never there", func(s *stockStage) {
		s.must(s.Stock.Archive(s.Context(), s.newSale(), 1))
	}},
}

// wantNotReady asks every method for a sale that the hot store does not hold.
func (s *stockStage) wantNotReady(sale domain.SaleID) {
	s.Helper()
	order := mintOrder(sale)
	outcomes := s.wantVerdicts(sale, []domain.Claim{s.claim(sale, "alice", 1), s.claim(sale, "bob", 2)},
		domain.NotReady, domain.NotReady)
	for _, outcome := range outcomes {
		if outcome.Before != 0 || outcome.After != 0 {
			s.Errorf("a sale that is not ready shows a stock of %d, %d", outcome.Before, outcome.After)
		}
	}
	outcome, err := s.Stock.Reacquire(s.Context(), sale, s.claim(sale, "alice", 1))
	s.must(err)
	if outcome.Verdict != domain.NotReady {
		s.Errorf("Reacquire is %v, want %v", outcome.Verdict, domain.NotReady)
	}
	_, err = s.Stock.Release(s.Context(), sale, order)
	s.wantErr(err, domain.ErrNotReady)
	_, err = s.Stock.Settle(s.Context(), sale, order)
	s.wantErr(err, domain.ErrNotReady)
	_, err = s.Stock.Level(s.Context(), sale)
	s.wantErr(err, domain.ErrNotReady)
	s.wantNoHold(sale, order)
	s.wantErr(s.Stock.SetGate(s.Context(), sale, s.openGate(1), domain.MaxInteger), domain.ErrNotReady)
	_, err = s.Stock.Audit(s.Context(), sale)
	s.wantErr(err, domain.ErrNotReady)
	_, err = s.Stock.Requeue(s.Context(), sale, order)
	s.wantErr(err, domain.ErrNotReady)
	hold := domain.Hold{Order: order, Buyer: "alice", Quantity: 1, State: domain.Held}
	_, err = s.Stock.Adopt(s.Context(), sale, hold, domain.MaxInteger)
	s.wantErr(err, domain.ErrNotReady)
	_, err = s.Stock.Correct(s.Context(), sale, domain.Level{}, domain.MaxInteger)
	s.wantErr(err, domain.ErrNotReady)
	s.wantDepth(0)
}
