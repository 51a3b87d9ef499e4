package httpapi

import (
	"errors"
	"io"

	"github.com/gin-gonic/gin"

	"seckill/application"
	"seckill/domain"
)

// grabSpan is by how much a grab's bound may come early.
const grabSpan = buyerTime / 40

// grab answers a grab. Its route has none of the other routes' middleware but
// the recovery: it bounds body and time itself, for less.
//
// An accepted one is {"code":1,"orderId","status"}. Status is always "queued",
// also when the engine has waited for the ledger's commit: what became of the
// order is asked for at Location.
func (a *API) grab(c *gin.Context) error {
	request, err := a.grabRequest(c)
	if err != nil {
		return err
	}
	outcome, err := a.engine.Grab(a.grabTime.of(c.Request.Context()), request)
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
		sendAccepted(c, outcome)
	default:
		refuse(c, outcome)
	}
	return nil
}

func refuse(c *gin.Context, outcome domain.Outcome) {
	if ready, ok := readyAnswers[outcome.Verdict]; ok {
		ready.send(c)
		return
	}
	p := verdictAnswer(outcome.Verdict).problem(nil)
	if outcome.Verdict == domain.NotStarted {
		p.StartsAt = stamp{outcome.StartsAt}
	}
	p.send(c)
}

func (a *API) grabRequest(c *gin.Context) (application.GrabRequest, error) {
	body, err := a.grabBody(c)
	if err != nil {
		return application.GrabRequest{}, err
	}
	buyer, err := a.grabber(c, body.buyer)
	if err != nil {
		return application.GrabRequest{}, err
	}
	request, err := requestID(body.request, c.Request.Header["Idempotency-Key"])
	if err != nil {
		return application.GrabRequest{}, err
	}
	return application.GrabRequest{Sale: body.sale, Buyer: buyer, Quantity: body.quantity, Request: request}, nil
}

// grabBody reads the body. One of the usual size is read into a scratch that is
// at hand, and by the fast way; everything else, and whatever is wrong with it,
// is for the slow way.
func (a *API) grabBody(c *gin.Context) (grabBody, error) {
	size := c.Request.ContentLength
	if size < 1 || size > min(int64(len(scratch{})), a.cfg.MaxBody) || !sendsJSON(c) {
		limitBody(a.cfg.MaxBody)(c)
		data, err := requiredBody(c)
		if err != nil {
			return grabBody{}, err
		}
		return decodeGrab(data)
	}
	scratch := scratches.Get().(*scratch)
	defer scratches.Put(scratch)
	if _, err := io.ReadFull(c.Request.Body, scratch[:size]); err != nil {
		return grabBody{}, errUnreadable
	}
	if body, ok := scanGrab(string(scratch[:size])); ok {
		return body, nil
	}
	return decodeGrab(scratch[:size])
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
