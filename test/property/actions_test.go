package property

import (
	"errors"
	"fmt"
	"time"

	"pgregory.net/rapid"

	"seckill/application"
	"seckill/domain"
)

// actions are what may happen next. What is to happen more often has two names.
func (m *machine) actions() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"":                   m.check,
		"grab":               m.grab,
		"grab more":          m.grab,
		"grab once more":     m.grab,
		"ask again":          m.askAgain,
		"deliver":            m.deliverSome,
		"deliver and place":  m.deliverAndPlace,
		"deliver and so on":  m.deliverAndPlace,
		"deliver all":        m.deliverAndPlace,
		"deliver again":      m.deliverAgain,
		"place":              m.placeSome,
		"acknowledge late":   m.acknowledgeOff,
		"consumer dies":      m.consumerDies,
		"pay":                m.pay,
		"pay more":           m.pay,
		"pay late":           m.payLate,
		"cancel":             m.cancel,
		"expire":             m.expire,
		"expire more":        m.expire,
		"relay":              m.relay,
		"outcomes get lost":  m.goDeaf,
		"reconcile":          m.reconcile,
		"preheat":            m.preheat,
		"edit the stock":     m.edit,
		"command":            m.command,
		"open":               m.open,
		"open after all":     m.open,
		"process dies":       m.crash,
		"hot store is empty": m.loss,
		"hot store may be":   m.doubt,
		"stores are harmed":  m.doHarm,
	}
}

// grab by one of a few buyers.
func (m *machine) grab(t *rapid.T) {
	sale := m.sales[rapid.IntRange(0, len(m.sales)-1).Draw(t, "sale")]
	key := request{
		rapid.SampledFrom([]domain.BuyerID{"a", "b", "c", "d"}).Draw(t, "buyer"),
		rapid.SampledFrom([]domain.RequestID{"", "", "r1", "r2", "r3"}).Draw(t, "request"),
	}
	m.ask(t, sale, key, rapid.Int64Range(1, 3).Draw(t, "quantity"))
}

// askAgain repeats an earlier grab. Without a request id it is a new one.
func (m *machine) askAgain(t *rapid.T) {
	o := m.any(t)
	m.ask(t, o.sale, request{o.buyer, o.request}, o.quantity)
}

func (m *machine) ask(t *rapid.T, sale *saleModel, key request, quantity int64) {
	free := m.level(sale).Available
	want, first := m.judge(sale, key, quantity)
	got, err := m.Grab(ctx, application.GrabRequest{Sale: sale.id, Buyer: key.buyer, Request: key.id, Quantity: quantity})
	if err != nil {
		t.Fatalf("grab: %v", err)
	}
	// Without a request id the node may answer from memory what is so anyway.
	if got.Verdict == domain.SoldOut && key.id == "" && free == 0 {
		m.reach("sold out")
		return
	}
	if got.Verdict != want {
		t.Fatalf("grab of %d by %s under %q: %s, want %s", quantity, key.buyer, key.id, got.Verdict, want)
	}
	m.reach(want.String())
	switch {
	case want != domain.Accepted:
	case first != nil:
		if m.reach("replayed"); got.Order != first.id || !got.Replayed {
			t.Fatalf("repeat by %s under %q: %+v, want order %s", key.buyer, key.id, got, first.id)
		}
	default:
		if got.Replayed || got.Order == "" || m.byID(got.Order) != nil || got.After != free-quantity {
			t.Fatalf("grab of %d of %d: %+v", quantity, free, got)
		}
		o := &order{
			sale: sale, id: got.Order, buyer: key.buyer, request: key.id, quantity: quantity,
			epoch: sale.epoch, first: domain.Held, queued: true,
		}
		m.orders = append(m.orders, o)
		if key.id != "" {
			sale.requests[key] = o
		}
	}
}

// any picks an order, or another action where there is none.
func (m *machine) any(t *rapid.T) *order {
	if len(m.orders) == 0 {
		t.Skip("no order yet")
	}
	return m.orders[rapid.IntRange(0, len(m.orders)-1).Draw(t, "order")]
}

// pay pays an order, often not for the first time or too late.
func (m *machine) pay(t *rapid.T) { m.payFor(t, m.any(t)) }

