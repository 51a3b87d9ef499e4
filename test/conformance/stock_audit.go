package conformance

import (
	"fmt"

	"seckill/domain"
)

// covers N1, N3
var auditTests = []stockTest{
	{"counts what the records hold", func(s *stockStage) {
		sale := s.openSale(20, 9)
		s.grab(sale, "alice", 3)
		s.settle(sale, 2, s.grab(sale, "alice", 2))
		s.release(sale, 4, s.grab(sale, "bob", 4))
		s.release(sale, 0, mintOrder(sale))
		audit, err := s.Stock.Audit(s.Context(), sale)
		s.must(err)
		want := domain.Level{Epoch: 1, State: domain.Open, Total: 20, Available: 15, Held: 3, Sold: 2, Queued: 9}
		if audit.Level != want || audit.HeldUnits != 3 || audit.SoldUnits != 2 || audit.QueuedUnits != 9 || len(audit.Buyers) != 0 {
			s.Fatalf("audit is %+v, want level %+v", audit, want)
		}
		s.wantUnits(sale, 15, 3, 2) // it reads only
		s.wantDepth(3)
	}},
	{"counts the queue's entries of the sale until they are acknowledged", func(s *stockStage) {
		one, two := s.openSale(900, 900), s.openSale(20, 9)
		want := func(sale domain.SaleID, units int64) {
			s.Helper()
			audit, err := s.Stock.Audit(s.Context(), sale)
			s.must(err)
			if audit.QueuedUnits != units || audit.Level.Queued != units {
				s.Fatalf("the queue has %d units and the counter says %d, want %d", audit.QueuedUnits, audit.Level.Queued, units)
			}
		}
		want(one, 0)
		for range 150 {
			s.reserve(one, s.claim(one, "alice", 2), s.claim(one, "bob", 1))
			s.grab(one, "alice", 1)
		}
		s.grab(two, "alice", 4)
		s.requeue(two, 1, s.grab(two, "bob", 5))
		want(one, 600)
		want(two, 14)
		deliveries := s.collect(453)
		want(one, 600)
		want(two, 14)
		s.ack(deliveries[:len(deliveries)-1]...)
		last := deliveries[len(deliveries)-1].Intents
		left := map[domain.SaleID]int64{}
		for _, intent := range last {
			left[intent.Sale] += intent.Quantity
		}
		want(one, left[one])
		want(two, left[two])
		s.ack(deliveries...)
		want(one, 0)
		want(two, 0)
	}},
	{"lists every held order and no other", func(s *stockStage) {
		sale := s.openSale(3000, 2)
		want := map[domain.OrderID]domain.Hold{}
		for i := range 5 {
			claims := make([]domain.Claim, 500)
			for j := range claims {
				claims[j] = s.request(sale, fmt.Sprintf("b%d.%d", i, j), "r-1", 1)
				want[claims[j].Order] = domain.Hold{
					Order: claims[j].Order, Buyer: claims[j].Buyer, Request: "r-1", Quantity: 1, State: domain.Held,
				}
			}
			s.reserve(sale, claims...)
		}
		s.release(sale, 1, s.grab(sale, "alice", 1))
		s.settle(sale, 2, s.grab(sale, "bob", 2))
		s.release(sale, 0, mintOrder(sale))

		got := s.listHolds(sale)
		if len(got) != len(want) {
			s.Errorf("%d holds are listed, want %d", len(got), len(want))
		}
		for id, hold := range got {
			hold.CreatedAt = want[id].CreatedAt
			if hold != want[id] {
				s.Fatalf("hold is %+v, want %+v", hold, want[id])
			}
		}
	}},
	{"lists a hold that exists throughout, whatever else happens", func(s *stockStage) {
		sale := s.openSale(10_000, 9)
		lasting := map[domain.OrderID]bool{}
		var passing []domain.OrderID
		for i := range 4 {
			claims := make([]domain.Claim, 1000)
			for j := range claims {
				claims[j] = s.claim(sale, fmt.Sprintf("b%d.%d", i, j), 1)
			}
			for j, outcome := range s.reserve(sale, claims...) {
				s.wantFresh(outcome, claims[j].Order)
				if j%2 == 0 {
					lasting[claims[j].Order] = true
				} else {
					passing = append(passing, claims[j].Order)
				}
			}
		}
		cursor := ""
		for page := 0; ; page++ {
			holds, next, err := s.Stock.Holds(s.Context(), sale, cursor)
			s.must(err)
			for _, hold := range holds {
				delete(lasting, hold.Order)
			}
			if next == "" {
				break
			}
			if page == 10_000 {
				s.Fatal("the listing does not end")
			}
			cursor = next
			if n := min(len(passing), 300); n > 0 {
				_, err := s.Stock.Release(s.Context(), sale, passing[:n]...)
				s.must(err)
				passing = passing[n:]
			}
			if page < 20 {
				s.grab(sale, fmt.Sprint("new", page), 1)
			}
		}
		if len(lasting) > 0 {
			s.Fatalf("%d holds that were there all the time are not listed", len(lasting))
		}
	}},
	{"lists no holds of an empty or unknown sale", func(s *stockStage) {
		if n := len(s.listHolds(s.openSale(5, 1))); n != 0 {
			s.Errorf("%d holds are listed", n)
		}
		if n := len(s.listHolds(s.newSale())); n != 0 {
			s.Errorf("%d holds are listed", n)
		}
	}},
	{"adopts a pending order that it does not know", func(s *stockStage) {
		sale := s.openSale(10, 3)
		hold := domain.Hold{Order: mintOrder(sale), Buyer: "alice", Request: "r-1", Quantity: 2, State: domain.Held, CreatedAt: s.Now()}
		s.adopt(sale, 2, hold)
		s.adopt(sale, 0, hold) // repeat
		s.wantUnits(sale, 8, 2, 0)
		s.wantHold(sale, hold.Order, domain.Held)
		s.wantDepth(0)
		s.wantReplay(s.reserve(sale, s.request(sale, "alice", "r-1", 2))[0], hold.Order)
		s.wantVerdict(sale, s.claim(sale, "alice", 2), domain.LimitReached)
		s.release(sale, 2, hold.Order)
		s.wantUnits(sale, 10, 0, 0)
	}},
	{"takes the units of a pending order again that it has as released", func(s *stockStage) {
		sale := s.openSale(10, 3)
		c := s.expired(sale, "alice", 2)
		hold := domain.Hold{Order: c.Order, Buyer: "alice", Request: c.Request, Quantity: 2, State: domain.Held, CreatedAt: s.Now()}
		for range 2 {
			s.adopt(sale, 2, hold)
			s.adopt(sale, 0, hold) // repeat
			s.wantUnits(sale, 8, 2, 0)
			s.wantSameHold(sale, hold)
			if n := len(s.listHolds(sale)); n != 1 {
				s.Errorf("%d holds are listed, want 1", n)
			}
			s.wantReplay(s.reserve(sale, c)[0], c.Order)
			s.wantReplay(s.reserve(sale, s.request(sale, "alice", string(c.Request), 2))[0], c.Order)
			s.wantVerdict(sale, s.claim(sale, "alice", 2), domain.LimitReached)
			s.release(sale, 2, hold.Order)
			s.release(sale, 0, hold.Order)
			s.wantUnits(sale, 10, 0, 0)
			if n := len(s.listHolds(sale)); n != 0 {
				s.Fatalf("%d holds are listed, want none", n)
			}
		}
		s.wantDepth(0)
	}},
	{"takes the units of a paid order again that it has as released", func(s *stockStage) {
		sale := s.openSale(10, 3)
		c := s.expired(sale, "alice", 2)
		s.wantFresh(s.reacquire(sale, c), c.Order)
		s.release(sale, 2, c.Order.Late())
		hold := domain.Hold{Order: c.Order.Late(), Buyer: "alice", Request: c.Request, Quantity: 2, State: domain.Sold, CreatedAt: s.Now()}
		s.adopt(sale, 2, hold)
		s.adopt(sale, 0, hold)
		s.wantUnits(sale, 8, 0, 2)
		s.wantSameHold(sale, hold)
		s.release(sale, 0, hold.Order)
		s.wantReplay(s.reacquire(sale, c), c.Order)
		s.wantReplay(s.reserve(sale, s.request(sale, "alice", string(c.Request), 2))[0], c.Order)
		s.wantVerdict(sale, s.claim(sale, "alice", 2), domain.LimitReached)
	}},
	{"puts a hold where a tombstone was", func(s *stockStage) {
		sale := s.openSale(10, 3)
		pending, paid := mintOrder(sale), mintOrder(sale)
		s.release(sale, 0, pending, paid)
		held := domain.Hold{Order: pending, Buyer: "alice", Request: "r-1", Quantity: 2, State: domain.Held, CreatedAt: s.Now()}
		sold := domain.Hold{Order: paid, Buyer: "bob", Quantity: 3, State: domain.Sold, CreatedAt: s.Now()}
		s.adopt(sale, 2, held)
		s.adopt(sale, 3, sold)
		s.adopt(sale, 0, held)
		s.adopt(sale, 0, sold)
		s.wantUnits(sale, 5, 2, 3)
		s.wantSameHold(sale, held)
		s.wantSameHold(sale, sold)
		s.wantReplay(s.reserve(sale, s.request(sale, "alice", "r-1", 2))[0], pending)
		s.wantVerdict(sale, s.claim(sale, "alice", 2), domain.LimitReached)
		s.wantVerdict(sale, s.claim(sale, "bob", 1), domain.LimitReached)
		s.requeue(sale, 1, pending)
		if intent := s.drain(1)[0]; intent.Order != pending || intent.Buyer != "alice" || intent.Quantity != 2 {
			s.Errorf("intent is %+v, want that of %+v", intent, held)
		}
		s.settle(sale, 2, pending)
		s.wantUnits(sale, 5, 0, 5)
	}},
	{"does not take a released hold's units when they are gone", func(s *stockStage) {
		sale := s.openSale(3, 3)
		c := s.expired(sale, "alice", 2)
		other := s.grab(sale, "bob", 2)
		hold := domain.Hold{Order: c.Order, Buyer: "alice", Quantity: 2, State: domain.Held, CreatedAt: s.Now()}
		_, err := s.Stock.Adopt(s.Context(), sale, hold, 1)
		s.wantErr(err, domain.ErrConflict)
		s.wantHold(sale, c.Order, domain.Released)
		s.wantUnits(sale, 1, 2, 0)
		_, err = s.Stock.Adopt(s.Context(), sale, hold, 0)
		s.wantErr(err, domain.ErrFenced)
		s.release(sale, 2, other)
		s.adopt(sale, 2, hold)
	}},
	{"adopts nothing that is not held or sold", func(s *stockStage) {
		sale := s.openSale(10, 3)
		for _, state := range []domain.HoldState{domain.Released, "", "odd"} {
			hold := domain.Hold{Order: mintOrder(sale), Buyer: "alice", Quantity: 2, State: state, CreatedAt: s.Now()}
			_, err := s.Stock.Adopt(s.Context(), sale, hold, 1)
			s.wantErr(err, domain.ErrInvalid)
			s.wantNoHold(sale, hold.Order)
		}
		s.wantUnits(sale, 10, 0, 0)
	}},
	{"adopts a paid order as sold", func(s *stockStage) {
		sale := s.openSale(10, 3)
		hold := domain.Hold{Order: mintOrder(sale), Buyer: "alice", Quantity: 2, State: domain.Sold, CreatedAt: s.Now()}
		s.adopt(sale, 2, hold)
		s.adopt(sale, 0, hold)
		s.wantUnits(sale, 8, 0, 2)
		s.release(sale, 0, hold.Order)
		s.wantVerdict(sale, s.claim(sale, "alice", 2), domain.LimitReached)
	}},
	{"does not adopt what it knows", func(s *stockStage) {
		sale := s.openSale(10, 3)
		order := s.grab(sale, "alice", 2)
		s.adopt(sale, 0, domain.Hold{Order: order, Buyer: "alice", Quantity: 2, State: domain.Sold, CreatedAt: s.Now()})
		s.wantHold(sale, order, domain.Held)
		s.wantUnits(sale, 8, 2, 0)
		s.settle(sale, 2, order)
		s.adopt(sale, 0, domain.Hold{Order: order, Buyer: "alice", Quantity: 2, State: domain.Held, CreatedAt: s.Now()})
		s.wantHold(sale, order, domain.Sold)
		s.wantUnits(sale, 8, 0, 2)
	}},
	{"adopts beyond the limit, since the ledger has decided", func(s *stockStage) {
		sale := s.openSale(10, 1)
		s.grab(sale, "alice", 1)
		s.adopt(sale, 2, domain.Hold{Order: mintOrder(sale), Buyer: "alice", Quantity: 2, State: domain.Held, CreatedAt: s.Now()})
		s.wantUnits(sale, 7, 3, 0)
	}},
	{"does not adopt more than is available", func(s *stockStage) {
		sale := s.openSale(3, 3)
		s.grab(sale, "bob", 2)
		hold := domain.Hold{Order: mintOrder(sale), Buyer: "alice", Quantity: 2, State: domain.Held, CreatedAt: s.Now()}
		_, err := s.Stock.Adopt(s.Context(), sale, hold, 1)
		s.wantErr(err, domain.ErrConflict)
		s.wantNoHold(sale, hold.Order)
		s.wantUnits(sale, 1, 2, 0)
		s.wantVerdict(sale, s.claim(sale, "alice", 1), domain.Accepted)
	}},
	{"corrects nothing when nothing is wrong", func(s *stockStage) {
		sale := s.openSale(20, 5)
		s.grab(sale, "alice", 3)
		s.settle(sale, 2, s.grab(sale, "bob", 2))
		s.release(sale, 1, s.grab(sale, "carol", 1))
		before := s.level(sale)
		audit, err := s.Stock.Correct(s.Context(), sale, before, 1)
		s.must(err)
		if !audit.Balanced() || audit.Level != before {
			s.Fatalf("audit is %+v, want balanced at %+v", audit, before)
		}
		if after := s.level(sale); after != before {
			s.Fatalf("level is %+v, want %+v", after, before)
		}
		s.wantVerdict(sale, s.claim(sale, "alice", 3), domain.LimitReached)
		s.wantVerdict(sale, s.claim(sale, "bob", 4), domain.LimitReached)
		s.grab(sale, "carol", 5)
	}},
	{"does not correct an account that has moved", func(s *stockStage) {
		sale := s.openSale(20, 5)
		seen := s.level(sale)
		order := s.grab(sale, "alice", 3)
		_, err := s.Stock.Correct(s.Context(), sale, seen, 1)
		s.wantErr(err, domain.ErrConflict)
		seen = s.level(sale)
		s.settle(sale, 3, order)
		_, err = s.Stock.Correct(s.Context(), sale, seen, 1)
		s.wantErr(err, domain.ErrConflict)
		seen = s.level(sale)
		seen.Epoch++
		_, err = s.Stock.Correct(s.Context(), sale, seen, 1)
		s.wantErr(err, domain.ErrConflict)
		s.wantUnits(sale, 17, 0, 3)
	}},
}

// wantSameHold compares everything but the time, of which stores keep the millisecond.
func (s *stockStage) wantSameHold(sale domain.SaleID, want domain.Hold) {
	s.Helper()
	got := s.wantHold(sale, want.Order, want.State)
	s.wantBetween(got.CreatedAt, want.CreatedAt, want.CreatedAt)
	got.CreatedAt = want.CreatedAt
	if got != want {
		s.Fatalf("hold is %+v, want %+v", got, want)
	}
}

func (s *stockStage) adopt(sale domain.SaleID, want int64, hold domain.Hold) {
	s.Helper()
	units, err := s.Stock.Adopt(s.Context(), sale, hold, 1)
	s.must(err)
	if units != want {
		s.Fatalf("adopted %d units, want %d", units, want)
	}
}
