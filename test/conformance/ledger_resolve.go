package conformance

import (
	"time"

	"seckill/domain"
)

var ledgerResolveTests = map[string]func(ledgerTest){
	// covers P2
	"Pay": func(l ledgerTest) {
		s := l.sale(10, 5)
		o := s.pending(s.order("7", 3))
		e, err := l.Pay(l.ctx(), o.ID, "p-1")
		l.must(err)
		want := o
		want.Status, want.Payment, want.PaidAt = domain.Paid, "p-1", e.Order.PaidAt
		l.same(e.Order, want)
		if want.PaidAt.Before(o.CreatedAt) {
			l.Errorf("paid at %v, created at %v", want.PaidAt, o.CreatedAt)
		}
		if e.ID == 0 || e.Hold != o.ID || !e.Settles() {
			l.Errorf("effect %d on %s, settles %v", e.ID, e.Hold, e.Settles())
		}
		l.same(l.find(o.ID), want)
		if kept := s.effectOf(o.ID, domain.Paid); kept.ID != e.ID {
			l.Errorf("outbox has effect %d, answer was %d", kept.ID, e.ID)
		}
		s.counts(domain.Tally{Paid: 3})
		if t := s.tally(); t.Settling != 3 || t.Releasing != 0 {
			l.Errorf("settling %d, releasing %d", t.Settling, t.Releasing)
		}
	},
	// covers P2
	"Cancel": func(l ledgerTest) {
		s := l.sale(10, 5)
		o := s.pending(s.order("7", 3))
		e, err := l.Cancel(l.ctx(), o.ID)
		l.must(err)
		want := o
		want.Status, want.ClosedAt = domain.Cancelled, e.Order.ClosedAt
		l.same(e.Order, want)
		l.same(l.find(o.ID), want)
		if e.ID == 0 || e.Hold != o.ID || e.Settles() || want.ClosedAt.IsZero() {
			l.Errorf("effect %+v", e)
		}
		s.effectOf(o.ID, domain.Cancelled)
		s.counts(domain.Tally{Cancelled: 3})
		if t := s.tally(); t.Releasing != 3 || t.Settling != 0 {
			l.Errorf("settling %d, releasing %d", t.Settling, t.Releasing)
		}
	},
	// covers P3
	"RepeatAnswersTheSame": func(l ledgerTest) {
		s := l.sale(10, 5)
		paid, cancelled := s.pending(s.order("7", 2)), s.pending(s.order("8", 2))
		pay, err := l.Pay(l.ctx(), paid.ID, "p-1")
		l.must(err)
		cancel, err := l.Cancel(l.ctx(), cancelled.ID)
		l.must(err)
		for range 3 {
			e, err := l.Pay(l.ctx(), paid.ID, "p-1")
			l.must(err)
			l.same(e.Order, pay.Order)
			c, err := l.Cancel(l.ctx(), cancelled.ID)
			l.must(err)
			l.same(c.Order, cancel.Order)
			if e.ID != 0 || c.ID != 0 {
				l.Errorf("effects %d and %d of a repeat", e.ID, c.ID)
			}
		}
		s.counts(domain.Tally{Paid: 2, Cancelled: 2})
		if n := len(s.effects()); n != 2 {
			l.Errorf("%d effects, want 2", n)
		}
	},
	// covers P2
	"TheFirstOutcomeWins": func(l ledgerTest) {
		s := l.shortSale(10, 5)
		paid, cancelled, expired := s.order("7", 1), s.order("8", 1), s.order("9", 1)
		s.expired(expired)
		s.pending(paid)
		_, err := l.Pay(l.ctx(), paid.ID, "p-1")
		l.must(err)
		s.pending(cancelled)
		_, err = l.Cancel(l.ctx(), cancelled.ID)
		l.must(err)

		_, err = l.Cancel(l.ctx(), paid.ID)
		l.closed(err, paid.ID, domain.Paid)
		_, err = l.Pay(l.ctx(), paid.ID, "p-2")
		l.closed(err, paid.ID, domain.Paid)
		_, err = l.PayLate(l.ctx(), paid.ID, "p-2", true)
		l.closed(err, paid.ID, domain.Paid)
		_, err = l.Pay(l.ctx(), cancelled.ID, "p")
		l.closed(err, cancelled.ID, domain.Cancelled)
		_, err = l.PayLate(l.ctx(), cancelled.ID, "p", true)
		l.closed(err, cancelled.ID, domain.Cancelled)
		_, err = l.Pay(l.ctx(), expired.ID, "p")
		l.closed(err, expired.ID, domain.Expired)
		_, err = l.Cancel(l.ctx(), expired.ID)
		l.closed(err, expired.ID, domain.Expired)
		s.counts(domain.Tally{Paid: 1, Cancelled: 1, Expired: 1})
	},
	"RejectedStaysRejected": func(l ledgerTest) {
		s := l.sale(1, 1)
		o := s.order("7", 2)
		l.wants(s.place(o)[0], domain.Rejected, domain.ReasonLimitReached)
		_, err := l.Pay(l.ctx(), o.ID, "p")
		l.closed(err, o.ID, domain.Rejected)
		_, err = l.Cancel(l.ctx(), o.ID)
		l.closed(err, o.ID, domain.Rejected)
		_, err = l.PayLate(l.ctx(), o.ID, "p", true)
		l.closed(err, o.ID, domain.Rejected)
	},
	"UnknownOrder": func(l ledgerTest) {
		id := domain.NewOrderID(domain.SaleID{Activity: ledgerActivityID(), SKU: 1}, "nosuchorder")
		_, err := l.Pay(l.ctx(), id, "p")
		l.fails(err, domain.ErrNotFound)
		_, err = l.PayLate(l.ctx(), id, "p", true)
		l.fails(err, domain.ErrNotFound)
		_, err = l.Cancel(l.ctx(), id)
		l.fails(err, domain.ErrNotFound)
	},
	// covers S6: units come back to the sale and the allowance to the buyer.
	"CancelledUnitsAreForOthers": func(l ledgerTest) {
		s := l.sale(1, 1)
		for range 3 {
			o := s.pending(s.order("7", 1))
			_, err := l.Cancel(l.ctx(), o.ID)
			l.must(err)
		}
		s.pending(s.order("8", 1))
		s.counts(domain.Tally{Pending: 1, Cancelled: 3})
	},
}