// payLate pays an order that has expired.
func (m *machine) payLate(t *rapid.T) {
	var expired []*order
	for _, o := range m.orders {
		if o.status == domain.Expired {
			expired = append(expired, o)
		}
	}
	if len(expired) == 0 {
		t.Skip("no order is expired")
	}
	m.payFor(t, expired[rapid.IntRange(0, len(expired)-1).Draw(t, "order")])
}

func (m *machine) payFor(t *rapid.T, o *order) {
	payment := rapid.SampledFrom([]domain.PaymentID{"p1", "p1", "p2"}).Draw(t, "payment")
	got, err := m.Pay(ctx, o.id, o.buyer, payment)
	switch {
	case m.undecidable(t, o, err):
	case o.status == domain.Pending:
		o.status, o.payment = domain.Paid, payment
		m.applied(o)
		m.answered(t, o, got, err)
	case (o.status == domain.Paid || o.status == domain.RefundDue) && o.payment == payment:
		m.reach("paid again")
		m.answered(t, o, got, err)
	case o.status == domain.Expired && m.faults.deaf:
		// The units of the expiry must be back before they are taken again.
		if !errors.Is(err, domain.ErrUnavailable) {
			t.Fatalf("late payment: %v", err)
		}
	case o.status == domain.Expired:
		o.follow()
		o.status, o.payment = domain.RefundDue, payment
		if m.fits(o.sale, o.buyer, o.quantity) == domain.Accepted {
			o.status, o.late = domain.Paid, domain.Sold
			m.reach("late paid")
		}
		m.answered(t, o, got, err)
	default:
		m.closed(t, o, err)
	}
}

func (m *machine) cancel(t *rapid.T) {
	o := m.any(t)
	got, err := m.Cancel(ctx, o.id, o.buyer)
	switch {
	case m.undecidable(t, o, err):
	case o.status == domain.Pending:
		o.status = domain.Cancelled
		m.applied(o)
		m.answered(t, o, got, err)
	case o.status == domain.Cancelled:
		m.answered(t, o, got, err)
	default:
		m.closed(t, o, err)
	}
}

// undecidable: the ledger does not have the order.
func (m *machine) undecidable(t *rapid.T, o *order, err error) bool {
	switch status, _ := o.shown(); {
	case status == domain.Queued:
		if !errors.Is(err, domain.ErrOrderQueued) {
			t.Fatalf("order %s is queued: %v", o.id, err)
		}
	case o.lost():
		m.closed(t, o, err)
	default:
		return false
	}
	return true
}

// closed: another outcome has won.
func (m *machine) closed(t *rapid.T, o *order, err error) {
	status, _ := o.shown()
	var closed *domain.ClosedError
	if !errors.As(err, &closed) || closed.Order.Status != status {
		t.Fatalf("order %s is %s: %v", o.id, status, err)
	}
}

func (m *machine) answered(t *rapid.T, o *order, got domain.Order, err error) {
	if err != nil || got.ID != o.id || got.Status != o.status || got.Payment != o.payment {
		t.Fatalf("order %s is %s (%s): %+v, %v", o.id, o.status, o.payment, got, err)
	}
	m.reach(string(o.status))
}

// applied: whoever decides tells the hot store, if that can be told.
func (m *machine) applied(o *order) {
	if !m.faults.deaf {
		o.follow()
	}
}

// expire closes what is due, which here is everything or nothing.
func (m *machine) expire(t *rapid.T) {
	want := 0
	if m.expiry {
		time.Sleep(3 * time.Millisecond) // beyond the last deadline
		for _, o := range m.orders {
			if o.status == domain.Pending {
				want++
				o.status = domain.Expired
				m.applied(o)
				m.reach("expired")
			}
		}
	}
	if got, err := m.Expire(ctx); err != nil || got != want {
		t.Fatalf("%d orders expired, %v; want %d", got, err, want)
	}
}

// relay applies what nobody has applied yet.
func (m *machine) relay(t *rapid.T) {
	done, err := m.Relay(ctx)
	if m.faults.deaf {
		if err != nil && !errors.Is(err, domain.ErrUnavailable) || done > 0 {
			t.Fatalf("relay: %d, %v", done, err)
		}
		return
	}
	m.ok(t, err)
	if done > 0 {
		m.reach("relayed")
	}
	for _, o := range m.orders {
		o.follow()
	}
}

func (m *machine) goDeaf(*rapid.T) { m.faults.deaf = !m.faults.deaf }

func (o *order) String() string {
	return fmt.Sprintf("%d units of %s for %s under %q", o.quantity, o.sale.id, o.buyer, o.request)
}
