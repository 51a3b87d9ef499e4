package httpapi

import (
	"context"
	"time"

	"github.com/gin-gonic/gin"

	"seckill/application"
	"seckill/domain"
)

// orderView is an order as its buyer sees it. Every member is always there;
// what is unset is null.
type orderView struct {
	OrderID    domain.OrderID    `json:"orderId"`
	ActivityID domain.ActivityID `json:"activityId"`
	SKUID      domain.SKUID      `json:"skuId"`
	UserID     domain.BuyerID    `json:"userId"`
	Quantity   int64             `json:"quantity"`
	Status     domain.Status     `json:"status"`
	CreatedAt  stamp             `json:"createdAt"`
	ExpiresAt  stamp             `json:"expiresAt"`
	PaidAt     stamp             `json:"paidAt"`
	ClosedAt   stamp             `json:"closedAt"`
	Reason     *string           `json:"reason"`
}

func viewOrder(o domain.Order) orderView {
	view := orderView{
		OrderID: o.ID, ActivityID: o.Sale.Activity, SKUID: o.Sale.SKU, UserID: o.Buyer,
		Quantity: o.Quantity, Status: o.Status, CreatedAt: stamp{o.CreatedAt},
		ExpiresAt: stamp{o.ExpiresAt}, PaidAt: stamp{o.PaidAt}, ClosedAt: stamp{o.ClosedAt},
	}
	if o.Reason != "" {
		view.Reason = &o.Reason
	}
	return view
}

// stamp is a time in RFC 3339, UTC, with milliseconds; null when unset.
type stamp struct{ time.Time }

// MarshalJSON never fails.
func (s stamp) MarshalJSON() ([]byte, error) {
	if s.IsZero() {
		return []byte("null"), nil
	}
	return []byte(s.UTC().Format(`"2006-01-02T15:04:05.000Z"`)), nil
}

func (a *API) order(c *gin.Context) error {
	id, buyer, err := a.orderOf(c)
	if err != nil {
		return err
	}
	wait, err := waitOf(c)
	if err != nil {
		return err
	}
	waiting, cancel := context.WithCancel(c.Request.Context())
	defer cancel()
	defer context.AfterFunc(a.draining, cancel)()
	order, err := a.engine.AwaitOrder(waiting, id, buyer, wait)
	if err != nil && a.draining.Err() != nil {
		order, err = a.engine.Order(c.Request.Context(), id, buyer)
	}
	return sendOrder(c, order, err)
}

func (a *API) pay(c *gin.Context) error {
	id, buyer, err := a.orderOf(c)
	if err != nil {
		return err
	}
	payment, err := paymentOf(c)
	if err != nil {
		return err
	}
	order, err := a.engine.Pay(c.Request.Context(), id, buyer, payment)
	return sendOrder(c, order, err)
}

func (a *API) cancel(c *gin.Context) error {
	id, buyer, err := a.orderOf(c)
	if err != nil {
		return err
	}
	if _, err := optionalObject(c); err != nil {
		return err
	}
	order, err := a.engine.Cancel(c.Request.Context(), id, buyer)
	return sendOrder(c, order, err)
}

// orderOf reads who asks about which order. A path that is no order id names
// no order: it is not found, like any other that does not exist.
func (a *API) orderOf(c *gin.Context) (domain.OrderID, domain.BuyerID, error) {
	buyer, err := a.buyer(c)
	if err != nil {
		return "", "", err
	}
	id, err := domain.ParseOrderID(c.Param("orderId"))
	if err != nil {
		return "", "", domain.ErrNotFound
	}
	return id, buyer, nil
}

// waitOf reads how long the caller is ready to wait. Absent is not at all.
func waitOf(c *gin.Context) (time.Duration, error) {
	text, ok := c.GetQuery("wait")
	if !ok {
		return 0, nil
	}
	wait, err := time.ParseDuration(text)
	if err != nil || wait < 0 || wait > application.MaxWait {
		return 0, domain.Invalid("wait", "must be a duration from 0s to %s", application.MaxWait)
	}
	return wait, nil
}

func paymentOf(c *gin.Context) (domain.PaymentID, error) {
	f, err := object(c)
	if err != nil {
		return "", err
	}
	payment, err := domain.ParsePaymentID(f.text("paymentId"))
	f.keep(err)
	return payment, f.err
}

func sendOrder(c *gin.Context, order domain.Order, err error) error {
	if err != nil {
		return err
	}
	send(c, viewOrder(order))
	return nil
}
