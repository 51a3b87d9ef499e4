package history

import (
	"context"
	"errors"
	"fmt"

	"seckill/application"
	"seckill/domain"
)

// Engine is what a check reads the stores with.
type Engine interface {
	Order(ctx context.Context, id domain.OrderID, buyer domain.BuyerID) (domain.Order, error)
	Report(ctx context.Context, id domain.ActivityID) (application.Report, error)
}

// Sale is what a check has to know of a sale.
type Sale struct {
	domain.SaleID
	Total int64
	Limit int64 // units per buyer
}

// Verdict is what a check found.
type Verdict struct {
	Accepted  int // order ids that clients were given
	Unknown   int // grabs whose client never learned the outcome
	Confirmed int // of the accepted, those that are orders
	Rejected  int // of the accepted, those that the ledger refused, or that are gone
	Gone      int // of the rejected, those that the hot store lost before the ledger had them
	Lost      int // accepted ids that nobody knows or that stay queued
	Doubled   int // requests that have more than one order
	Oversold  int64
	Stranded  int64 // units that are neither free nor in an order

	Problems []string
}

// maxProblems bounds what is listed; there may be thousands of one kind.
const maxProblems = 50

func (v *Verdict) add(format string, args ...any) {
	if len(v.Problems) < maxProblems {
		v.Problems = append(v.Problems, fmt.Sprintf(format, args...))
	}
}

type asked struct {
	sale    domain.SaleID
	buyer   domain.BuyerID
	request domain.RequestID
}

// Check compares the history with the stores, when all is quiet again: every
// client that will ask again has done so, and the queue is empty. orders are all
// that the ledger has of the sales.
//
// It checks that every accepted id ended as one order or one recorded rejection;
// that nobody has an order that nobody asked for, or two for one request; that no
// buyer has more than allowed and no sale more than there is; that what a client
// was shown of the ledger was not taken back; that nobody was told "sold out" of a
// sale that never was; and that every unit is free, held or sold.
func (h *History) Check(ctx context.Context, engine Engine, sales []Sale, orders []domain.Order) Verdict {
	var v Verdict
	calls := h.Calls()
	found := map[domain.OrderID]domain.Order{}
	live := map[domain.SaleID]int64{}
	perBuyer := map[asked]int64{}
	perRequest := map[asked]map[domain.OrderID]bool{}
	for _, o := range orders {
		found[o.ID] = o
		if o.Status == domain.Rejected {
			continue
		}
		if o.Status == domain.Pending || o.Status == domain.Paid {
			live[o.Sale] += o.Quantity
			perBuyer[asked{sale: o.Sale, buyer: o.Buyer}] += o.Quantity
		}
		if o.Request != "" {
			note(perRequest, asked{o.Sale, o.Buyer, o.Request}, o.ID)
		}
	}
	wanted := map[asked]bool{}
	byID := map[domain.OrderID]bool{}
	settled := map[asked]bool{}
	told := map[asked]domain.OrderID{}
	refused := map[asked]domain.Verdict{}
	accepted := map[domain.OrderID]domain.BuyerID{}
	tookUnits := map[domain.SaleID]int64{} // that may have been taken at some time
	soldOut := map[domain.SaleID]int{}
	for _, c := range calls {
		if c.Kind != Grab {
			continue
		}
		key := asked{c.Sale, c.Buyer, c.Request}
		wanted[key] = true
		if c.Order != "" {
			byID[c.Order] = true
		}
		if c.Result != Unknown {
			settled[key] = true
		}
		if c.Result == Refused && c.Verdict != domain.NotReady {
			refused[key] = c.Verdict
		}
		switch {
		case c.Result == OK:
			delete(refused, key) // asked again later
			accepted[c.Order] = c.Buyer
			if first, seen := told[key]; seen && c.Request != "" && first != c.Order {
				v.Doubled++
				v.add("request %s of %s was given the orders %s and %s", c.Request, c.Buyer, first, c.Order)
			}
			told[key] = c.Order
			tookUnits[c.Sale] += c.Quantity
		case c.Result == Unknown:
			tookUnits[c.Sale] += c.Quantity
		case c.Verdict == domain.SoldOut:
			soldOut[c.Sale]++
		}
	}
	for _, c := range calls {
		if c.Kind == Grab && c.Result == Unknown && !settled[asked{c.Sale, c.Buyer, c.Request}] {
			v.Unknown++
		}
	}
	for key, verdict := range refused {
		if len(perRequest[key]) > 0 {
			v.Doubled++
			v.add("request %s of %s was refused (%s) and has an order", key.request, key.buyer, verdict)
		}
	}
	for key, ids := range perRequest {
		if len(ids) > 1 {
			v.Doubled++
			v.add("request %s of %s has %d orders", key.request, key.buyer, len(ids))
		}
	}
	for id, buyer := range accepted {
		v.Accepted++
		order, err := found[id], error(nil)
		if order.ID == "" {
			order, err = engine.Order(ctx, id, buyer)
		}
		switch {
		case err != nil, order.Status == domain.Queued:
			v.Lost++
			v.add("accepted order %s of %s: %q, %v", id, buyer, order.Status, err)
		case order.Status == domain.Rejected && order.Reason == "":
			v.add("order %s is rejected without a reason", id)
		case order.Status == domain.Rejected:
			v.Rejected++
			if order.Reason == domain.ReasonLost {
				v.Gone++
			}
		default:
			v.Confirmed++
		}
		if err == nil && order.Buyer != buyer {
			v.add("order %s belongs to %q, its client is %q", id, order.Buyer, buyer)
		}
	}
	for _, o := range orders {
		if !wanted[asked{o.Sale, o.Buyer, o.Request}] && !byID[o.ID] {
			v.add("order %s of %s: nobody asked for it", o.ID, o.Buyer)
		}
	}
	for _, sale := range sales {
		if over := live[sale.SaleID] - sale.Total; over > 0 {
			v.Oversold += over
			v.add("sale %s sold %d of %d", sale.SaleID, live[sale.SaleID], sale.Total)
		}
		for key, units := range perBuyer {
			if key.sale == sale.SaleID && units > sale.Limit {
				v.add("%s has %d units of sale %s, allowed are %d", key.buyer, units, sale.SaleID, sale.Limit)
			}
		}
		if soldOut[sale.SaleID] > 0 && tookUnits[sale.SaleID]+maxQuantity(calls, sale.SaleID) < sale.Total {
			v.add("%d clients were told that sale %s is sold out, though at most %d of %d units were taken",
				soldOut[sale.SaleID], sale.SaleID, tookUnits[sale.SaleID], sale.Total)
		}
	}
	v.shown(calls, found)
	v.conserved(ctx, engine, sales, live)
	return v
}

