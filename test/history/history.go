// Package history records what the clients of an engine asked and were told, and
// checks afterwards that the stores kept every promise in it. It is for tests
// that inject faults: an outcome may stay unknown, and then the engine may have
// done it or not, but nothing in between.
package history

import (
	"context"
	"errors"
	"sync"
	"time"

	"seckill/application"
	"seckill/domain"
)

// Kind is what a client asked for.
type Kind string

// The kinds of calls.
const (
	Grab   Kind = "grab"
	Pay    Kind = "pay"
	Cancel Kind = "cancel"
	Poll   Kind = "poll"
)

// Result is what the client knows afterwards.
type Result string

// The results.
const (
	OK      Result = "ok"
	Refused Result = "refused" // for sure: it has no effect
	Unknown Result = "unknown" // it may have had its effect, or have it yet
)

// Call is one call of one client.
type Call struct {
	Kind     Kind
	Result   Result
	Sale     domain.SaleID
	Buyer    domain.BuyerID
	Request  domain.RequestID
	Quantity int64
	Order    domain.OrderID   // asked about, or told
	Payment  domain.PaymentID // of a Pay
	Verdict  domain.Verdict   // of a Grab that is not Unknown
	Status   domain.Status    // that the client was shown
	Err      error            `json:"-"`
	Invoked  time.Duration    // since the history began
	Returned time.Duration
}

// History is a list of calls. Its clients may be many goroutines.
type History struct {
	start time.Time
	mu    sync.Mutex
	calls []Call
	// answered has the grabs whose client knows the outcome.
	answered map[asked]bool
}

// New begins a history.
func New() *History { return &History{start: time.Now(), answered: map[asked]bool{}} }

// Now is the time of the history.
func (h *History) Now() time.Duration { return time.Since(h.start) }

// Calls returns what was recorded so far, by the time of return.
func (h *History) Calls() []Call {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]Call(nil), h.calls...)
}

// Count is how many calls have the kind and result.
func (h *History) Count(kind Kind, result Result) int {
	n := 0
	for _, c := range h.Calls() {
		if c.Kind == kind && c.Result == result {
			n++
		}
	}
	return n
}

func (h *History) record(c Call, invoked time.Time) {
	c.Invoked, c.Returned = invoked.Sub(h.start), time.Since(h.start)
	h.Add(c)
}

// Add records a call that was made elsewhere.
func (h *History) Add(c Call) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.calls = append(h.calls, c)
	if c.Kind == Grab && c.Result != Unknown && c.Verdict != domain.NotReady {
		h.answered[asked{c.Sale, c.Buyer, c.Request}] = true
	}
}

// Grabber is the use case of a grab.
type Grabber interface {
	Grab(ctx context.Context, req application.GrabRequest) (domain.Outcome, error)
}

// Grab grabs and records it.
func (h *History) Grab(ctx context.Context, engine Grabber, req application.GrabRequest) (domain.Outcome, error) {
	invoked := time.Now()
	outcome, err := engine.Grab(ctx, req)
	c := Call{
		Kind: Grab, Result: Refused, Sale: req.Sale, Buyer: req.Buyer, Request: req.Request,
		Quantity: max(req.Quantity, 1), Order: outcome.Order, Verdict: outcome.Verdict, Err: err,
	}
	switch {
	case errors.Is(err, domain.ErrInvalid):
	case err != nil:
		c.Result, c.Verdict = Unknown, 0
	case outcome.Verdict == domain.Accepted:
		c.Result = OK
	}
	h.record(c, invoked)
	return outcome, err
}

// Keeper is the use cases of a buyer's order.
type Keeper interface {
	Pay(ctx context.Context, id domain.OrderID, buyer domain.BuyerID, payment domain.PaymentID) (domain.Order, error)
	Cancel(ctx context.Context, id domain.OrderID, buyer domain.BuyerID) (domain.Order, error)
	Order(ctx context.Context, id domain.OrderID, buyer domain.BuyerID) (domain.Order, error)
}

// Pay pays and records it.
func (h *History) Pay(ctx context.Context, engine Keeper, id domain.OrderID, buyer domain.BuyerID, payment domain.PaymentID) (domain.Order, error) {
	invoked := time.Now()
	order, err := engine.Pay(ctx, id, buyer, payment)
	h.record(kept(Pay, id, buyer, payment, order, err), invoked)
	return order, err
}

// Cancel cancels and records it.
func (h *History) Cancel(ctx context.Context, engine Keeper, id domain.OrderID, buyer domain.BuyerID) (domain.Order, error) {
	invoked := time.Now()
	order, err := engine.Cancel(ctx, id, buyer)
	h.record(kept(Cancel, id, buyer, "", order, err), invoked)
	return order, err
}

// Poll looks at an order and records what it was shown.
func (h *History) Poll(ctx context.Context, engine Keeper, id domain.OrderID, buyer domain.BuyerID) (domain.Order, error) {
	invoked := time.Now()
	order, err := engine.Order(ctx, id, buyer)
	h.record(kept(Poll, id, buyer, "", order, err), invoked)
	return order, err
}

func kept(kind Kind, id domain.OrderID, buyer domain.BuyerID, payment domain.PaymentID, order domain.Order, err error) Call {
	c := Call{Kind: kind, Result: OK, Sale: id.Sale(), Buyer: buyer, Order: id, Payment: payment, Status: order.Status, Err: err}
	var closed *domain.ClosedError
	switch {
	case errors.As(err, &closed):
		c.Result, c.Status = Refused, closed.Order.Status
	case errors.Is(err, domain.ErrNotFound), errors.Is(err, domain.ErrOrderQueued), errors.Is(err, domain.ErrInvalid):
		c.Result = Refused
	case err != nil:
		c.Result = Unknown
	}
	return c
}

// Answered says whether a client knows the outcome of its request.
func (h *History) Answered(sale domain.SaleID, buyer domain.BuyerID, request domain.RequestID) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.answered[asked{sale, buyer, request}]
}
