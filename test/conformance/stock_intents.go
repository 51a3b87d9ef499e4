package conformance

import (
	"time"

	"seckill/domain"
)

// covers S5, Q1, Q2, N2
var intentTests = []stockTest{
	{"holds an intent of every accepted claim and of no other", func(s *stockStage) {
		sale := s.openSale(6, 3)
		accepted := s.request(sale, "alice", "r-1", 3)
		gone := s.claim(sale, "dave", 1)
		s.release(sale, 0, gone.Order)
		second := s.claim(sale, "bob", 2)
		s.wantVerdicts(sale, []domain.Claim{
			accepted,
			s.request(sale, "alice", "r-1", 3), // replay
			accepted,                           // replay
			s.request(sale, "alice", "r-1", 1), // reused
			s.claim(sale, "alice", 1),          // limit
			s.claim(sale, "carol", 4),          // limit
			gone,                               // withdrawn
			second,
			s.claim(sale, "carol", 3), // sold out
		}, domain.Accepted, domain.Accepted, domain.Accepted, domain.RequestReused, domain.LimitReached,
			domain.LimitReached, domain.Withdrawn, domain.Accepted, domain.SoldOut)
		s.wantQueued(sale, 5)
		s.wantDepth(2)
		intents := s.drain(2)
		if intents[0].Order != accepted.Order || intents[1].Order != second.Order {
			s.Fatalf("intents are %+v", intents)
		}
		s.wantQueued(sale, 0)
	}},
	{"carries all that the ledger needs", func(s *stockStage) {
		sale := s.newSale()
		s.preheat(domain.Load{Sale: sale, Epoch: 7_000_000_001, Gate: s.openGate(9), Total: 10, Fence: 1})
		earliest := s.Now()
		one, two := s.request(sale, "alice", "r-1", 3), s.claim(sale, "bob", 2)
		s.reserve(sale, one, two)
		latest := s.Now()
		deliveries := s.collect(2)
		for _, d := range deliveries {
			if d.ID == "" || d.Sale != sale || d.Attempts != 1 || d.Problem != "" {
				s.Errorf("delivery is %+v, want a first one of sale %s", d, sale)
			}
		}
		intents := intentsOf(deliveries)
		for i, c := range []domain.Claim{one, two} {
			at := intents[i].At
			s.wantBetween(at, earliest, latest)
			want := domain.Intent{
				Order: c.Order, Sale: sale, Buyer: c.Buyer, Request: c.Request,
				Quantity: c.Quantity, Epoch: 7_000_000_001, At: at,
			}
			if intents[i] != want {
				s.Errorf("intent is %+v, want %+v", intents[i], want)
			}
		}
	}},
	{"is first in first out for a buyer", func(s *stockStage) {
		sale := s.openSale(1000, 1000)
		var want []domain.OrderID
		for i := range 30 {
			claims := make([]domain.Claim, 1+i%3)
			for j := range claims {
				claims[j] = s.claim(sale, "alice", 1)
				want = append(want, claims[j].Order)
			}
			s.reserve(sale, claims...)
		}
		for i, intent := range s.drain(len(want)) {
			if intent.Order != want[i] {
				s.Fatalf("intent %d is of order %s, want %s", i, intent.Order, want[i])
			}
		}
	}},
	{"counts units until they are acknowledged", func(s *stockStage) {
		sale := s.openSale(100, 100)
		s.wantQueued(sale, 0)
		s.grab(sale, "alice", 3)
		s.wantQueued(sale, 3)
		first := s.collect(1)
		s.wantQueued(sale, 3)
		s.reserve(sale, s.claim(sale, "bob", 5), s.claim(sale, "carol", 1))
		s.wantQueued(sale, 9)
		s.ack(first...)
		s.wantQueued(sale, 6)
		s.drain(2)
		s.wantQueued(sale, 0)
		s.wantUnits(sale, 91, 9, 0) // an acknowledged order keeps its hold
	}},
	{"is counted per sale", func(s *stockStage) {
		one, two := s.openSale(10, 9), s.openSale(10, 9)
		s.grab(one, "alice", 3)
		s.grab(two, "alice", 2)
		s.wantQueued(one, 3)
		s.wantQueued(two, 2)
		s.wantDepth(2)
		for _, d := range s.collect(2) {
			for _, intent := range d.Intents {
				if intent.Sale != d.Sale {
					s.Errorf("intent of sale %s in an entry of sale %s", intent.Sale, d.Sale)
				}
			}
			s.ack(d)
			s.wantQueued(d.Sale, 0)
		}
		s.wantDepth(0)
	}},
	{"takes held orders again on request", func(s *stockStage) {
		sale := s.openSale(20, 9)
		c := s.request(sale, "alice", "r-1", 3)
		s.wantVerdict(sale, c, domain.Accepted)
		sold, released := s.grab(sale, "bob", 1), s.grab(sale, "carol", 1)
		s.settle(sale, 1, sold)
		s.release(sale, 1, released)
		first := s.drain(3)[0]

		s.requeue(sale, 1, released, sold, c.Order, mintOrder(sale))
		s.wantQueued(sale, 3)
		again := s.drain(1)[0]
		again.At = first.At // of the hold or of the repeat: both are fine
		if again != first {
			s.Fatalf("intent is %+v, want %+v", again, first)
		}
		s.requeue(sale, 0, sold, released)
		s.requeue(sale, 0)
		s.wantDepth(0)
		s.requeue(sale, 1, c.Order)
		s.requeue(sale, 1, c.Order) // repeat: the ledger places it once
		s.drain(2)
		s.wantUnits(sale, 16, 3, 1)
	}},
}

func (s *stockStage) requeue(sale domain.SaleID, want int, holds ...domain.OrderID) {
	s.Helper()
	n, err := s.Stock.Requeue(s.Context(), sale, holds...)
	s.must(err)
	if n != want {
		s.Fatalf("requeued %d orders, want %d", n, want)
	}
}

// wantBetween allows for stores that cut their clock to the millisecond.
func (s *stockStage) wantBetween(at, earliest, latest time.Time) {
	s.Helper()
	if at.Before(earliest.Add(-time.Millisecond)) || at.After(latest.Add(time.Millisecond)) {
		s.Fatalf("time is %s, want between %s and %s", at, earliest, latest)
	}
}
