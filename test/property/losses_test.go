package property

import (
	"slices"
	"time"

	"pgregory.net/rapid"

	"seckill/application"
	"seckill/domain"
)

// beyond is when an order that nobody knows is told to be lost for good.
const beyond = 11 * time.Second

// crash: the process dies, and another one starts. What its memory had is gone.
func (m *machine) crash(t *rapid.T) {
	time.Sleep(2 * time.Millisecond) // ids and epochs are told apart by the millisecond
	m.hand = nil
	m.start(t)
	m.reach("crashed")
	if m.w.client == nil {
		m.forgotten()
	}
}

// forgotten: the hot store has lost everything and was loaded anew.
func (m *machine) forgotten() {
	for _, o := range m.orders {
		o.queued = false
	}
	for _, sale := range m.sales {
		m.reload(sale)
	}
	m.clock.move(beyond)
}

// loss: Redis loses all that it has of the activity. Until the engine has seen to
// it, it sells nothing.
func (m *machine) loss(t *rapid.T) {
	if m.w.client == nil {
		t.Skip("the process is the hot store")
	}
	if m.waiting() > 0 && rapid.Bool().Draw(t, "a consumer has read the queue") {
		m.deliver(t)
	}
	time.Sleep(2 * time.Millisecond)
	m.ok(t, m.flush())
	got, err := m.Grab(ctx, application.GrabRequest{Sale: m.sales[0].id, Buyer: "a", Request: "r-none"})
	if err != nil || got.Verdict != domain.NotReady {
		t.Fatalf("grab from an empty hot store: %+v, %v", got, err)
	}
	m.ok(t, m.Watch(ctx))
	m.reach("emptied")
	m.forgotten()
}

// doubt: Redis may have lost something, and has not. What is queued is placed
// before the sales are loaded anew, so nothing is lost by that either.
func (m *machine) doubt(t *rapid.T) {
	if m.w.client == nil {
		t.Skip("the process is the hot store")
	}
	m.faults.ackOff = false
	keys, err := m.w.client.Keys(ctx, m.prefix+"*witness").Result()
	if err != nil || len(keys) == 0 {
		t.Fatalf("witnesses: %v, %v", keys, err)
	}
	m.ok(t, m.w.client.Del(ctx, keys...).Err())
	done := make(chan error)
	go func() { done <- m.Watch(ctx) }()
	// The consumer goes on meanwhile, and the engine waits for it.
	if slices.ContainsFunc(m.orders, func(o *order) bool { return o.queued }) {
		time.Sleep(30 * time.Millisecond)
	}
	kept := m.hand
	m.hand = nil
	m.deliver(t)
	m.deliverAgain(t)
	m.place(t, len(m.hand))
	m.hand = kept
	m.ok(t, <-done)
	m.reach("doubted")
	for _, sale := range m.sales {
		m.reload(sale)
	}
}

// harms are what may be done to the stores once in a sequence, with "" for
// nothing: a repair waits until it believes in a difference, which takes a second.
func harms() []string {
	return append(slices.Repeat([]string{""}, 17), "late payment", "queue entry", "hold")
}

// doHarm leaves what a process leaves that dies between two stores, and has it repaired.
func (m *machine) doHarm(t *rapid.T) {
	repair := ""
	if m.harm == "" || m.faults.deaf {
		t.Skip("nothing to harm")
	}
	// What is on its way may explain a difference, so nothing else is to be.
	m.relay(t)
	for _, o := range m.orders {
		done, others := false, m.level(o.sale).Queued
		if o.queued {
			others -= o.quantity
		}
		if others > 0 || o.queued && m.harm != "queue entry" {
			continue
		}
		switch m.harm {
		case "late payment": // took the units and never came to the ledger
			if o.status != domain.Expired || o.first != domain.Released || m.fits(o.sale, o.buyer, o.quantity) != domain.Accepted {
				continue
			}
			got, err := m.stock.Reacquire(ctx, o.sale.id, domain.Claim{Order: o.id, Buyer: o.buyer, Quantity: o.quantity})
			repair, done = "released", err == nil && got.Verdict == domain.Accepted
		case "queue entry": // is gone, its hold is not
			if !o.queued || o.delivered {
				continue
			}
			m.deliver(t)
			for _, d := range m.hand {
				if slices.ContainsFunc(d.Intents, func(i domain.Intent) bool { return i.Order == o.id }) {
					m.ok(t, m.queue.Ack(ctx, d))
				}
			}
			m.hand = nil
			o.delivered = false
			repair, done = "requeued", true
		case "hold": // is gone, its order is not
			if o.status != domain.Pending || o.first != domain.Held {
				continue
			}
			units, err := m.stock.Release(ctx, o.sale.id, o.id)
			repair, done = "adopted", err == nil && units == o.quantity
		}
		if !done {
			t.Fatalf("%s of %v could not be harmed", m.harm, o)
		}
		m.repaired(t, o, repair)
		return
	}
	t.Skip("nothing to harm")
}

func (m *machine) repaired(t *rapid.T, o *order, what string) {
	m.reach("harmed: " + m.harm)
	m.harm = ""
	report, err := m.Reconcile(ctx, m.id, true)
	m.ok(t, err)
	repaired := false
	for _, sale := range report.Sales {
		if !sale.Balanced {
			t.Fatalf("%v is not repaired: %+v", o, sale)
		}
		for _, r := range sale.Repairs {
			repaired = repaired || r.What == what && r.Units == o.quantity
		}
	}
	if !repaired {
		t.Fatalf("%v is not %s: %+v", o, what, report.Sales)
	}
}