var ledgerLateTests = map[string]func(ledgerTest){
	// covers P5
	"PaidWhenTheUnitsAreThere": func(l ledgerTest) {
		s := l.shortSale(3, 3)
		o := s.expired(s.order("7", 3))
		e, err := l.PayLate(l.ctx(), o.ID, "p-1", true)
		l.must(err)
		want := o
		want.Status, want.Payment, want.Hold, want.ClosedAt, want.PaidAt = domain.Paid, "p-1", o.ID.Late(), time.Time{}, e.Order.PaidAt
		l.same(e.Order, want)
		l.same(l.find(o.ID), want)
		if e.Hold != o.ID.Late() || !e.Settles() || e.ID == 0 || want.PaidAt.IsZero() {
			l.Errorf("effect %+v", e)
		}
		s.counts(domain.Tally{Paid: 3})
		l.wants(s.place(s.order("7", 1))[0], domain.Rejected, domain.ReasonLimitReached)

		// The earlier decision is still told as it was.
		was := s.effectOf(o.ID, domain.Expired)
		l.same(was.Order, o)
		if was.Settles() {
			l.Error("the expiry settles")
		}
		s.effectOf(o.ID.Late(), domain.Paid)
		// The rejection above releases its unit, too.
		if t := s.tally(); t.Releasing != 3+1 || t.Settling != 3 {
			l.Errorf("releasing %d, settling %d", t.Releasing, t.Settling)
		}

		again, err := l.PayLate(l.ctx(), o.ID, "p-1", true)
		l.must(err)
		l.same(again.Order, want)
		if again.ID != 0 || again.Hold != o.ID.Late() {
			l.Errorf("repeat has effect %d on %s", again.ID, again.Hold)
		}
		again, err = l.Pay(l.ctx(), o.ID, "p-1")
		l.must(err)
		l.same(again.Order, want)
		_, err = l.PayLate(l.ctx(), o.ID, "p-2", true)
		l.closed(err, o.ID, domain.Paid)
	},
	// covers P5
	"RefundWithoutAHold": func(l ledgerTest) {
		s := l.shortSale(3, 3)
		o := s.expired(s.order("7", 2))
		l.refund(s, o, false)
		if t := s.tally(); t.Releasing != 2 {
			l.Errorf("releasing %d units, want only the 2 of the expiry", t.Releasing)
		}
	},
	// covers P5
	"RefundWhenTheUnitsAreGone": func(l ledgerTest) {
		s := l.shortSale(3, 3)
		o := s.expired(s.order("7", 2))
		s.pending(s.order("8", 2))
		l.refund(s, o, true)
		if t := s.tally(); t.Releasing != 4 {
			l.Errorf("releasing %d units, want 2 of each hold", t.Releasing)
		}
		// The buyer's allowance was given back again.
		_, err := l.Cancel(l.ctx(), s.pendingOf("8"))
		l.must(err)
		s.pending(s.order("7", 3))
	},
	// covers P5
	"RefundWhenTheLimitIsReached": func(l ledgerTest) {
		s := l.shortSale(10, 3)
		o := s.expired(s.order("7", 2))
		s.pending(s.order("7", 2))
		l.refund(s, o, true)
		s.counts(domain.Tally{Pending: 2, RefundDue: 2})
	},
	"PendingIsNotLate": func(l ledgerTest) {
		s := l.sale(3, 3)
		o := s.pending(s.order("7", 1))
		_, err := l.PayLate(l.ctx(), o.ID, "p", true)
		l.closed(err, o.ID, domain.Pending)
		s.counts(domain.Tally{Pending: 1})
	},
}

