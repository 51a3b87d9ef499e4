package history

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"

	"seckill/domain"
)

// Linear says how strictly a history of one sale is to be linearizable.
type Linear struct {
	Sale
	// Harmed is when the hot store could not always be reached. The units of an order
	// that was cancelled then may come back after its client was answered.
	Harmed []Span
	// Orders are all that the ledger has in the end, if the hot store lost none. Then
	// they tell which grabs of unknown outcome had an effect, and the search is short.
	Orders []domain.Order
	// LooseRefusals: a grab may be refused although at no moment of it the sale was
	// as the refusal says. Then refusals are not looked at.
	LooseRefusals bool
}

// Span is a time of the history.
type Span struct{ From, Until time.Duration }

// Bounds of what can be checked.
const (
	linearBuyers   = 8
	linearRequests = 64
	linearPatience = 30 * time.Second
)

// errLinear is what every verdict against a history is.
var errLinear = errors.New("history is not linearizable")

// Linearizable checks that the calls of the sale can be put in one order, each at a
// moment between its beginning and its end, in which a sale that knows no
// concurrency gives the same answers. A grab whose outcome is unknown may have had
// its effect at any time since, or never.
//
// Every grab must have a request id: without, the node may answer from what it
// has seen within the last second. A history that is too hard to judge is an error.
func (h *History) Linearizable(rule Linear) error {
	l := linearizer{rule: rule, buyers: map[domain.BuyerID]int{}, requests: map[asked]int{}, orders: map[domain.OrderID]int{}}
	for _, c := range oneCancel(h.Calls()) {
		if err := l.add(c); err != nil {
			return err
		}
	}
	model := porcupine.Model{Init: l.init, Step: step, DescribeOperation: describe, DescribeState: func(s any) string { return fmt.Sprint(s) }}
	switch porcupine.CheckOperationsTimeout(model, l.operations, linearPatience) {
	case porcupine.Ok:
		return nil
	case porcupine.Unknown:
		return fmt.Errorf("%w, as far as %s could tell: %d calls", errLinear, linearPatience, len(l.operations))
	}
	return fmt.Errorf("%w:\n%s", errLinear, l.list())
}

// oneCancel makes one call of all that cancelled the same order. The units come
// back with the one that won. That is not told, but it had begun before any had
// returned; the others may return while it still gives the units back.
func oneCancel(calls []Call) []Call {
	var rest []Call
	first := map[domain.OrderID]int{} // where in rest
	ended := map[domain.OrderID]time.Duration{}
	for _, c := range calls { // by the time of return
		if c.Kind != Cancel || c.Result == Refused {
			rest = append(rest, c)
			continue
		}
		at, seen := first[c.Order]
		switch {
		case !seen:
			first[c.Order] = len(rest)
			rest = append(rest, c)
			if c.Result == OK {
				ended[c.Order] = c.Returned
			}
		case ended[c.Order] == 0 || c.Invoked <= ended[c.Order]:
			all := &rest[at]
			all.Invoked, all.Returned = min(all.Invoked, c.Invoked), c.Returned
			if c.Result == Unknown {
				all.Result = Unknown
			} else if ended[c.Order] == 0 {
				ended[c.Order] = c.Returned
			}
		}
	}
	return rest
}

// linearizer numbers what a history names, so that a state is small and comparable.
type linearizer struct {
	rule       Linear
	buyers     map[domain.BuyerID]int
	requests   map[asked]int
	orders     map[domain.OrderID]int
	operations []porcupine.Operation
}

// linearSale is the sequential sale.
type linearSale struct {
	free  int64
	limit int64
	units [linearBuyers]int64
	held  [linearRequests]linearHold // by request
}

// linearHold is what a request got. The zero value: nothing yet.
type linearHold struct {
	order    int // number from 1
	quantity int64
	released bool
}

// linearCall is the input of an operation, for the sale of the history.
type linearCall struct {
	kind     Kind
	buyer    int
	request  int
	quantity int64
	order    int // that a grab got, or would get; that is cancelled
}

func (l *linearizer) init() any { return linearSale{free: l.rule.Total, limit: l.rule.Limit} }

func number[K comparable](numbers map[K]int, key K) int {
	n, ok := numbers[key]
	if !ok {
		n = len(numbers)
		numbers[key] = n
	}
	return n
}

