package property

import (
	"errors"
	"time"

	"pgregory.net/rapid"

	"seckill/domain"
)

// everything is more than the queue ever holds here.
const everything = 1000

// waiting counts the orders whose queue entry was never delivered.
func (m *machine) waiting() int {
	n := 0
	for _, o := range m.orders {
		if o.queued && !o.delivered {
			n++
		}
	}
	return n
}

// deliverSome has a consumer read new entries.
func (m *machine) deliverSome(t *rapid.T) {
	if m.waiting() == 0 {
		t.Skip("the queue has nothing new")
	}
	m.receive(t, rapid.IntRange(1, 4).Draw(t, "orders"))
}

func (m *machine) deliver(t *rapid.T) {
	for m.waiting() > 0 {
		m.receive(t, everything)
	}
}

func (m *machine) receive(t *rapid.T, limit int) {
	deliveries, err := m.queue.Receive(ctx, 0, limit)
	m.ok(t, err)
	if len(deliveries) == 0 {
		t.Fatalf("%d orders wait, none is delivered", m.waiting())
	}
	m.take(t, deliveries)
}

// deliverAgain has a consumer take over what was delivered and not acknowledged,
// in as many parts as the queue makes of it.
func (m *machine) deliverAgain(t *rapid.T) {
	missing := map[domain.OrderID]bool{}
	for _, o := range m.orders {
		if o.queued && o.delivered {
			missing[o.id] = true
		}
	}
	for range 10 {
		time.Sleep(2 * time.Millisecond) // the backoff
		deliveries, err := m.queue.Reclaim(ctx, 0, everything)
		m.ok(t, err)
		m.take(t, deliveries)
		for _, d := range deliveries {
			for _, intent := range d.Intents {
				delete(missing, intent.Order)
			}
		}
		if len(missing) == 0 {
			return
		}
	}
	t.Fatalf("not delivered again: %v", missing)
}

// take checks that what is delivered was accepted, as it is delivered.
func (m *machine) take(t *rapid.T, deliveries []domain.Delivery) {
	for _, d := range deliveries {
		for _, intent := range d.Intents {
			o := m.byID(intent.Order)
			if d.Problem != "" || o == nil || !o.queued {
				t.Fatalf("delivery %+v of %v", d, o)
			}
			if intent.Sale != o.sale.id || intent.Buyer != o.buyer || intent.Request != o.request || intent.Quantity != o.quantity || intent.Epoch != o.epoch {
				t.Fatalf("intent %+v of %v", intent, o)
			}
			o.delivered = true
		}
	}
	m.hand = append(m.hand, deliveries...)
}

// placeSome has the consumer place what it has, or a part of it.
func (m *machine) placeSome(t *rapid.T) {
	if len(m.hand) == 0 {
		t.Skip("nothing to place")
	}
	m.place(t, rapid.IntRange(1, len(m.hand)).Draw(t, "deliveries"))
}

func (m *machine) deliverAndPlace(t *rapid.T) {
	m.deliver(t)
	m.placeSome(t)
}

func (m *machine) place(t *rapid.T, n int) {
	batch := m.hand[:n]
	m.hand = m.hand[n:]
	err := m.Persist(ctx, batch)
	if err != nil && !(m.faults.ackOff && errors.Is(err, domain.ErrUnavailable)) {
		t.Fatalf("persist: %v", err)
	}
	for _, d := range batch {
		for _, intent := range d.Intents {
			o := m.byID(intent.Order)
			if o.status != "" {
				m.reach("placed again")
			}
			o.place(&m.model)
			m.reach(string(o.status) + " " + o.reason)
			if !m.faults.ackOff {
				o.queued = false
			}
		}
	}
	// Rejected ones give their units back at once, also when they come again.
	for _, d := range batch {
		for _, intent := range d.Intents {
			if o := m.byID(intent.Order); o.status == domain.Rejected {
				m.applied(o)
			}
		}
	}
}

// acknowledgeOff has acknowledgements get lost, or not any more.
func (m *machine) acknowledgeOff(*rapid.T) { m.faults.ackOff = !m.faults.ackOff }

// consumerDies: what it had comes back.
func (m *machine) consumerDies(t *rapid.T) {
	if len(m.hand) == 0 {
		t.Skip("it has nothing")
	}
	m.hand = nil
}
