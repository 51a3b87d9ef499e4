package property

import (
	"seckill/domain"
)

// model is what an activity should look like, in the hot store and in the ledger.
type model struct {
	state  domain.State
	sales  []*saleModel
	orders []*order // all that were accepted, by time
}

// saleModel is one sale. Its units are those of its orders.
type saleModel struct {
	id       domain.SaleID
	total    int64
	limit    int64
	epoch    int64
	requests map[request]*order // that the hot store remembers
}

type request struct {
	buyer domain.BuyerID
	id    domain.RequestID
}

// order is an accepted grab.
type order struct {
	sale     *saleModel
	id       domain.OrderID
	buyer    domain.BuyerID
	request  domain.RequestID
	quantity int64
	epoch    int64 // of the sale when it was accepted

	// In the hot store: its two holds, "" where there is none.
	first, late domain.HoldState
	queued      bool // its queue entry is not acknowledged
	delivered   bool // the entry was, at least once

	// In the ledger: "" while it is not there.
	status  domain.Status
	reason  string
	payment domain.PaymentID
}

// lost says whether no store knows of the order any more.
func (o *order) lost() bool { return o.status == "" && o.first != domain.Held }

// shown is what its buyer should be shown.
func (o *order) shown() (domain.Status, string) {
	switch {
	case o.status != "":
		return o.status, o.reason
	case o.lost():
		return domain.Rejected, domain.ReasonLost
	}
	return domain.Queued, ""
}

// hot counts its units in the hot store that are in a state.
func (o *order) hot(state domain.HoldState) int64 {
	var units int64
	for _, hold := range []domain.HoldState{o.first, o.late} {
		if hold == state {
			units += o.quantity
		}
	}
	return units
}

func (m *model) of(sale *saleModel) []*order {
	var orders []*order
	for _, o := range m.orders {
		if o.sale == sale {
			orders = append(orders, o)
		}
	}
	return orders
}

func (m *model) byID(id domain.OrderID) *order {
	for _, o := range m.orders {
		if o.id == id {
			return o
		}
	}
	return nil
}

// level is the hot store's account.
func (m *model) level(sale *saleModel) domain.Level {
	level := domain.Level{Epoch: sale.epoch, State: m.state, Total: sale.total}
	for _, o := range m.of(sale) {
		level.Held += o.hot(domain.Held)
		level.Sold += o.hot(domain.Sold)
		if o.queued {
			level.Queued += o.quantity
		}
	}
	level.Available = level.Total - level.Held - level.Sold
	return level
}

// units are a buyer's, in the hot store.
func (m *model) units(sale *saleModel, buyer domain.BuyerID) int64 {
	var units int64
	for _, o := range m.of(sale) {
		if o.buyer == buyer {
			units += o.hot(domain.Held) + o.hot(domain.Sold)
		}
	}
	return units
}

// fits judges units for a buyer as the hot store does behind the gate.
func (m *model) fits(sale *saleModel, buyer domain.BuyerID, quantity int64) domain.Verdict {
	switch {
	case m.units(sale, buyer)+quantity > sale.limit:
		return domain.LimitReached
	case m.level(sale).Available < quantity:
		return domain.SoldOut
	}
	return domain.Accepted
}

// judge is the answer to a grab; of a replay, with the first order.
func (m *model) judge(sale *saleModel, key request, quantity int64) (domain.Verdict, *order) {
	if first := sale.requests[key]; first != nil && key.id != "" {
		if first.quantity != quantity {
			return domain.RequestReused, nil
		}
		return domain.Accepted, first
	}
	switch m.state {
	case domain.Open:
		return m.fits(sale, key.buyer, quantity), nil
	case domain.Paused:
		return domain.SalePaused, nil
	case domain.Closed:
		return domain.SaleEnded, nil
	}
	return domain.NotStarted, nil
}

// place brings an order into the ledger. Of a request the ledger takes one order.
func (o *order) place(m *model) {
	if o.status != "" {
		return
	}
	if o.epoch != o.sale.epoch {
		o.status, o.reason = domain.Rejected, domain.ReasonStaleEpoch
		return
	}
	o.status = domain.Pending
	for _, other := range m.of(o.sale) {
		if o.request != "" && other != o && other.buyer == o.buyer && other.request == o.request && other.asked() {
			o.status, o.reason = domain.Rejected, domain.ReasonDuplicateRequest
			return
		}
	}
}

// asked says whether the ledger has the order under its request id.
func (o *order) asked() bool {
	return o.request != "" && o.status != "" && o.reason != domain.ReasonDuplicateRequest && o.reason != domain.ReasonStaleEpoch
}

// follow has the hot store hear of what the ledger decided.
func (o *order) follow() {
	switch o.status {
	case domain.Paid:
		if o.late == domain.Held {
			o.late = domain.Sold
		} else if o.first == domain.Held {
			o.first = domain.Sold
		}
	case domain.Cancelled, domain.Expired, domain.Rejected, domain.RefundDue:
		if o.first == domain.Held {
			o.first = domain.Released
		}
	}
}

// reload loads a sale from the ledger. What the ledger does not have is gone.
func (m *model) reload(sale *saleModel) {
	sale.epoch++
	sale.requests = map[request]*order{}
	for _, o := range m.of(sale) {
		// A payment that came late is under the second hold.
		where := &o.first
		if o.late != "" && o.status == domain.Paid {
			where = &o.late
		}
		o.first, o.late = "", ""
		switch o.status {
		case domain.Pending:
			*where = domain.Held
		case domain.Paid:
			*where = domain.Sold
		}
		if o.asked() {
			sale.requests[request{o.buyer, o.request}] = o
		}
	}
}

// busy says whether anything keeps the activity from being preheated.
func (m *model) busy() bool {
	for _, sale := range m.sales {
		if level := m.level(sale); level.Held > 0 || level.Queued > 0 {
			return true
		}
	}
	return false
}
