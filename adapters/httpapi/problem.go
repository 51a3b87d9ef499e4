package httpapi

import (
	"errors"
	"net/http"
	"strconv"

	"github.com/gin-gonic/gin"

	"seckill/domain"
)

// What this package itself refuses.
var (
	errUnauthenticated = errors.New("no buyer is named")
	errToken           = errors.New("operator token is missing or wrong")
	errNoRoute         = errors.New("no such route")
	errMethod          = errors.New("method is not allowed here")
	errMediaType       = errors.New("body is not application/json")
	errTooLarge        = errors.New("body is too large")
	errInternal        = errors.New("internal error")
)

// problem is an RFC 9457 problem document with this contract's own members.
type problem struct {
	Type     string         `json:"type"`
	Title    string         `json:"title"`
	Status   int            `json:"status"`
	Detail   string         `json:"detail"`
	Reason   string         `json:"reason"`
	Code     *int           `json:"code,omitempty"`
	Field    string         `json:"field,omitempty"`   // of reason invalid
	StartsAt stamp          `json:"startsAt,omitzero"` // of reason not_started
	OrderID  domain.OrderID `json:"orderId,omitempty"` // of a grab whose outcome is unknown
	Order    *orderView     `json:"order,omitempty"`   // of reason order_closed
	// Key is that of a stock edit whose outcome is unknown.
	Key   domain.RequestID `json:"key,omitempty"`
	retry bool
}

// answer is how one kind of refusal is told.
type answer struct {
	status int
	reason string
	title  string
	detail string // empty: the error's own words, which then hold nothing secret
	code   *int
	retry  bool // with Retry-After
}

// retryAfter is when to ask again: soon, since what answers so is either a
// matter of milliseconds or of an operator. Seconds.
const retryAfter = 1

// errorAnswers is the one map from errors to statuses. The first match counts,
// so what says more about a joined error comes first.
var errorAnswers = []struct {
	err error
	answer
}{
	{domain.ErrInvalid, answer{status: 400, reason: "invalid", title: "Invalid request"}},
	{domain.ErrNotFound, answer{status: 404, reason: "not_found", title: "Not found", detail: "There is nothing here under this id."}},
	{domain.ErrOrderClosed, answer{status: 409, reason: "order_closed", title: "Order is closed", detail: "The order already has another outcome."}},
	{domain.ErrOrderQueued, answer{status: 409, reason: "order_queued", title: "Order is still queued", detail: "The order is accepted but not placed yet. Try again in a moment.", retry: true}},
	{domain.ErrHasHolds, answer{status: 409, reason: "has_holds", title: "Sale has holds"}},
	{domain.ErrUnbalanced, answer{status: 409, reason: "unbalanced", title: "Numbers do not add up"}},
	{domain.ErrState, answer{status: 409, reason: "wrong_state", title: "Not possible in this state"}},
	{domain.ErrConflict, answer{status: 409, reason: "conflict", title: "Changed in the meantime"}},
	{domain.ErrNotReady, answer{status: 503, reason: "not_ready", title: "Sale is not ready", detail: "The sale is being loaded or waits for its preheat.", retry: true}},
	{domain.ErrBusy, answer{status: 503, reason: "busy", title: "Busy", detail: "The same work is being done right now. Try again in a moment.", retry: true}},
	{domain.ErrLeaseLost, unavailable},
	{domain.ErrLockNotHeld, unavailable},
	{domain.ErrFenced, unavailable},
	{domain.ErrCorrupt, unavailable},
	{domain.ErrUnavailable, unavailable},

	{errUnauthenticated, answer{status: 401, reason: "unauthenticated", title: "Unauthenticated", detail: "Name the buyer in the header X-User-Id."}},
	{errToken, answer{status: 401, reason: "unauthenticated", title: "Unauthenticated", detail: "Send the operator token as Authorization: Bearer."}},
	{errNoRoute, answer{status: 404, reason: "not_found", title: "Not found", detail: "There is no such route."}},
	{errMethod, answer{status: 405, reason: "invalid", title: "Method not allowed", detail: "The header Allow lists the methods of this route."}},
	{errTooLarge, answer{status: 413, reason: "invalid", title: "Body too large"}},
	{errMediaType, answer{status: 415, reason: "invalid", title: "Not JSON", detail: "Send the body with Content-Type: application/json, in UTF-8 and not encoded."}},
	{errInternal, answer{status: 500, reason: "internal", title: "Internal error", detail: "This is a fault of the server."}},
}