// add takes a call into the history, if it says anything.
func (l *linearizer) add(c Call) error {
	if c.Sale != l.rule.SaleID || c.Kind != Grab && c.Kind != Cancel {
		return nil
	}
	if c.Kind == Grab && c.Request == "" {
		return fmt.Errorf("a grab of %s has no request id: it cannot be judged", c.Buyer)
	}
	refused := c.Result == Refused
	if refused && (c.Kind == Cancel || l.rule.LooseRefusals || c.Err != nil || c.Verdict == domain.NotReady) {
		return nil // without effect, and nothing is promised of when
	}
	call := linearCall{kind: c.Kind, buyer: number(l.buyers, c.Buyer), quantity: c.Quantity}
	if c.Order != "" {
		call.order = 1 + number(l.orders, c.Order)
	}
	if c.Kind == Grab {
		call.request = number(l.requests, asked{c.Sale, c.Buyer, c.Request})
	}
	if len(l.buyers) > linearBuyers || len(l.requests) > linearRequests {
		return fmt.Errorf("a history with more than %d buyers or %d requests cannot be judged", linearBuyers, linearRequests)
	}
	ends := c.Returned
	if c.Result == Unknown || c.Kind == Cancel && l.harmed(c) {
		ends = math.MaxInt64
	}
	if c.Kind == Grab && c.Result == Unknown && l.rule.Orders != nil {
		if !slices.ContainsFunc(l.rule.Orders, func(o domain.Order) bool { return o.ID == c.Order }) {
			return nil
		}
		c.Result, c.Verdict = OK, domain.Accepted
	}
	l.operations = append(l.operations, porcupine.Operation{Input: call, Call: int64(c.Invoked), Output: c, Return: int64(ends)})
	return nil
}

// harmed says whether the hot store may have been out of reach during a call.
func (l *linearizer) harmed(c Call) bool {
	return slices.ContainsFunc(l.rule.Harmed, func(s Span) bool { return c.Invoked <= s.Until && s.From <= c.Returned })
}

// step is the sale: it says whether the answer is right in a state, and what the
// state is afterwards. What may have had no effect is right in any state: it had
// none if it comes after everything that could have seen one.
func step(state, input, output any) (bool, any) {
	sale, call, said := state.(linearSale), input.(linearCall), output.(Call)
	if call.kind == Cancel {
		return true, sale.cancel(call)
	}
	next, verdict, order := sale.grab(call)
	switch {
	case said.Result == Unknown:
		return true, next
	case verdict != said.Verdict:
		return false, sale
	case verdict == domain.Accepted && order != call.order:
		return false, sale
	}
	return true, next
}

// grab decides as the domain says: replay, limit, stock.
func (s linearSale) grab(call linearCall) (next linearSale, verdict domain.Verdict, order int) {
	first := s.held[call.request]
	switch {
	case first.order != 0 && first.quantity != call.quantity:
		return s, domain.RequestReused, 0
	case first.order != 0:
		return s, domain.Accepted, first.order
	case s.units[call.buyer]+call.quantity > s.limit:
		return s, domain.LimitReached, 0
	case s.free < call.quantity:
		return s, domain.SoldOut, 0
	}
	s.free -= call.quantity
	s.units[call.buyer] += call.quantity
	s.held[call.request] = linearHold{order: call.order, quantity: call.quantity}
	return s, domain.Accepted, call.order
}

// cancel gives the units of an order back, once.
func (s linearSale) cancel(call linearCall) linearSale {
	for i, hold := range s.held {
		if hold.order == call.order && !hold.released {
			s.held[i].released = true
			s.free += hold.quantity
			s.units[call.buyer] -= hold.quantity
		}
	}
	return s
}

func describe(_, output any) string {
	c := output.(Call)
	text := fmt.Sprintf("%s %s %s", c.Kind, c.Buyer, c.Result)
	if c.Kind == Grab {
		text = fmt.Sprintf("%s %s %d×%s: %s %s", c.Kind, c.Buyer, c.Quantity, c.Request, c.Result, c.Verdict)
	}
	return text + " " + string(c.Order)
}

// list is the history for whoever has to find out what is wrong.
func (l *linearizer) list() string {
	var text strings.Builder
	for _, o := range l.operations {
		c := o.Output.(Call)
		fmt.Fprintf(&text, "%12s … %-12s %s\n", c.Invoked, c.Returned, describe(o.Input, c))
	}
	return text.String()
}
