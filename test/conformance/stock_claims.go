package conformance

import (
	"fmt"
	"math"

	"seckill/domain"
)

// covers S4, S5, S6, S7
var claimTests = []stockTest{
	{"accepts a claim and shows the stock before and after it", func(s *stockStage) {
		sale := s.openSale(10, 5)
		earliest := s.Now()
		c := s.request(sale, "alice", "r-1", 3)
		outcome := s.reserve(sale, c)[0]
		latest := s.Now()
		s.wantFresh(outcome, c.Order)
		s.wantStock(outcome, 10, 7)
		s.wantUnits(sale, 7, 3, 0)
		hold := s.wantHold(sale, c.Order, domain.Held)
		if hold.Buyer != c.Buyer || hold.Request != c.Request || hold.Quantity != 3 {
			s.Fatalf("hold is %+v, want that of %+v", hold, c)
		}
		s.wantBetween(hold.CreatedAt, earliest, latest)
	}},
	{"sells the last unit and then is sold out", func(s *stockStage) {
		sale := s.openSale(2, 1)
		s.grab(sale, "alice", 1)
		s.grab(sale, "bob", 1)
		outcome := s.wantVerdict(sale, s.claim(sale, "carol", 1), domain.SoldOut)
		s.wantStock(outcome, 0, 0)
		s.wantUnits(sale, 0, 2, 0)
	}},
	{"is sold out for a claim larger than what is left, and not for a smaller one", func(s *stockStage) {
		sale := s.openSale(3, 5)
		outcome := s.wantVerdict(sale, s.claim(sale, "alice", 4), domain.SoldOut)
		s.wantStock(outcome, 3, 3)
		s.grab(sale, "alice", 3)
	}},
	{"counts the limit over several grabs", func(s *stockStage) {
		sale := s.openSale(100, 5)
		s.grab(sale, "alice", 2)
		s.grab(sale, "alice", 2)
		outcome := s.wantVerdict(sale, s.claim(sale, "alice", 2), domain.LimitReached)
		s.wantStock(outcome, 96, 96)
		s.grab(sale, "alice", 1)
		s.wantVerdict(sale, s.claim(sale, "alice", 1), domain.LimitReached)
		s.grab(sale, "bob", 5)
		s.wantVerdict(sale, s.claim(sale, "carol", 6), domain.LimitReached)
	}},
	{"gives the allowance back on release and not on settle", func(s *stockStage) {
		sale := s.openSale(100, 2)
		one, two := s.grab(sale, "alice", 1), s.grab(sale, "alice", 1)
		s.settle(sale, 1, one)
		s.wantVerdict(sale, s.claim(sale, "alice", 1), domain.LimitReached)
		s.release(sale, 1, two)
		s.grab(sale, "alice", 1)
		s.wantVerdict(sale, s.claim(sale, "alice", 1), domain.LimitReached)
	}},
	{"asks for the limit before the stock", func(s *stockStage) {
		sale := s.openSale(1, 1)
		s.grab(sale, "alice", 1)
		s.wantVerdict(sale, s.claim(sale, "alice", 1), domain.LimitReached)
		s.wantVerdict(sale, s.claim(sale, "bob", 1), domain.SoldOut)
	}},
	{"keeps nothing of a refused claim", func(s *stockStage) {
		sale := s.openSale(2, 2)
		refused := s.request(sale, "alice", "r-1", 3)
		s.wantVerdict(sale, refused, domain.LimitReached)
		s.wantNoHold(sale, refused.Order)
		s.grab(sale, "bob", 1)
		refused = s.request(sale, "alice", "r-1", 2)
		s.wantVerdict(sale, refused, domain.SoldOut)
		s.wantNoHold(sale, refused.Order)

		accepted := s.request(sale, "alice", "r-1", 1)
		s.wantFresh(s.reserve(sale, accepted)[0], accepted.Order)
		refused.Request, refused.Quantity = "r-2", 1
		s.wantVerdict(sale, refused, domain.SoldOut)
		s.drain(2)
	}},
	{"decides the claims of a batch in their order", func(s *stockStage) {
		sale := s.openSale(10, 6)
		claims := []domain.Claim{
			s.claim(sale, "alice", 4), // 10 → 6
			s.claim(sale, "bob", 7),   // over the limit
			s.claim(sale, "alice", 3), // 4 + 3 is over the limit
			s.claim(sale, "bob", 5),   // 6 → 1
			s.claim(sale, "carol", 2), // too few left
			s.claim(sale, "dave", 1),  // 1 → 0: a later, smaller claim fits
			s.claim(sale, "erin", 1),  // nothing left
		}
		outcomes := s.wantVerdicts(sale, claims,
			domain.Accepted, domain.LimitReached, domain.LimitReached, domain.Accepted,
			domain.SoldOut, domain.Accepted, domain.SoldOut)
		for i, want := range [][2]int64{{10, 6}, {6, 6}, {6, 6}, {6, 1}, {1, 1}, {1, 0}, {0, 0}} {
			s.wantStock(outcomes[i], want[0], want[1])
		}
		s.wantUnits(sale, 0, 10, 0)
		for i, outcome := range outcomes {
			if outcome.Verdict == domain.Accepted {
				s.wantFresh(outcome, claims[i].Order)
				s.wantHold(sale, claims[i].Order, domain.Held)
			} else {
				s.wantNoHold(sale, claims[i].Order)
			}
		}
		s.wantQueued(sale, 10)
	}},
	{"counts the limit of one buyer inside a batch", func(s *stockStage) {
		sale := s.openSale(100, 3)
		s.wantVerdicts(sale, []domain.Claim{
			s.claim(sale, "alice", 2), s.claim(sale, "bob", 3), s.claim(sale, "alice", 2),
			s.claim(sale, "alice", 1), s.claim(sale, "alice", 1), s.claim(sale, "bob", 1),
		}, domain.Accepted, domain.Accepted, domain.LimitReached,
			domain.Accepted, domain.LimitReached, domain.LimitReached)
		s.wantUnits(sale, 94, 6, 0)
	}},
	{"answers a repeated order id inside a batch with a replay", func(s *stockStage) {
		sale := s.openSale(100, 1)
		c := s.claim(sale, "alice", 1)
		outcomes := s.reserve(sale, c, s.claim(sale, "bob", 1), c)
		s.wantFresh(outcomes[0], c.Order)
		s.wantReplay(outcomes[2], c.Order)
		s.wantStock(outcomes[2], 98, 98)
		s.wantUnits(sale, 98, 2, 0)
		s.drain(2)
	}},
	{"answers a repeated request inside a batch with a replay", func(s *stockStage) {
		sale := s.openSale(100, 9)
		first := s.request(sale, "alice", "r-1", 2)
		outcomes := s.reserve(sale, first,
			s.request(sale, "alice", "r-1", 2),
			s.request(sale, "bob", "r-1", 1), // another buyer's request
			s.request(sale, "alice", "r-1", 1),
			s.request(sale, "alice", "r-2", 2))
		s.wantFresh(outcomes[0], first.Order)
		s.wantReplay(outcomes[1], first.Order)
		if outcomes[2].Verdict != domain.Accepted || outcomes[2].Replayed {
			s.Fatalf("another buyer's request is %+v", outcomes[2])
		}
		if outcomes[3].Verdict != domain.RequestReused {
			s.Fatalf("the request for another quantity is %v", outcomes[3].Verdict)
		}
		if outcomes[4].Verdict != domain.Accepted || outcomes[4].Replayed {
			s.Fatalf("another request is %+v", outcomes[4])
		}
		s.wantUnits(sale, 95, 5, 0)
		s.drain(3)
	}},
	{"decides a request anew when its first claim in the batch was refused", func(s *stockStage) {
		sale := s.openSale(3, 9)
		second := s.request(sale, "alice", "r-1", 1)
		outcomes := s.wantVerdicts(sale, []domain.Claim{s.request(sale, "alice", "r-1", 4), second},
			domain.SoldOut, domain.Accepted)
		s.wantFresh(outcomes[1], second.Order)
	}},
	{"mixes old and new claims in a batch", func(s *stockStage) {
		sale := s.openSale(5, 2)
		old := s.request(sale, "alice", "r-1", 2)
		s.wantVerdict(sale, old, domain.Accepted)
		gone := s.claim(sale, "bob", 1)
		s.release(sale, 0, gone.Order)
		fresh := s.claim(sale, "carol", 2)
		outcomes := s.wantVerdicts(sale,
			[]domain.Claim{old, gone, fresh, s.request(sale, "alice", "r-1", 1), s.claim(sale, "dave", 2)},
			domain.Accepted, domain.Withdrawn, domain.Accepted, domain.RequestReused, domain.SoldOut)
		s.wantReplay(outcomes[0], old.Order)
		s.wantFresh(outcomes[2], fresh.Order)
		s.wantStock(outcomes[1], 3, 3)
		s.wantStock(outcomes[3], 1, 1)
	}},
	{"does nothing for an empty batch", func(s *stockStage) {
		sale := s.openSale(5, 2)
		s.reserve(sale)
		s.wantUnits(sale, 5, 0, 0)
		s.wantDepth(0)
	}},
	{"decides a thousand claims in one call, and no more", func(s *stockStage) {
		sale := s.openSale(600, 1)
		claims := make([]domain.Claim, 1001)
		for i := range claims {
			claims[i] = s.claim(sale, fmt.Sprint("b", i), 1)
		}
		_, err := s.Stock.Reserve(s.Context(), sale, claims)
		s.wantErr(err, domain.ErrInvalid)
		s.wantUnits(sale, 600, 0, 0)

		for i, outcome := range s.reserve(sale, claims[:1000]...) {
			if (outcome.Verdict == domain.Accepted) != (i < 600) {
				s.Fatalf("claim %d is %v", i, outcome.Verdict)
			}
		}
		s.wantUnits(sale, 0, 600, 0)
		s.drain(600)
	}},
	{"refuses a call with a quantity out of bounds before anything changes", func(s *stockStage) {
		sale := s.openSale(domain.MaxInteger, domain.MaxInteger)
		for _, quantity := range []int64{0, -1, domain.MaxQuantity + 1, domain.MaxInteger + 1, math.MaxInt64, math.MinInt64} {
			good, bad := s.claim(sale, "alice", 1), s.claim(sale, "bob", quantity)
			_, err := s.Stock.Reserve(s.Context(), sale, []domain.Claim{good, bad})
			s.wantErr(err, domain.ErrInvalid)
			s.wantNoHold(sale, good.Order)
			_, err = s.Stock.Reacquire(s.Context(), sale, bad)
			s.wantErr(err, domain.ErrInvalid)
		}
		s.wantUnits(sale, domain.MaxInteger, 0, 0)
		s.wantDepth(0)
		s.grab(sale, "carol", domain.MaxQuantity)
	}},
	{"refuses a call with an empty order or buyer before anything changes", func(s *stockStage) {
		sale := s.openSale(10, 10)
		good := s.claim(sale, "alice", 1)
		for _, bad := range []domain.Claim{
			{Buyer: "bob", Quantity: 1},
			{Order: mintOrder(sale), Quantity: 1},
		} {
			_, err := s.Stock.Reserve(s.Context(), sale, []domain.Claim{good, bad})
			s.wantErr(err, domain.ErrInvalid)
			_, err = s.Stock.Reacquire(s.Context(), sale, bad)
			s.wantErr(err, domain.ErrInvalid)
		}
		s.wantNoHold(sale, good.Order)
		s.wantUnits(sale, 10, 0, 0)
		s.wantDepth(0)
	}},
	{"takes buyers as bytes", func(s *stockStage) {
		sale := s.openSale(10, 1)
		for _, buyer := range []string{"alice", "Alice", "007", "7", "7.0", "a@b", "a_b", "__proto__", "-1"} {
			s.grab(sale, buyer, 1)
			s.wantVerdict(sale, s.claim(sale, buyer, 1), domain.LimitReached)
		}
	}},
}

func (s *stockStage) wantStock(outcome domain.Outcome, before, after int64) {
	s.Helper()
	if outcome.Before != before || outcome.After != after {
		s.Fatalf("stock went from %d to %d (%v), want %d to %d",
			outcome.Before, outcome.After, outcome.Verdict, before, after)
	}
}