// unavailable is also the answer to every error that has none of its own: the
// ports' contract says that such an error means just this.
var unavailable = answer{status: 503, reason: "unavailable", title: "Temporarily unavailable",
	detail: "A store did not answer, so the outcome is unknown. Asking again with the same request id is safe.", retry: true}

// verdictAnswers tells the refusals of a grab. Accepted is not one.
var verdictAnswers = map[domain.Verdict]answer{
	domain.SoldOut:       {status: 409, reason: "sold_out", code: code(0), title: "Sold out", detail: "There are fewer units left than you asked for."},
	domain.NotReady:      {status: 503, reason: "not_ready", code: code(-1), title: "Sale is not ready", detail: "The sale is not loaded yet. Try again in a moment.", retry: true},
	domain.UnknownSale:   {status: 404, reason: "unknown_sale", code: code(-1), title: "Unknown sale", detail: "There is no such activity or SKU."},
	domain.LimitReached:  {status: 409, reason: "limit_reached", code: code(-2), title: "Limit reached", detail: "You already hold or bought as many as one buyer may."},
	domain.NotStarted:    {status: 409, reason: "not_started", code: code(-3), title: "Not started", detail: "The sale has not started yet."},
	domain.SalePaused:    {status: 409, reason: "paused", code: code(-3), title: "Paused", detail: "The sale is paused."},
	domain.SaleEnded:     {status: 409, reason: "ended", code: code(-3), title: "Ended", detail: "The sale has ended."},
	domain.RequestReused: {status: 422, reason: "request_id_reused", title: "Request id reused", detail: "This request id was used for another grab."},
	domain.Withdrawn:     unavailable,
}

func code(n int) *int { return &n }

// verdictAnswer is the answer to a verdict. One that nobody thought of is no
// reason to say that the sale is sold out.
func verdictAnswer(v domain.Verdict) answer {
	if a, ok := verdictAnswers[v]; ok {
		return a
	}
	return unavailable
}

func answerTo(err error) answer {
	for _, entry := range errorAnswers {
		if errors.Is(err, entry.err) {
			return entry.answer
		}
	}
	return unavailable
}

func (a answer) problem(err error) problem {
	p := problem{
		Type: "urn:seckill:" + a.reason, Title: a.title, Status: a.status,
		Detail: a.detail, Reason: a.reason, Code: a.code, retry: a.retry,
	}
	var field *domain.FieldError
	var closed *domain.ClosedError
	var withdrawal *domain.WithdrawalError
	switch {
	case errors.As(err, &field):
		p.Field, p.Detail = field.Field, field.Error()
	case errors.As(err, &withdrawal):
		p.Field, p.Detail = "delta", withdrawal.Error()
	case errors.As(err, &closed):
		order := viewOrder(closed.Order)
		p.Order = &order
	case p.Detail == "" && err != nil:
		p.Detail = err.Error()
	}
	return p
}

func (p problem) send(c *gin.Context) {
	if p.retry {
		c.Header("Retry-After", strconv.Itoa(retryAfter))
	}
	sendAs(c, p.Status, "application/problem+json", p)
	c.Abort()
}

// fail answers an error. A store's failure is logged here, since nobody above
// hears of it.
func (a *API) fail(c *gin.Context, err error) { a.failure(c, err).send(c) }

// failure is the answer to an error, to be sent by the caller.
func (a *API) failure(c *gin.Context, err error) problem {
	p := answerTo(err).problem(err)
	if p.Status >= http.StatusInternalServerError && c.Request.Context().Err() == nil {
		a.log.Error("request failed", "method", c.Request.Method, "path", c.Request.URL.Path, "status", p.Status, "error", err)
	}
	return p
}
