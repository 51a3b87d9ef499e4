package httpapi

import (
	"net/http"

	"github.com/gin-gonic/gin"

	"seckill/domain"
)

// letterView is a dead letter. The order's members are empty when the queue
// entry could not be decoded.
type letterView struct {
	ID         int64             `json:"id"`
	OrderID    domain.OrderID    `json:"orderId"`
	ActivityID domain.ActivityID `json:"activityId"`
	SKUID      domain.SKUID      `json:"skuId"`
	UserID     domain.BuyerID    `json:"userId"`
	Quantity   int64             `json:"quantity"`
	Payload    string            `json:"payload"`
	Reason     string            `json:"reason"`
	CreatedAt  stamp             `json:"createdAt"`
}

func viewLetter(l domain.DeadLetter) letterView {
	return letterView{
		ID: l.ID, OrderID: l.Intent.Order, ActivityID: l.Intent.Sale.Activity, SKUID: l.Intent.Sale.SKU,
		UserID: l.Intent.Buyer, Quantity: l.Intent.Quantity, Payload: l.Payload, Reason: l.Reason,
		CreatedAt: stamp{l.CreatedAt},
	}
}

func (a *API) deadLetters(c *gin.Context) error {
	after, limit, err := page(c)
	if err != nil {
		return err
	}
	letters, err := a.engine.ListDeadLetters(c.Request.Context(), after, limit)
	if err != nil {
		return err
	}
	views := make([]letterView, 0, len(letters))
	for _, letter := range letters {
		views = append(views, viewLetter(letter))
	}
	send(c, gin.H{"deadLetters": views})
	return nil
}

func (a *API) replay(c *gin.Context) error {
	id, err := letterID(c)
	if err != nil {
		return err
	}
	order, err := a.engine.Replay(c.Request.Context(), id)
	return sendOrder(c, order, err)
}

func (a *API) discard(c *gin.Context) error {
	id, err := letterID(c)
	if err != nil {
		return err
	}
	if err := a.engine.Discard(c.Request.Context(), id); err != nil {
		return err
	}
	c.Status(http.StatusNoContent)
	return nil
}

// letterID reads the path of a route that takes no fields.
func letterID(c *gin.Context) (int64, error) {
	id, err := domain.ParseInteger("id", c.Param("id"))
	if err == nil {
		err = noBody(c)
	}
	return id, err
}