// refund pays late and demands that the payment is to be given back.
func (l ledgerTest) refund(s *ledgerSale, o domain.Order, reacquired bool) {
	l.Helper()
	before := s.tally()
	e, err := l.PayLate(l.ctx(), o.ID, "p-1", reacquired)
	l.must(err)
	want := o
	want.Status, want.Payment, want.Hold, want.PaidAt = domain.RefundDue, "p-1", o.ID.Late(), e.Order.PaidAt
	l.same(e.Order, want)
	l.same(l.find(o.ID), want)
	if e.ID == 0 || e.Hold != o.ID.Late() || e.Settles() {
		l.Errorf("effect %+v", e)
	}
	s.effectOf(o.ID.Late(), domain.RefundDue)
	after := s.tally()
	if after.Reserved != before.Reserved || after.Sold != before.Sold || after.RefundDue != o.Quantity {
		l.Errorf("before %+v\nafter %+v", before, after)
	}
	again, err := l.PayLate(l.ctx(), o.ID, "p-1", true)
	l.must(err)
	l.same(again.Order, want)
	if again.ID != 0 {
		l.Errorf("repeat has effect %d", again.ID)
	}
	again, err = l.Pay(l.ctx(), o.ID, "p-1")
	l.must(err)
	l.same(again.Order, want)
	_, err = l.PayLate(l.ctx(), o.ID, "p-2", true)
	l.closed(err, o.ID, domain.RefundDue)
	_, err = l.Cancel(l.ctx(), o.ID)
	l.closed(err, o.ID, domain.RefundDue)
}

// pendingOf finds the one pending order of a buyer.
func (s *ledgerSale) pendingOf(buyer domain.BuyerID) domain.OrderID {
	s.Helper()
	holds, err := s.Holds(s.ctx(), s.SaleID, "", 100)
	s.must(err)
	for _, o := range holds {
		if o.Buyer == buyer && o.Status == domain.Pending {
			return o.ID
		}
	}
	s.Fatalf("no pending order of %s", buyer)
	return ""
}