func note(ids map[asked]map[domain.OrderID]bool, key asked, id domain.OrderID) {
	if ids[key] == nil {
		ids[key] = map[domain.OrderID]bool{}
	}
	ids[key][id] = true
}

// maxQuantity is the largest grab, less one: "sold out" says that no more than that is left.
func maxQuantity(calls []Call, sale domain.SaleID) int64 {
	var most int64
	for _, c := range calls {
		if c.Kind == Grab && c.Sale == sale {
			most = max(most, c.Quantity-1)
		}
	}
	return most
}

// shown: what a client has seen in the ledger stays true.
func (v *Verdict) shown(calls []Call, found map[domain.OrderID]domain.Order) {
	for _, c := range calls {
		if c.Kind == Grab || c.Status == "" || c.Status == domain.Queued || c.Status == domain.Rejected {
			continue
		}
		now := found[c.Order].Status
		switch {
		case now == "" || now == domain.Rejected:
			v.Lost++
			v.add("order %s was shown as %s and is %q now", c.Order, c.Status, now)
		case c.Status != domain.Pending && c.Status != domain.Expired && now != c.Status:
			v.add("order %s was shown as %s and is %s now", c.Order, c.Status, now)
		case c.Kind == Pay && c.Result == OK && now != domain.Paid && now != domain.RefundDue:
			v.add("order %s was paid and is %s now", c.Order, now)
		}
	}
}

// conserved: every unit is free, held by a live order, or sold, in both stores.
func (v *Verdict) conserved(ctx context.Context, engine Engine, sales []Sale, live map[domain.SaleID]int64) {
	seen := map[domain.ActivityID]bool{}
	totals := map[domain.SaleID]Sale{}
	for _, sale := range sales {
		totals[sale.SaleID] = sale
	}
	for _, sale := range sales {
		if seen[sale.Activity] {
			continue
		}
		seen[sale.Activity] = true
		report, err := engine.Report(ctx, sale.Activity)
		if err != nil {
			v.add("report: %v", err)
			continue
		}
		for _, s := range report.Sales {
			if _, checked := totals[s.Sale]; !checked {
				continue
			}
			if !s.Balanced || s.Drift != 0 {
				v.add("sale %s is not balanced: drift %d, problem %q, hot store %+v, ledger %+v", s.Sale, s.Drift, s.Problem, s.Level, s.Ledger)
			}
			if s.Level.Total != totals[s.Sale].Total {
				v.add("sale %s has a total of %d, want %d", s.Sale, s.Level.Total, totals[s.Sale].Total)
			}
			if stranded := s.Level.Total - s.Level.Available - live[s.Sale]; stranded != 0 {
				v.Stranded += stranded
				v.add("sale %s: %d units are neither free nor in an order", s.Sale, stranded)
			}
		}
	}
}

// Err is the verdict as an error; nil: every promise was kept.
func (v Verdict) Err() error {
	if len(v.Problems) == 0 {
		return nil
	}
	errs := make([]error, len(v.Problems))
	for i, p := range v.Problems {
		errs[i] = errors.New(p)
	}
	return errors.Join(errs...)
}
