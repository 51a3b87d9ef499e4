package conformance

import (
	"slices"
	"time"

	"seckill/domain"
)

var ledgerExpireTests = map[string]func(ledgerTest){
	// covers P1 P6
	"FreesUnitsAndAllowance": func(l ledgerTest) {
		s := l.shortSale(4, 2)
		a, b := s.order("7", 2), s.order("8", 1)
		s.place(a, b, s.order("9", 1))
		_, err := l.Pay(l.ctx(), s.pendingOf("9"), "p")
		l.must(err)
		var effects []domain.Effect
		l.until("both are due", func() bool {
			more, err := l.Expire(l.ctx(), s.SaleID, 10, domain.Fence{})
			l.must(err)
			effects = append(effects, more...)
			return len(effects) >= 2
		})
		for _, e := range effects {
			if e.ID == 0 || e.Settles() || e.Order.Status != domain.Expired || e.Hold != e.Order.ID || e.Order.ClosedAt.IsZero() {
				l.Errorf("effect %+v", e)
			}
			if e.Order.ClosedAt.Before(e.Order.ExpiresAt) {
				l.Errorf("closed at %v, before its deadline %v", e.Order.ClosedAt, e.Order.ExpiresAt)
			}
			l.same(l.find(e.Order.ID), e.Order)
			if kept := s.effectOf(e.Hold, domain.Expired); kept.ID != e.ID {
				l.Errorf("outbox has effect %d, answer was %d", kept.ID, e.ID)
			}
		}
		s.counts(domain.Tally{Paid: 1, Expired: 3})
		s.pending(s.order("7", 2))
	},
	// covers P1
	"NotBeforeTheDeadline": func(l ledgerTest) {
		s := l.sale(4, 2)
		s.pending(s.order("7", 1))
		effects, err := l.Expire(l.ctx(), s.SaleID, 10, domain.Fence{})
		l.must(err)
		if len(effects) != 0 {
			l.Errorf("expired %d orders before their time", len(effects))
		}
		if slices.Contains(l.dueSales(), s.SaleID) {
			l.Error("listed as due")
		}
	},
	// covers P6
	"DueListsTheSale": func(l ledgerTest) {
		s := l.shortSale(4, 2)
		s.pending(s.order("7", 1))
		l.until("the sale is due", func() bool { return slices.Contains(l.dueSales(), s.SaleID) })
		s.expireOne()
		if slices.Contains(l.dueSales(), s.SaleID) {
			l.Error("still listed")
		}
		two, err := l.Due(l.ctx(), 2)
		l.must(err)
		if len(two) > 2 {
			l.Errorf("%d sales, at most 2 were asked for", len(two))
		}
	},
	// covers P6
	"InBatchesTheLongestDueFirst": func(l ledgerTest) {
		s := l.shortSale(10, 10)
		var want []domain.OrderID
		last := time.Time{}
		for len(want) < 5 {
			o := s.pending(s.order("7", 1))
			want = append(want, o.ID)
			// The next one gets a later deadline.
			last = o.ExpiresAt
			l.until("the clock moves on", func() bool {
				n, err := l.Due(l.ctx(), 100_000)
				l.must(err)
				return slices.Contains(n, s.SaleID) && time.Now().After(last)
			})
		}
		var got []domain.OrderID
		for _, n := range []int{2, 2, 1} {
			effects, err := l.Expire(l.ctx(), s.SaleID, 2, domain.Fence{})
			l.must(err)
			if len(effects) != n {
				l.Fatalf("expired %d, want %d", len(effects), n)
			}
			for _, e := range effects {
				got = append(got, e.Order.ID)
			}
		}
		if !slices.Equal(got, want) {
			l.Errorf("expired %v, want %v", got, want)
		}
		if effects, err := l.Expire(l.ctx(), s.SaleID, 2, domain.Fence{}); err != nil || len(effects) != 0 {
			l.Errorf("nothing is left, expired %v %v", effects, err)
		}
	},
	"OnlyItsOwnSale": func(l ledgerTest) {
		a, b := l.shortSale(4, 2), l.shortSale(4, 2)
		b.pending(b.order("7", 1))
		a.expired(a.order("7", 1))
		b.counts(domain.Tally{Pending: 1})
	},
	// covers P1: many orders, several for one buyer, different quantities
	"ManyAtOnce": func(l ledgerTest) {
		s := l.shortSale(1000, 20)
		var orders []domain.Order
		for i := range 60 {
			orders = append(orders, s.order([]domain.BuyerID{"a", "b", "c", "d", "e"}[i%5], int64(1+i%2)))
		}
		s.place(orders...)
		expired := 0
		l.until("all are expired", func() bool {
			effects, err := l.Expire(l.ctx(), s.SaleID, 1000, domain.Fence{})
			l.must(err)
			expired += len(effects)
			return expired == 60
		})
		s.counts(domain.Tally{Expired: 90})
		for _, buyer := range []domain.BuyerID{"a", "b", "c", "d", "e"} {
			s.pending(s.order(buyer, 20))
		}
	},
	// covers L5
	"OldFenceIsRefused": func(l ledgerTest) {
		s := l.shortSale(4, 2)
		s.pending(s.order("7", 1))
		key := "expire:" + s.String()
		old, err := l.NextFence(l.ctx(), key)
		l.must(err)
		newer, err := l.NextFence(l.ctx(), key)
		l.must(err)
		if newer <= old {
			l.Fatalf("number %d after %d", newer, old)
		}
		l.until("the sale is due", func() bool { return slices.Contains(l.dueSales(), s.SaleID) })
		_, err = l.Expire(l.ctx(), s.SaleID, 10, domain.Fence{Key: key, Number: old})
		l.fails(err, domain.ErrFenced)
		s.counts(domain.Tally{Pending: 1})
		_, err = l.BeginEpoch(l.ctx(), s.SaleID, domain.Fence{Key: key, Number: old})
		l.fails(err, domain.ErrFenced)
		if epoch := s.tally().Epoch; epoch != s.epoch {
			l.Errorf("epoch %d", epoch)
		}
		effects, err := l.Expire(l.ctx(), s.SaleID, 10, domain.Fence{Key: key, Number: newer})
		l.must(err)
		if len(effects) != 1 {
			l.Errorf("expired %d", len(effects))
		}
		_, err = l.BeginEpoch(l.ctx(), s.SaleID, domain.Fence{Key: key, Number: newer})
		l.must(err)
	},
}

