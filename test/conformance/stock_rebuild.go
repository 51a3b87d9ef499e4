package conformance

import (
	"fmt"

	"seckill/domain"
)

// covers N7, S1, N1, T6
var rebuildTests = []stockTest{
	{"seals a sale with holds and queued orders by force", func(s *stockStage) {
		sale := s.openSale(10, 3)
		s.grab(sale, "alice", 1)
		s.must(s.Stock.Seal(s.Context(), sale, 1, true))
		s.wantVerdict(sale, s.claim(sale, "bob", 1), domain.NotReady)
		s.wantErr(s.Stock.Seal(s.Context(), sale, 1, false), domain.ErrHasHolds)
		s.must(s.Stock.Seal(s.Context(), sale, 1, true)) // repeat
	}},
	{"loads held and sold orders", func(s *stockStage) {
		sale, load := s.rebuilt(10, 4)
		want := domain.Level{Epoch: 2, State: domain.Open, Total: 10, Available: 4, Held: 3, Sold: 3}
		if got := s.level(sale); got != want {
			s.Fatalf("level is %+v, want %+v", got, want)
		}
		for _, hold := range load.Holds {
			got := s.wantHold(sale, hold.Order, hold.State)
			if got.Buyer != hold.Buyer || got.Request != hold.Request || got.Quantity != hold.Quantity {
				s.Errorf("hold is %+v, want %+v", got, hold)
			}
		}
		s.wantDepth(0)
	}},
	{"replays the loaded orders and requests", func(s *stockStage) {
		sale, load := s.rebuilt(10, 4)
		for _, hold := range load.Holds {
			c := domain.Claim{Order: hold.Order, Buyer: hold.Buyer, Request: hold.Request, Quantity: hold.Quantity}
			s.wantReplay(s.reserve(sale, c)[0], hold.Order)
			if hold.Request == "" {
				continue
			}
			c.Order = mintOrder(sale)
			s.wantReplay(s.reserve(sale, c)[0], hold.Order)
			c.Quantity++
			s.wantVerdict(sale, c, domain.RequestReused)
		}
		s.wantUnits(sale, 4, 3, 3)
		s.wantDepth(0)
	}},
	{"counts the loaded units against the limit", func(s *stockStage) {
		sale, _ := s.rebuilt(10, 4) // alice: 2 held and 1 sold; bob: 2 sold; carol: 1 held
		s.wantVerdict(sale, s.claim(sale, "alice", 2), domain.LimitReached)
		s.grab(sale, "alice", 1)
		s.wantVerdict(sale, s.claim(sale, "bob", 3), domain.LimitReached)
		s.grab(sale, "bob", 2)
		s.grab(sale, "carol", 1)
		s.wantVerdict(sale, s.claim(sale, "dave", 1), domain.SoldOut)
	}},
	{"releases and settles loaded holds", func(s *stockStage) {
		sale, load := s.rebuilt(10, 4)
		s.release(sale, 2, load.Holds[0].Order, load.Holds[1].Order) // the second is sold
		s.release(sale, 0, load.Holds[0].Order)
		s.settle(sale, 1, load.Holds[3].Order)
		s.wantUnits(sale, 6, 0, 4)
		s.grab(sale, "alice", 3)
		s.wantVerdict(sale, s.claim(sale, "alice", 1), domain.LimitReached)
	}},
	{"forgets holds that the load does not name", func(s *stockStage) {
		sale := s.openSale(10, 3)
		lost, kept := s.request(sale, "alice", "r-1", 3), s.claim(sale, "bob", 2)
		s.reserve(sale, lost, kept)
		s.drain(2)
		s.preheat(domain.Load{Sale: sale, Epoch: 2, Gate: s.openGate(3), Total: 10, Fence: 2, Holds: []domain.Hold{
			{Order: kept.Order, Buyer: "bob", Quantity: 2, State: domain.Held, CreatedAt: s.Now()},
		}})
		s.wantUnits(sale, 8, 2, 0)
		s.wantNoHold(sale, lost.Order)
		again := s.request(sale, "alice", "r-1", 3)
		s.wantFresh(s.reserve(sale, again)[0], again.Order)
	}},
	{"loads a sale whose units are all gone", func(s *stockStage) {
		sale, _ := s.rebuilt(6, 4)
		s.wantUnits(sale, 0, 3, 3)
		s.wantVerdict(sale, s.claim(sale, "dave", 1), domain.SoldOut)
	}},
	{"loads second holds under their orders", func(s *stockStage) {
		sale := s.newSale()
		order := mintOrder(sale)
		s.preheat(domain.Load{Sale: sale, Epoch: 1, Gate: s.openGate(5), Total: 5, Fence: 1, Holds: []domain.Hold{
			{Order: order.Late(), Buyer: "alice", Request: "r-1", Quantity: 2, State: domain.Sold, CreatedAt: s.Now()},
		}})
		s.wantUnits(sale, 3, 0, 2)
		s.wantHold(sale, order.Late(), domain.Sold)
		outcome := s.reserve(sale, s.request(sale, "alice", "r-1", 2))[0]
		s.wantReplay(outcome, order)
		if outcome.Order != order {
			s.Fatalf("the buyer hears %s, want %s", outcome.Order, order)
		}
		s.wantReplay(s.reacquire(sale, domain.Claim{Order: order, Buyer: "alice", Request: "r-1", Quantity: 2}), order)
	}},
	{"loads closed orders so that their requests are still replayed", func(s *stockStage) {
		sale := s.newSale()
		now := s.Now()
		closed := domain.Hold{Order: mintOrder(sale), Buyer: "alice", Request: "r-1", Quantity: 2, State: domain.Released, CreatedAt: now}
		late := domain.Hold{Order: mintOrder(sale).Late(), Buyer: "bob", Request: "r-1", Quantity: 1, State: domain.Released, CreatedAt: now}
		plain := domain.Hold{Order: mintOrder(sale), Buyer: "carol", Quantity: 3, State: domain.Released, CreatedAt: now}
		live := domain.Hold{Order: mintOrder(sale), Buyer: "alice", Request: "r-2", Quantity: 2, State: domain.Held, CreatedAt: now}
		// With the closed ones there would be more units than the total.
		s.preheat(domain.Load{Sale: sale, Epoch: 1, Gate: s.openGate(4), Total: 4, Fence: 1, Holds: []domain.Hold{closed, late, plain, live}})

		want := domain.Level{Epoch: 1, State: domain.Open, Total: 4, Available: 2, Held: 2}
		if got := s.level(sale); got != want {
			s.Fatalf("level is %+v, want %+v", got, want)
		}
		for _, hold := range []domain.Hold{closed, late, plain, live} {
			s.wantSameHold(sale, hold)
		}
		if n := len(s.listHolds(sale)); n != 1 {
			s.Errorf("%d holds are listed, want 1", n)
		}
		s.wantReplay(s.reserve(sale, s.request(sale, "alice", "r-1", 2))[0], closed.Order)
		s.wantVerdict(sale, s.request(sale, "alice", "r-1", 1), domain.RequestReused)
		outcome := s.reserve(sale, s.request(sale, "bob", "r-1", 1))[0]
		s.wantReplay(outcome, late.Order)
		if outcome.Order != late.Order.Order() {
			s.Fatalf("the buyer hears %s, want %s", outcome.Order, late.Order.Order())
		}
		for _, hold := range []domain.Hold{closed, plain} {
			s.wantVerdict(sale, domain.Claim{Order: hold.Order, Buyer: hold.Buyer, Quantity: hold.Quantity}, domain.Withdrawn)
		}
		s.release(sale, 0, closed.Order, late.Order, plain.Order)
		s.settle(sale, 0, closed.Order, late.Order, plain.Order)
		s.requeue(sale, 0, closed.Order, plain.Order)
		s.wantUnits(sale, 2, 2, 0)
		s.wantDepth(0)
		s.grab(sale, "alice", 2) // closed orders do not count against the limit
	}},
	{"takes the units of a loaded closed order again for a late payment", func(s *stockStage) {
		sale := s.newSale()
		now := s.Now()
		c, again := s.request(sale, "alice", "r-1", 2), s.request(sale, "bob", "r-1", 1)
		s.preheat(domain.Load{Sale: sale, Epoch: 1, Gate: s.openGate(4), Total: 4, Fence: 1, Holds: []domain.Hold{
			{Order: c.Order, Buyer: c.Buyer, Request: c.Request, Quantity: 2, State: domain.Released, CreatedAt: now},
			{Order: again.Order.Late(), Buyer: again.Buyer, Request: again.Request, Quantity: 1, State: domain.Released, CreatedAt: now},
		}})
		s.wantFresh(s.reacquire(sale, c), c.Order)
		s.wantFresh(s.reacquire(sale, again), again.Order)
		s.wantUnits(sale, 1, 3, 0)
		s.settle(sale, 3, c.Order.Late(), again.Order.Late())
		s.wantUnits(sale, 1, 0, 3)
		s.wantReplay(s.reserve(sale, s.request(sale, "alice", "r-1", 2))[0], c.Order)
	}},
	{"refuses holds that are no record of an order", func(s *stockStage) {
		sale := s.newSale()
		s.must(s.Stock.Seal(s.Context(), sale, 1, false))
		order := mintOrder(sale)
		for _, hold := range []domain.Hold{
			{Order: order, Buyer: "alice", Quantity: 1, State: "odd"},
			{Order: order, Buyer: "alice", Quantity: 1},
			{Order: order, Quantity: 1, State: domain.Released},
			{Order: order, Buyer: "alice", State: domain.Released},
			{Buyer: "alice", Quantity: 1, State: domain.Released},
		} {
			load := domain.Load{Sale: sale, Epoch: 1, Gate: s.openGate(1), Total: 5, Fence: 1, Holds: []domain.Hold{hold}}
			s.wantErr(s.Stock.Preheat(s.Context(), load), domain.ErrInvalid)
		}
		_, err := s.Stock.Level(s.Context(), sale)
		s.wantErr(err, domain.ErrNotReady)
	}},
	{"leaves queued orders of the earlier epoch to their consumers", func(s *stockStage) {
		sale := s.openSale(10, 9)
		order := s.grab(sale, "alice", 2)
		delivered := s.collect(1)
		waiting := s.grab(sale, "alice", 1)
		s.must(s.Stock.Seal(s.Context(), sale, 2, true))
		s.must(s.Stock.Preheat(s.Context(), domain.Load{Sale: sale, Epoch: 2, Gate: s.openGate(9), Total: 10, Fence: 2}))
		s.wantUnits(sale, 10, 0, 0)
		s.ack(delivered...) // for order
		fresh := s.grab(sale, "bob", 1)

		depth := s.depth().Orders
		seen := map[domain.OrderID]int64{}
		for _, intent := range s.drain(int(depth)) {
			seen[intent.Order] = intent.Epoch
		}
		if epoch, ok := seen[waiting]; ok && epoch != 1 {
			s.Errorf("the order of the first epoch came with epoch %d", epoch)
		}
		if seen[fresh] != 2 {
			s.Errorf("the order of the second epoch came with epoch %d", seen[fresh])
		}
		if _, ok := seen[order]; ok {
			s.Errorf("an acknowledged order came again")
		}
		s.wantQueued(sale, 0)
		s.wantUnits(sale, 9, 1, 0)
	}},
	{"queues loaded holds under the new epoch on request", func(s *stockStage) {
		sale, load := s.rebuilt(10, 4)
		s.requeue(sale, 2, load.Holds[0].Order, load.Holds[1].Order, load.Holds[3].Order)
		s.wantQueued(sale, 3)
		for i, intent := range s.drain(2) {
			hold := load.Holds[i*3]
			want := domain.Intent{
				Order: hold.Order, Sale: sale, Buyer: hold.Buyer, Request: hold.Request,
				Quantity: hold.Quantity, Epoch: 2, At: intent.At,
			}
			if intent != want {
				s.Errorf("intent is %+v, want %+v", intent, want)
			}
		}
	}},
	{"loads five thousand holds", func(s *stockStage) {
		sale := s.newSale()
		load := domain.Load{Sale: sale, Epoch: 1, Gate: s.openGate(2), Total: 6000, Fence: 1}
		for i := range 5000 {
			hold := domain.Hold{Order: mintOrder(sale), Buyer: domain.BuyerID(fmt.Sprint("b", i)), Quantity: 1, State: domain.Held, CreatedAt: s.Now()}
			if i%5 == 0 {
				hold.State = domain.Sold
			}
			load.Holds = append(load.Holds, hold)
		}
		s.preheat(load)
		s.wantUnits(sale, 1000, 4000, 1000)
		if n := len(s.listHolds(sale)); n != 4000 {
			s.Fatalf("%d holds are listed, want 4000", n)
		}
	}},
}

// rebuilt grabs a little, then loads another account in its place: alice has 2
// held and 1 sold, bob 2 sold, carol 1 held.
func (s *stockStage) rebuilt(total, limit int64) (domain.SaleID, domain.Load) {
	s.Helper()
	sale := s.openSale(total, limit)
	s.grab(sale, "zoe", 1)
	s.drain(1)
	now := s.Now()
	load := domain.Load{Sale: sale, Epoch: 2, Gate: s.openGate(limit), Total: total, Fence: 2, Holds: []domain.Hold{
		{Order: mintOrder(sale), Buyer: "alice", Request: "r-1", Quantity: 2, State: domain.Held, CreatedAt: now},
		{Order: mintOrder(sale), Buyer: "alice", Request: "r-2", Quantity: 1, State: domain.Sold, CreatedAt: now},
		{Order: mintOrder(sale), Buyer: "bob", Request: "r-1", Quantity: 2, State: domain.Sold, CreatedAt: now},
		{Order: mintOrder(sale), Buyer: "carol", Quantity: 1, State: domain.Held, CreatedAt: now},
	}}
	s.preheat(load)
	return sale, load
}
