package httpapi

import (
	"github.com/gin-gonic/gin"

	"seckill/application"
	"seckill/domain"
)

// maxPage bounds, and is by default, how much one list answers.
const maxPage = 100

// buyerActivity is an activity as buyers see it. How many units there are is
// not theirs to know.
type buyerActivity struct {
	ActivityID domain.ActivityID `json:"activityId"`
	Name       string            `json:"name"`
	State      domain.State      `json:"state"`
	StartsAt   stamp             `json:"startsAt"`
	EndsAt     stamp             `json:"endsAt"`
	ServerTime stamp             `json:"serverTime"`
	SKUs       []buyerSKU        `json:"skus"`
}

type buyerSKU struct {
	SKUID        domain.SKUID `json:"skuId"`
	Name         string       `json:"name"`
	Price        int64        `json:"price"` // minor units
	PerUserLimit int64        `json:"perUserLimit"`
	SoldOut      bool         `json:"soldOut"`
}

func (a *API) activity(c *gin.Context) error {
	id, err := activityID(c)
	if err != nil {
		return err
	}
	activity, err := a.engine.Activity(c.Request.Context(), id)
	if err != nil {
		return err
	}
	send(c, a.forBuyer(activity))
	return nil
}

func (a *API) activities(c *gin.Context) error {
	after, limit, err := page(c)
	if err != nil {
		return err
	}
	activities, err := a.engine.ListActivities(c.Request.Context(), domain.ActivityID(after), limit)
	if err != nil {
		return err
	}
	list := make([]buyerActivity, 0, len(activities))
	for _, activity := range activities {
		list = append(list, a.forBuyer(activity))
	}
	send(c, list)
	return nil
}

func (a *API) forBuyer(v application.ActivityView) buyerActivity {
	view := buyerActivity{
		ActivityID: v.ID, Name: v.Name, State: v.State, StartsAt: stamp{v.StartsAt},
		EndsAt: stamp{v.EndsAt}, ServerTime: stamp{a.cfg.Clock.Now()}, SKUs: make([]buyerSKU, 0, len(v.SKUs)),
	}
	for _, sku := range v.SKUs {
		view.SKUs = append(view.SKUs, buyerSKU{sku.ID, sku.Name, sku.Price, sku.PerUserLimit, v.SoldOut[sku.ID]})
	}
	return view
}

func activityID(c *gin.Context) (domain.ActivityID, error) {
	id, err := domain.ParseInteger("activityId", c.Param("id"))
	return domain.ActivityID(id), err
}

// page reads which part of a list is asked for: at most limit entries with an
// id above after.
func page(c *gin.Context) (after int64, limit int, err error) {
	limit = maxPage
	if text, ok := c.GetQuery("after"); ok {
		if after, ok = plainInteger(text); !ok {
			return 0, 0, domain.Invalid("after", "must be an integer from 0 to %d", int64(domain.MaxInteger))
		}
	}
	if text, ok := c.GetQuery("limit"); ok {
		n, ok := plainInteger(text)
		if !ok || n < 1 || n > maxPage {
			return 0, 0, domain.Invalid("limit", "must be an integer from 1 to %d", maxPage)
		}
		limit = int(n)
	}
	return after, limit, nil
}