func (l ledgerTest) dueSales() []domain.SaleID {
	l.Helper()
	sales, err := l.Due(l.ctx(), 100_000)
	l.must(err)
	return sales
}

var ledgerOutboxTests = map[string]func(ledgerTest){
	// covers P4
	"KeepsWhatIsNotApplied": func(l ledgerTest) {
		s := l.sale(10, 5)
		var ids []int64
		for range 3 {
			o := s.order("7", 1)
			o.Request = domain.RequestID("r" + string(o.ID[len(o.ID)-6:]))
			s.pending(o)
			e, err := l.Cancel(l.ctx(), o.ID)
			l.must(err)
			ids = append(ids, e.ID)
		}
		listed := s.effects()
		if len(listed) != 3 {
			l.Fatalf("%d effects, want 3", len(listed))
		}
		for i, e := range listed {
			if e.ID != ids[i] {
				l.Errorf("effect %d is %d, want %d: not oldest first", i, e.ID, ids[i])
			}
			l.same(e.Order, l.find(e.Order.ID))
		}
		l.must(l.Applied(l.ctx(), ids[0], ids[2]))
		l.must(l.Applied(l.ctx(), ids[0], ids[2]))
		l.must(l.Applied(l.ctx()))
		if left := s.effects(); len(left) != 1 || left[0].ID != ids[1] {
			l.Errorf("left %v, want only %d", left, ids[1])
		}
		if t := s.tally(); t.Releasing != 1 {
			l.Errorf("releasing %d, want 1", t.Releasing)
		}
	},
	"YoungRowsWait": func(l ledgerTest) {
		s := l.sale(10, 5)
		o := s.pending(s.order("7", 1))
		_, err := l.Cancel(l.ctx(), o.ID)
		l.must(err)
		old, err := l.Effects(l.ctx(), time.Hour, 0, 100_000)
		l.must(err)
		for _, e := range old {
			if e.Order.ID == o.ID {
				l.Error("a row of this moment is an hour old")
			}
		}
		l.until("the row is 20ms old", func() bool {
			old, err := l.Effects(l.ctx(), 20*time.Millisecond, 0, 100_000)
			l.must(err)
			return slices.ContainsFunc(old, func(e domain.Effect) bool { return e.Order.ID == o.ID })
		})
	},
	"AtMostMax": func(l ledgerTest) {
		s := l.sale(10, 5)
		s.place(s.order("7", 6), s.order("8", 6), s.order("9", 6))
		some, err := l.Effects(l.ctx(), 0, 0, 2)
		l.must(err)
		if len(some) != 2 {
			l.Errorf("%d effects, want 2", len(some))
		}
	},
	// covers P4: what cannot be applied does not stand in the way of the rest.
	"PagesByID": func(l ledgerTest) {
		s := l.sale(10, 5)
		s.place(s.order("7", 6), s.order("8", 6), s.order("9", 6), s.order("10", 6), s.order("11", 6))
		var want, got []int64
		for _, e := range s.effects() {
			want = append(want, e.ID)
		}
		if len(want) != 5 {
			l.Fatalf("%d effects, want 5", len(want))
		}
		for after := want[0] - 1; ; {
			page, err := l.Effects(l.ctx(), 0, after, 2)
			l.must(err)
			if len(page) > 2 {
				l.Fatalf("page of %d effects", len(page))
			}
			if len(page) == 0 {
				break
			}
			for _, e := range page {
				if e.ID <= after {
					l.Fatalf("effect %d after %d", e.ID, after)
				}
				after = e.ID
				if e.Order.Sale == s.SaleID {
					got = append(got, e.ID)
				}
			}
		}
		if !slices.Equal(got, want) {
			l.Errorf("paged %v, want %v", got, want)
		}
		// The age goes for every page.
		old, err := l.Effects(l.ctx(), time.Hour, want[0], 100_000)
		l.must(err)
		for _, e := range old {
			if e.Order.Sale == s.SaleID {
				l.Errorf("effect %d of this moment is an hour old", e.ID)
			}
		}
	},
	// covers P4: a large sweep
	"ManyApplied": func(l ledgerTest) {
		s := l.sale(1, 1)
		orders := s.orders(1200)
		for i := range orders {
			orders[i].Epoch = 99
		}
		s.place(orders...)
		effects := s.effects()
		if len(effects) != 1200 {
			l.Fatalf("%d effects", len(effects))
		}
		ids := make([]int64, len(effects))
		for i, e := range effects {
			ids[i] = e.ID
		}
		l.must(l.Applied(l.ctx(), ids...))
		if left := len(s.effects()); left != 0 {
			l.Errorf("%d left", left)
		}
	},
}
