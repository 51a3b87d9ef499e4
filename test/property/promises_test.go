package property

import (
	"slices"

	"pgregory.net/rapid"

	"seckill/domain"
)

// check holds the engine against the promises and the model.
func (m *machine) check(t *rapid.T) {
	orders := m.ledger(t)
	m.promises(t, orders)
	m.accounts(t)
	m.answers(t, orders)
}

// ledger are the accepted orders that the ledger has.
func (m *machine) ledger(t *rapid.T) map[domain.OrderID]domain.Order {
	var ids []domain.OrderID
	for _, o := range m.orders {
		ids = append(ids, o.id)
	}
	found := map[domain.OrderID]domain.Order{}
	if len(ids) == 0 {
		return found
	}
	orders, err := m.w.store.Find(ctx, ids...)
	m.ok(t, err)
	for _, o := range orders {
		found[o.ID] = o
	}
	return found
}

// after says which statuses may come after one.
var after = map[domain.Status][]domain.Status{
	"":             {domain.Pending, domain.Rejected},
	domain.Pending: {domain.Paid, domain.Cancelled, domain.Expired},
	domain.Expired: {domain.Paid, domain.RefundDue},
}

// promises are kept whatever the model says: an order ends once, what it was paid
// with stays, nothing is oversold, and nobody has more than the limit.
func (m *machine) promises(t *rapid.T, orders map[domain.OrderID]domain.Order) {
	type share struct {
		sale  domain.SaleID
		buyer domain.BuyerID
	}
	live, perBuyer := map[domain.SaleID]int64{}, map[share]int64{}
	for id, now := range orders {
		was := m.seen[id]
		switch {
		case now.Status == was.Status && now.Payment == was.Payment && now.Reason == was.Reason:
		case now.Status == was.Status || !slices.Contains(after[was.Status], now.Status):
			t.Errorf("order %s was %s (%s%s) and is %s (%s%s)", id, was.Status, was.Payment, was.Reason, now.Status, now.Payment, now.Reason)
		}
		m.seen[id] = now
		if now.Status == domain.Pending || now.Status == domain.Paid {
			live[now.Sale] += now.Quantity
			perBuyer[share{now.Sale, now.Buyer}] += now.Quantity
		}
	}
	for id := range m.seen {
		if orders[id].ID == "" {
			t.Errorf("order %s is gone from the ledger", id)
		}
	}
	for _, sale := range m.sales {
		if live[sale.id] > sale.total {
			t.Errorf("sale %s sold %d of %d", sale.id, live[sale.id], sale.total)
		}
		for key, units := range perBuyer {
			if key.sale == sale.id && units > sale.limit {
				t.Errorf("%s has %d units of sale %s, allowed are %d", key.buyer, units, sale.id, sale.limit)
			}
		}
	}
}

// accounts: each unit is where the model has it, in both stores, record by record.
func (m *machine) accounts(t *rapid.T) {
	report, err := m.Report(ctx, m.id)
	m.ok(t, err)
	if report.Activity.State != m.state {
		t.Errorf("the activity is %s, want %s", report.Activity.State, m.state)
	}
	for i, sale := range m.sales {
		got := report.Sales[i]
		if !got.Balanced || got.Level.Total != got.Level.Available+got.Level.Held+got.Level.Sold {
			t.Errorf("sale %s is not balanced: %+v", sale.id, got)
		}
		if want := m.level(sale); got.Level != want {
			t.Errorf("hot store's account of sale %s is\n%+v, want\n%+v", sale.id, got.Level, want)
		}
		want := m.tally(sale, got.Ledger)
		if got.Ledger != want {
			t.Errorf("ledger's account of sale %s is\n%+v, want\n%+v", sale.id, got.Ledger, want)
		}
		audit, err := m.stock.Audit(ctx, sale.id)
		if err != nil || !audit.Balanced() {
			t.Errorf("audit of sale %s: %+v, %v", sale.id, audit, err)
		}
	}
}

// tally is the ledger's account. What is on its way to the hot store is left to
// the report, which explains differences by it.
func (m *machine) tally(sale *saleModel, got domain.Tally) domain.Tally {
	tally := domain.Tally{Epoch: sale.epoch, Total: sale.total, Releasing: got.Releasing, Settling: got.Settling}
	units := map[domain.Status]*int64{
		domain.Pending: &tally.Pending, domain.Paid: &tally.Paid, domain.Cancelled: &tally.Cancelled,
		domain.Expired: &tally.Expired, domain.Rejected: &tally.Rejected, domain.RefundDue: &tally.RefundDue,
	}
	for _, o := range m.of(sale) {
		if o.status != "" {
			*units[o.status] += o.quantity
		}
	}
	tally.Reserved, tally.Sold = tally.Pending, tally.Paid
	return tally
}

// answers: the id of every accepted order leads to it, or to what became of it.
func (m *machine) answers(t *rapid.T, orders map[domain.OrderID]domain.Order) {
	for _, o := range m.orders {
		got, found := orders[o.id]
		if !found {
			var err error
			if got, err = m.Order(ctx, o.id, o.buyer); err != nil {
				t.Errorf("order %s of %s: %v", o.id, o.buyer, err)
				continue
			}
		}
		status, reason := o.shown()
		if got.Status != status || got.Reason != reason || got.Payment != o.payment || got.Buyer != o.buyer {
			t.Errorf("order %s of %s is %s (%s%s) of %s, want %s (%s%s)", o.id, o.buyer,
				got.Status, got.Reason, got.Payment, got.Buyer, status, reason, o.payment)
		}
		if o.lost() {
			m.reach("lost")
		} else if got.Quantity != o.quantity {
			t.Errorf("order %s has %d units, want %d", o.id, got.Quantity, o.quantity)
		}
	}
}

// finish lets everything come to rest: then nothing is on its way, and both
// stores say the same.
func (m *machine) finish(t *rapid.T) {
	m.faults = faults{}
	m.deliver(t)
	m.deliverAgain(t)
	m.place(t, len(m.hand))
	m.must(t)(m.Relay(ctx))
	for _, o := range m.orders {
		o.follow()
	}
	m.check(t)
	report, err := m.Report(ctx, m.id)
	m.ok(t, err)
	for _, got := range report.Sales {
		ledger := got.Ledger
		if got.Level.Queued != 0 || ledger.Releasing != 0 || ledger.Settling != 0 ||
			got.Level.Held != ledger.Reserved || got.Level.Sold != ledger.Sold || got.Level.Total != ledger.Total {
			t.Errorf("at rest sale %s has %+v", got.Sale, got)
		}
	}
}
