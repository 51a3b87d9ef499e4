package conformance

import (
	"maps"
	"slices"
	"time"

	"seckill/domain"
)

var ledgerPlaceTests = map[string]func(ledgerTest){
	// covers Q3
	"PendingWithItsUnitsTaken": func(l ledgerTest) {
		s := l.sale(10, 5)
		o := s.order("7", 3)
		o.Request = "r-1"
		p := s.place(o)[0]
		if !p.Fresh {
			l.Error("not fresh")
		}
		got := p.Order
		if got.CreatedAt.IsZero() || time.Since(got.CreatedAt).Abs() > time.Hour {
			l.Errorf("created at %v", got.CreatedAt)
		}
		want := o
		want.Status, want.Hold = domain.Pending, o.ID
		want.CreatedAt, want.ExpiresAt = got.CreatedAt, got.CreatedAt.Add(30*time.Minute)
		l.same(got, want)
		l.same(l.find(o.ID), want)
		s.counts(domain.Tally{Pending: 3})
		if len(s.effects()) != 0 {
			l.Error("an effect without a decision")
		}
	},
	// covers Q3 Q5
	"RepeatChangesNothing": func(l ledgerTest) {
		s := l.sale(10, 1)
		orders := s.orders(4)
		s.place(orders...)
		extra := s.order("extra", 1)
		for i, p := range s.place(append([]domain.Order{extra}, orders...)...) {
			if p.Fresh != (i == 0) {
				l.Errorf("answer %d: fresh is %v", i, p.Fresh)
			}
			l.wants(p, domain.Pending, "")
		}
		s.counts(domain.Tally{Pending: 5})
	},
	"RepeatTellsWhatBecameOfIt": func(l ledgerTest) {
		s := l.sale(1, 1)
		o := s.pending(s.order("7", 1))
		_, err := l.Cancel(l.ctx(), o.ID)
		l.must(err)
		p := s.place(o)[0]
		l.wants(p, domain.Cancelled, "")
		if p.Fresh {
			l.Error("fresh")
		}
	},
	"SameIDTwiceInOneBatch": func(l ledgerTest) {
		s := l.sale(10, 5)
		o := s.order("7", 1)
		placed := s.place(o, o, s.order("8", 1), o)
		if !placed[0].Fresh || placed[1].Fresh || placed[3].Fresh {
			l.Errorf("fresh: %v %v %v", placed[0].Fresh, placed[1].Fresh, placed[3].Fresh)
		}
		s.counts(domain.Tally{Pending: 2})
	},
	"Nothing": func(l ledgerTest) {
		placed, err := l.Place(l.ctx(), nil)
		l.must(err)
		if len(placed) != 0 {
			l.Errorf("%d answers to no order", len(placed))
		}
	},
	// covers Q4
	"OneBatchOfManySales": func(l ledgerTest) {
		a, b, c := l.sale(100, 1), l.sale(100, 1), l.sale(1, 1)
		batch := slices.Concat(a.orders(20), c.orders(2), b.orders(30))
		for i, p := range l.place(batch...) {
			if i == 21 {
				l.wants(p, domain.Rejected, domain.ReasonSoldOut)
			} else {
				l.wants(p, domain.Pending, "")
			}
		}
		a.counts(domain.Tally{Pending: 20})
		b.counts(domain.Tally{Pending: 30})
		c.counts(domain.Tally{Pending: 1, Rejected: 1})
	},
	// covers Q4
	"LargeBatch": func(l ledgerTest) {
		s := l.sale(5000, 1)
		for _, p := range s.place(s.orders(1300)...) {
			l.wants(p, domain.Pending, "")
		}
		s.counts(domain.Tally{Pending: 1300})
	},
	"KeepsTheHoldItIsGiven": func(l ledgerTest) {
		s := l.sale(10, 1)
		o := s.order("7", 1)
		o.Hold = o.ID.Late()
		s.pending(o)
		if hold := l.find(o.ID).Hold; hold != o.ID.Late() {
			l.Errorf("hold is %s", hold)
		}
		e, err := l.Cancel(l.ctx(), o.ID)
		l.must(err)
		if e.Hold != o.ID.Late() {
			l.Errorf("effect is on hold %s", e.Hold)
		}
	},
	// covers T6: a request's answer outlives its order.
	"HoldsPageByID": func(l ledgerTest) {
		s := l.shortSale(100, 9)
		orders := s.orders(24)
		want := map[domain.OrderID]domain.Status{}
		for i := range orders {
			if i%2 == 0 {
				orders[i].Request = "r"
			}
			if i%12/2 == 5 {
				orders[i].Quantity = 10
				want[orders[i].ID] = domain.Rejected
			}
		}
		s.place(orders...)
		// Which order expires cannot be chosen, so all of them do.
		for range 20 {
			want[s.expireOne().Order.ID] = domain.Expired
		}
		s.activity.PaymentWindow = time.Hour
		l.must(l.Save(l.ctx(), s.activity))
		for i, o := range orders {
			id := o.ID
			switch i % 12 / 2 {
			case 0:
				_, err := l.PayLate(l.ctx(), id, "p", true)
				l.must(err)
				want[id] = domain.Paid
			case 1:
				_, err := l.PayLate(l.ctx(), id, "p", false)
				l.must(err)
				want[id] = domain.RefundDue
			case 2, 3:
				more := s.order(o.Buyer, 1)
				if i%2 == 0 {
					more.Request = "more"
				}
				s.pending(more)
				want[more.ID] = domain.Pending
				if i%12/2 == 3 {
					_, err := l.Cancel(l.ctx(), more.ID)
					l.must(err)
					want[more.ID] = domain.Cancelled
				}
			}
		}
		// Its request has another order, so it is of no use for a replay.
		twin := s.order(orders[0].Buyer, 1)
		twin.Request = "r"
		l.wants(s.place(twin)[0], domain.Rejected, domain.ReasonDuplicateRequest)
		other := l.sale(5, 1)
		other.place(other.orders(2)...)

		found, err := l.Find(l.ctx(), slices.Collect(maps.Keys(want))...)
		l.must(err)
		seen := map[domain.Status]bool{}
		for _, o := range found {
			seen[o.Status] = true
			if o.Request == "" && o.Status != domain.Pending && o.Status != domain.Paid {
				delete(want, o.ID)
			}
		}
		if len(seen) != 6 || len(want) != 20 {
			l.Fatalf("%d orders in states %v", len(want), seen)
		}
		after := domain.OrderID("")
		for range 10 {
			page, err := l.Holds(l.ctx(), s.SaleID, after, 4)
			l.must(err)
			if len(page) > 4 {
				l.Fatalf("page of %d orders", len(page))
			}
			if len(page) == 0 {
				break
			}
			for _, o := range page {
				if o.ID <= after || o.Status != want[o.ID] {
					l.Fatalf("%s %s %q after %s, want status %q", o.ID, o.Status, o.Request, after, want[o.ID])
				}
				l.same(o, l.find(o.ID))
				after = o.ID
				delete(want, o.ID)
			}
		}
		if len(want) != 0 {
			l.Errorf("not listed: %v", want)
		}
	},
	"FindOnlyWhatIsThere": func(l ledgerTest) {
		s := l.sale(2000, 1)
		orders := s.orders(1100)
		s.place(orders...)
		ids := []domain.OrderID{s.order("7", 1).ID}
		for _, o := range orders {
			ids = append(ids, o.ID)
		}
		found, err := l.Find(l.ctx(), ids...)
		l.must(err)
		if len(found) != len(orders) {
			l.Errorf("found %d of %d", len(found), len(orders))
		}
		if found, err = l.Find(l.ctx()); err != nil || len(found) != 0 {
			l.Errorf("no ids: %v %v", found, err)
		}
	},
	"TallyOfNoSale": func(l ledgerTest) {
		_, err := l.Tally(l.ctx(), domain.SaleID{Activity: ledgerActivityID(), SKU: 1})
		l.fails(err, domain.ErrNotFound)
	},
}

