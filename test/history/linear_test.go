package history

import (
	"errors"
	"testing"
	"time"

	"seckill/domain"
)

var linearID = domain.SaleID{Activity: 1, SKU: 1}

func grabbed(buyer, request string, quantity int64, verdict domain.Verdict, order string, from, until int) Call {
	c := Call{
		Kind: Grab, Result: Refused, Sale: linearID, Buyer: domain.BuyerID(buyer), Request: domain.RequestID(request), Quantity: quantity,
		Verdict: verdict, Order: domain.OrderID(order), Invoked: time.Duration(from), Returned: time.Duration(until),
	}
	switch verdict {
	case domain.Accepted:
		c.Result = OK
	case 0:
		c.Result = Unknown
	}
	return c
}

func cancelled(buyer, order string, from, until int) Call {
	return Call{
		Kind: Cancel, Result: OK, Sale: linearID, Buyer: domain.BuyerID(buyer), Order: domain.OrderID(order),
		Invoked: time.Duration(from), Returned: time.Duration(until),
	}
}

// The check tells histories that a sale of 2 units, at most 2 for a buyer, can
// have from those that it cannot.
// covers N1 S5 T6
func TestLinearizable(t *testing.T) {
	const yes, soldOut, limit, unknown = domain.Accepted, domain.SoldOut, domain.LimitReached, domain.Verdict(0)
	for name, c := range map[string]struct {
		calls []Call
		total int64
		late  bool
		found []domain.OrderID // in the ledger
		loose bool
		wrong bool
	}{
		"one after the other": {calls: []Call{grabbed("a", "1", 2, yes, "x", 0, 1), grabbed("b", "1", 1, soldOut, "", 2, 3)}},
		"at the same time":    {calls: []Call{grabbed("a", "1", 2, yes, "x", 0, 5), grabbed("b", "1", 1, soldOut, "", 0, 1)}},
		"sold out too early":  {calls: []Call{grabbed("b", "1", 1, soldOut, "", 0, 1), grabbed("a", "1", 2, yes, "x", 2, 3)}, wrong: true},
		"oversold":            {calls: []Call{grabbed("a", "1", 2, yes, "x", 0, 1), grabbed("b", "1", 1, yes, "y", 2, 3)}, wrong: true},
		"over the limit":      {calls: []Call{grabbed("a", "1", 2, yes, "x", 0, 1), grabbed("a", "2", 1, limit, "", 2, 3)}},
		"limit not kept":      {calls: []Call{grabbed("a", "1", 2, yes, "x", 0, 1), grabbed("a", "2", 1, yes, "y", 2, 3)}, total: 3, wrong: true},
		"a repeat":            {calls: []Call{grabbed("a", "1", 2, yes, "x", 0, 1), grabbed("a", "1", 2, yes, "x", 2, 3)}},
		"two for one request": {calls: []Call{grabbed("a", "1", 1, yes, "x", 0, 1), grabbed("a", "1", 1, yes, "y", 2, 3)}, wrong: true},
		"units come back":     {calls: []Call{grabbed("a", "1", 2, yes, "x", 0, 1), cancelled("a", "x", 2, 3), grabbed("b", "1", 2, yes, "y", 4, 5)}},
		"they come back once": {
			calls: []Call{
				grabbed("a", "1", 2, yes, "x", 0, 1), cancelled("a", "x", 2, 3), cancelled("a", "x", 2, 3),
				grabbed("b", "1", 2, yes, "y", 4, 5), grabbed("c", "1", 1, yes, "z", 6, 7),
			}, wrong: true,
		},
		"another call gives them back": {calls: []Call{
			grabbed("a", "1", 2, yes, "x", 0, 1), cancelled("a", "x", 2, 3), grabbed("b", "1", 1, soldOut, "", 4, 5), cancelled("a", "x", 2, 6),
		}},
		"a later call does not": {calls: []Call{
			grabbed("a", "1", 2, yes, "x", 0, 1), cancelled("a", "x", 2, 3), grabbed("b", "1", 1, soldOut, "", 4, 5), cancelled("a", "x", 4, 6),
		}, wrong: true},
		"they do not come back": {calls: []Call{grabbed("a", "1", 2, yes, "x", 0, 1), cancelled("a", "x", 2, 3), grabbed("b", "1", 1, soldOut, "", 4, 5)}, wrong: true},
		"they come back late":   {calls: []Call{grabbed("a", "1", 2, yes, "x", 0, 1), cancelled("a", "x", 2, 3), grabbed("b", "1", 1, soldOut, "", 4, 5)}, late: true},
		"unknown and done":      {calls: []Call{grabbed("a", "1", 2, unknown, "x", 0, 1), grabbed("b", "1", 1, soldOut, "", 2, 3), grabbed("a", "1", 2, yes, "x", 4, 5)}},
		"unknown and not done":  {calls: []Call{grabbed("a", "1", 2, unknown, "x", 0, 1), grabbed("b", "1", 2, yes, "y", 2, 3)}},
		"unknown and half done": {calls: []Call{grabbed("a", "1", 2, unknown, "x", 0, 1), grabbed("b", "1", 1, soldOut, "", 2, 3), grabbed("b", "2", 1, yes, "y", 4, 5)}, wrong: true},
		"before it was asked":   {calls: []Call{grabbed("b", "1", 1, soldOut, "", 0, 1), grabbed("a", "1", 2, unknown, "x", 2, 3)}, wrong: true},
		"unknown and in the ledger": {
			calls: []Call{grabbed("a", "1", 2, unknown, "x", 0, 1), grabbed("b", "1", 1, soldOut, "", 2, 3)}, found: []domain.OrderID{"x"},
		},
		"unknown and not in the ledger": {
			calls: []Call{grabbed("a", "1", 2, unknown, "x", 0, 1), grabbed("b", "1", 1, soldOut, "", 2, 3)}, found: []domain.OrderID{"z"}, wrong: true,
		},
		"a loose refusal": {calls: []Call{grabbed("b", "1", 1, soldOut, "", 0, 1)}, loose: true},
	} {
		h := New()
		h.calls = c.calls
		rule := Linear{Sale: Sale{SaleID: linearID, Total: max(c.total, 2), Limit: 2}, LooseRefusals: c.loose}
		if c.late {
			rule.Harmed = []Span{{From: 3, Until: 9}}
		}
		for _, id := range c.found {
			rule.Orders = append(rule.Orders, domain.Order{ID: id})
		}
		err := h.Linearizable(rule)
		if errors.Is(err, errLinear) != c.wrong || err != nil && !c.wrong {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A history that cannot be judged is not taken for a good one.
func TestLinearizableNeedsRequestIDs(t *testing.T) {
	h := New()
	h.calls = []Call{grabbed("a", "", 1, domain.Accepted, "x", 0, 1)}
	if err := h.Linearizable(Linear{Sale: Sale{SaleID: linearID, Total: 2, Limit: 2}}); err == nil {
		t.Error("it was judged")
	}
}
