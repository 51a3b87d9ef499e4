package httpapi

import (
	"errors"
	"net/http"

	"github.com/gin-gonic/gin"

	"seckill/application"
	"seckill/domain"
)

// codeAccepted is the code of an accepted grab. Those of refusals are in
// verdictAnswers.
const codeAccepted = 1

// accepted answers a grab that holds units. Status is always "queued", also
// when the engine has waited for the ledger's commit: what became of the order
// is asked for at Location.
type accepted struct {
	Code    int            `json:"code"`
	OrderID domain.OrderID `json:"orderId"`
	Status  domain.Status  `json:"status"`
}

func (a *API) grab(c *gin.Context) error {
	request, err := a.grabRequest(c)
	if err != nil {
		return err
	}
	outcome, err := a.engine.Grab(c.Request.Context(), request)
	switch {
	case errors.Is(err, domain.ErrInvalid):
		return err
	case err != nil:
		// The engine has logged it. Whatever it was, the client hears that the
		// outcome is unknown, never that the sale is sold out.
		p := unavailable.problem(nil)
		p.OrderID = outcome.Order
		p.send(c)
	case outcome.Verdict == domain.Accepted:
		c.Header("Location", "/api/seckill/order/"+string(outcome.Order))
		if outcome.Replayed {
			c.Header("Idempotent-Replayed", "true")
		}
		send(c, http.StatusAccepted, accepted{codeAccepted, outcome.Order, domain.Queued})
	default:
		p := verdictAnswer(outcome.Verdict).problem(nil)
		if outcome.Verdict == domain.NotStarted {
			p.StartsAt = stamp{outcome.StartsAt}
		}
		p.send(c)
	}
	return nil
}

func (a *API) grabRequest(c *gin.Context) (application.GrabRequest, error) {
	data, err := requiredBody(c)
	if err != nil {
		return application.GrabRequest{}, err
	}
	body, err := decodeGrab(data)
	if err != nil {
		return application.GrabRequest{}, err
	}
	buyer, err := a.grabber(c, body.buyer)
	if err != nil {
		return application.GrabRequest{}, err
	}
	request, err := requestID(body.request, c.Request.Header.Values("Idempotency-Key"))
	if err != nil {
		return application.GrabRequest{}, err
	}
	return application.GrabRequest{Sale: body.sale, Buyer: buyer, Quantity: body.quantity, Request: request}, nil
}

// requestID is the one that the body or the header names. They may both name
// it, but only the same one.
func requestID(inBody domain.RequestID, headers []string) (domain.RequestID, error) {
	id := inBody
	for _, text := range headers {
		inHeader, err := domain.ParseRequestID(text)
		if err != nil {
			return "", err
		}
		if id != "" && id != inHeader {
			return "", domain.Invalid("requestId", "is given twice, with different values")
		}
		id = inHeader
	}
	return id, nil
}

// grabBody is the body of a grab. What was absent is zero, except that the
// quantity is 1.
type grabBody struct {
	sale     domain.SaleID
	buyer    domain.BuyerID
	quantity int64
	request  domain.RequestID
}

func decodeGrab(data []byte) (grabBody, error) {
	f, err := parseObject(data)
	if err != nil {
		return grabBody{}, err
	}
	body := grabBody{
		sale: domain.SaleID{
			Activity: domain.ActivityID(f.integer("activityId", 1, domain.MaxInteger)),
			SKU:      domain.SKUID(f.integer("skuId", 1, domain.MaxInteger)),
		},
		buyer:    f.buyer("userId"),
		quantity: f.integerOr("quantity", 1, domain.MaxQuantity, 1),
	}
	if f.has("requestId") {
		id, err := domain.ParseRequestID(f.text("requestId"))
		f.keep(err)
		body.request = id
	}
	return body, f.err
}