var ledgerGateTests = map[string]func(ledgerTest){
	// covers Q7
	"SoldOut": func(l ledgerTest) {
		s := l.sale(3, 1)
		placed := s.place(s.orders(5)...)
		for i, p := range placed {
			if !p.Fresh {
				l.Errorf("answer %d is not fresh", i)
			}
			if i < 3 {
				l.wants(p, domain.Pending, "")
				continue
			}
			l.wants(p, domain.Rejected, domain.ReasonSoldOut)
			l.same(l.find(p.Order.ID), p.Order)
			e := s.effectOf(p.Order.ID, domain.Rejected)
			l.same(e.Order, p.Order)
			if e.Settles() {
				l.Error("a rejection settles")
			}
			if p.Order.ClosedAt.IsZero() || !p.Order.ExpiresAt.IsZero() {
				l.Errorf("closed at %v, expires at %v", p.Order.ClosedAt, p.Order.ExpiresAt)
			}
		}
		s.counts(domain.Tally{Pending: 3, Rejected: 2})
		if got := s.tally().Releasing; got != 2 {
			l.Errorf("releasing %d units, want 2", got)
		}
	},
	// covers Q7
	"LastUnitsGoToWhoFits": func(l ledgerTest) {
		s := l.sale(5, 10)
		placed := s.place(s.order("a", 4), s.order("b", 3), s.order("c", 1), s.order("d", 1))
		l.wants(placed[0], domain.Pending, "")
		l.wants(placed[1], domain.Rejected, domain.ReasonSoldOut)
		l.wants(placed[2], domain.Pending, "")
		l.wants(placed[3], domain.Rejected, domain.ReasonSoldOut)
		s.counts(domain.Tally{Pending: 5, Rejected: 4})
	},
	// covers Q7 S6
	"BuyersLimit": func(l ledgerTest) {
		s := l.sale(100, 3)
		first := s.pending(s.order("7", 2))
		l.wants(s.place(s.order("7", 2))[0], domain.Rejected, domain.ReasonLimitReached)
		s.pending(s.order("7", 1))
		s.pending(s.order("8", 3))
		_, err := l.Cancel(l.ctx(), first.ID)
		l.must(err)
		s.pending(s.order("7", 2))
		l.wants(s.place(s.order("7", 1))[0], domain.Rejected, domain.ReasonLimitReached)
		l.wants(s.place(s.order("9", 4))[0], domain.Rejected, domain.ReasonLimitReached)
		s.counts(domain.Tally{Pending: 6, Cancelled: 2, Rejected: 7})
	},
	// covers S6
	"PaidUnitsCountForTheLimit": func(l ledgerTest) {
		s := l.sale(100, 1)
		o := s.pending(s.order("7", 1))
		_, err := l.Pay(l.ctx(), o.ID, "p")
		l.must(err)
		l.wants(s.place(s.order("7", 1))[0], domain.Rejected, domain.ReasonLimitReached)
	},
	"LimitInsideOneBatch": func(l ledgerTest) {
		s := l.sale(100, 2)
		placed := s.place(s.order("7", 1), s.order("8", 1), s.order("7", 1), s.order("7", 1), s.order("9", 1))
		for i, p := range placed {
			if i == 3 {
				l.wants(p, domain.Rejected, domain.ReasonLimitReached)
			} else {
				l.wants(p, domain.Pending, "")
			}
		}
		s.counts(domain.Tally{Pending: 4, Rejected: 1})
	},
	"LimitMayChange": func(l ledgerTest) {
		s := l.sale(100, 1)
		s.pending(s.order("7", 1))
		s.activity.SKUs[0].PerUserLimit = 3
		l.must(l.Save(l.ctx(), s.activity))
		last := s.pending(s.order("7", 2))
		s.activity.SKUs[0].PerUserLimit = 1
		l.must(l.Save(l.ctx(), s.activity))
		l.wants(s.place(s.order("7", 1))[0], domain.Rejected, domain.ReasonLimitReached)
		// Above the new limit, and still able to let go.
		_, err := l.Cancel(l.ctx(), last.ID)
		l.must(err)
		s.counts(domain.Tally{Pending: 1, Cancelled: 2, Rejected: 1})
	},
	// covers Q3
	"RequestHasOneOrder": func(l ledgerTest) {
		s, other := l.sale(100, 10), l.sale(100, 10)
		with := func(s *ledgerSale, buyer domain.BuyerID, request domain.RequestID) domain.Order {
			o := s.order(buyer, 1)
			o.Request = request
			return o
		}
		s.pending(with(s, "7", "r"))
		p := s.place(with(s, "7", "r"))[0]
		l.wants(p, domain.Rejected, domain.ReasonDuplicateRequest)
		s.effectOf(p.Order.ID, domain.Rejected)
		l.wants(s.place(with(s, "7", "r"))[0], domain.Rejected, domain.ReasonDuplicateRequest)
		s.pending(with(s, "8", "r"))
		s.pending(with(s, "7", "r2"))
		s.pending(with(s, "7", ""))
		s.pending(with(s, "7", ""))
		other.pending(with(other, "7", "r"))
		// Both in one batch: the first wins.
		placed := s.place(with(s, "9", "x"), with(s, "9", "x"))
		l.wants(placed[0], domain.Pending, "")
		l.wants(placed[1], domain.Rejected, domain.ReasonDuplicateRequest)
		s.counts(domain.Tally{Pending: 6, Rejected: 3})
	},
	// covers N2
	"UnknownSale": func(l ledgerTest) {
		s := l.sale(10, 1)
		nowhere := s.order("7", 1)
		nowhere.Sale = domain.SaleID{Activity: s.Activity, SKU: 99}
		p := s.place(nowhere)[0]
		l.wants(p, domain.Rejected, domain.ReasonUnknownSale)
		l.same(l.find(nowhere.ID), p.Order)
	},
	// covers N7
	"StaleEpoch": func(l ledgerTest) {
		s := l.sale(10, 1)
		old := s.orders(3)
		old[0].Request = "r"
		epoch, err := l.BeginEpoch(l.ctx(), s.SaleID, domain.Fence{})
		l.must(err)
		s.epoch = epoch
		batch := append(old, s.order("new", 1))
		for i, p := range s.place(batch...) {
			if i < 3 {
				l.wants(p, domain.Rejected, domain.ReasonStaleEpoch)
				s.effectOf(p.Order.ID, domain.Rejected)
			} else {
				l.wants(p, domain.Pending, "")
			}
		}
		s.counts(domain.Tally{Pending: 1, Rejected: 3})
		// Who asks again under the same request id has another order.
		again := s.order(old[0].Buyer, 1)
		again.Request = "r"
		s.pending(again)
		l.wants(s.place(old[0])[0], domain.Rejected, domain.ReasonStaleEpoch)
	},
	// covers Q4 Q7
	"BadOrdersDoNotTouchTheirNeighbours": func(l ledgerTest) {
		s := l.sale(200, 2)
		taken := s.order("taken", 1)
		taken.Request = "r"
		s.pending(taken)
		batch := s.orders(100)
		batch[3] = s.order("greedy", 3)
		batch[40] = s.order("taken", 1)
		batch[40].Request = "r"
		batch[55].Sale = domain.SaleID{Activity: ledgerActivityID(), SKU: 1}
		batch[56].Epoch = 77
		batch[70].Quantity = 0
		batch[71].Quantity = -1
		batch[72].Buyer = "this-name-is-longer-than-the-sixty-four-bytes-that-a-name-may-have"
		batch[73].Buyer = "名"
		batch[74] = taken
		placed, err := l.Place(l.ctx(), batch)
		l.must(err)
		for i, p := range placed {
			switch i {
			case 3:
				l.wants(p, domain.Rejected, domain.ReasonLimitReached)
			case 40:
				l.wants(p, domain.Rejected, domain.ReasonDuplicateRequest)
			case 55:
				l.wants(p, domain.Rejected, domain.ReasonUnknownSale)
			case 56:
				l.wants(p, domain.Rejected, domain.ReasonStaleEpoch)
			case 70, 71, 72, 73:
				if p.Err == nil {
					l.Errorf("order %d: no error of its own", i)
				}
			case 74:
				l.wants(p, domain.Pending, "")
				if p.Fresh {
					l.Error("the repeated order is fresh")
				}
			default:
				l.wants(p, domain.Pending, "")
				if !p.Fresh || p.Err != nil {
					l.Errorf("order %d: fresh %v, error %v", i, p.Fresh, p.Err)
				}
			}
		}
		s.counts(domain.Tally{Pending: 92, Rejected: 5})
	},
	// covers A6
	"IDsCompareByteWise": func(l ledgerTest) {
		s := l.sale(10, 1)
		for _, buyer := range []domain.BuyerID{"Bob", "bob", "BOB", "bob."} {
			o := s.order(buyer, 1)
			o.Request = "R"
			s.pending(o)
		}
		l.wants(s.place(s.order("bob", 1))[0], domain.Rejected, domain.ReasonLimitReached)
		wide := l.sale(10, 5)
		for _, request := range []domain.RequestID{"r", "R", "r-", "r_"} {
			o := wide.order("bob", 1)
			o.Request = request
			wide.pending(o)
		}
		o := s.pending(s.order("dora", 1))
		_, err := l.Pay(l.ctx(), o.ID, "P")
		l.must(err)
		_, err = l.Pay(l.ctx(), o.ID, "p")
		l.closed(err, o.ID, domain.Paid)
		upper := o
		upper.ID = domain.OrderID("X" + string(o.ID[1:]))
		if found, err := l.Find(l.ctx(), upper.ID, domain.OrderID("sk"+string(o.ID[2:]))); err != nil || len(found) != 0 {
			l.Errorf("found %v %v by another id", found, err)
		}
	},
	"LimitsOfTwoSalesAreApart": func(l ledgerTest) {
		a := l.activity(10, 1)
		a.SKUs = append(a.SKUs, a.SKUs[0])
		a.SKUs[1].ID = 2002
		s := l.saleOf(a)
		second := &ledgerSale{ledgerTest: l, SaleID: a.Sale(2002), activity: a}
		epoch, err := l.BeginEpoch(l.ctx(), second.SaleID, domain.Fence{})
		l.must(err)
		second.epoch = epoch
		for _, p := range l.place(s.order("7", 1), second.order("7", 1)) {
			l.wants(p, domain.Pending, "")
		}
		s.counts(domain.Tally{Pending: 1})
		second.counts(domain.Tally{Pending: 1})
	},
	// covers Q7: a run over many more orders than units.
	"ExcessIsRejectedInBatches": func(l ledgerTest) {
		s := l.sale(30, 1)
		rejected := 0
		for batch := range slices.Chunk(s.orders(100), 25) {
			for _, p := range s.place(batch...) {
				if p.Order.Status == domain.Rejected {
					rejected++
				}
			}
		}
		if rejected != 70 {
			l.Errorf("%d rejected, want 70", rejected)
		}
		s.counts(domain.Tally{Pending: 30, Rejected: 70})
	},
}
