package httpapi

import (
	"context"

	"github.com/gin-gonic/gin"

	"seckill/domain"
)

// operatorActivity is an activity as operators see it. How much is left is in
// the report.
type operatorActivity struct {
	ActivityID    domain.ActivityID `json:"activityId"`
	Name          string            `json:"name"`
	State         domain.State      `json:"state"`
	StartsAt      stamp             `json:"startsAt"`
	EndsAt        stamp             `json:"endsAt"`
	ServerTime    stamp             `json:"serverTime"`
	PaymentWindow string            `json:"paymentWindow"` // as "30m0s"
	SKUs          []operatorSKU     `json:"skus"`
}

type operatorSKU struct {
	SKUID        domain.SKUID `json:"skuId"`
	Name         string       `json:"name"`
	Price        int64        `json:"price"` // minor units
	Total        int64        `json:"total"`
	PerUserLimit int64        `json:"perUserLimit"`
	Segments     int          `json:"segments"`
}

func (a *API) forOperator(activity domain.Activity) operatorActivity {
	view := operatorActivity{
		ActivityID: activity.ID, Name: activity.Name, State: activity.State,
		StartsAt: stamp{activity.StartsAt}, EndsAt: stamp{activity.EndsAt}, ServerTime: stamp{a.cfg.Clock.Now()},
		PaymentWindow: activity.PaymentWindow.String(), SKUs: make([]operatorSKU, 0, len(activity.SKUs)),
	}
	for _, s := range activity.SKUs {
		view.SKUs = append(view.SKUs, operatorSKU{s.ID, s.Name, s.Price, s.Total, s.PerUserLimit, s.Segments})
	}
	return view
}

// findActivity reads the ledger itself: an operator wants neither a cached
// answer nor one that fails with the hot store.
func (a *API) findActivity(c *gin.Context) error {
	id, err := activityID(c)
	if err != nil {
		return err
	}
	activity, err := a.engine.Activities.Activity(c.Request.Context(), id)
	return a.sendActivity(c, activity, err)
}

func (a *API) listActivities(c *gin.Context) error {
	after, limit, err := page(c)
	if err != nil {
		return err
	}
	activities, err := a.engine.Activities.Activities(c.Request.Context(), domain.ActivityID(after), limit)
	if err != nil {
		return err
	}
	list := make([]operatorActivity, 0, len(activities))
	for _, activity := range activities {
		list = append(list, a.forOperator(activity))
	}
	send(c, list)
	return nil
}

func (a *API) saveActivity(c *gin.Context) error {
	activity, err := a.activityOf(c)
	if err != nil {
		return err
	}
	saved, err := a.engine.SaveActivity(c.Request.Context(), activity)
	return a.sendActivity(c, saved, err)
}

// activityOf reads the path and the body of a save. What the body leaves out
// is set to its default, not kept.
func (a *API) activityOf(c *gin.Context) (domain.Activity, error) {
	id, err := activityID(c)
	if err != nil {
		return domain.Activity{}, err
	}
	f, err := object(c)
	if err != nil {
		return domain.Activity{}, err
	}
	f.only("name", "startsAt", "endsAt", "paymentWindow", "skus")
	activity := domain.Activity{
		ID:            id,
		Name:          f.text("name"),
		StartsAt:      f.time("startsAt"),
		EndsAt:        f.time("endsAt"),
		PaymentWindow: f.duration("paymentWindow", a.cfg.DefaultPaymentWindow),
	}
	for _, s := range f.objects("skus", "skuId", "name", "price", "total", "perUserLimit", "segments") {
		activity.SKUs = append(activity.SKUs, domain.SKU{
			ID:           domain.SKUID(s.integer("skuId", 1, domain.MaxInteger)),
			Name:         s.textOr("name", ""),
			Price:        s.integerOr("price", 0, domain.MaxInteger, 0),
			Total:        s.integer("total", 1, domain.MaxInteger),
			PerUserLimit: s.integerOr("perUserLimit", 1, domain.MaxInteger, 1),
			Segments:     int(s.integerOr("segments", 1, domain.MaxInteger, 1)),
		})
		f.keep(s.err)
	}
	return activity, f.err
}

// command is a handler that does something with the activity in the path and
// answers with the activity. Its body is empty or {}.
func (a *API) command(do func(context.Context, domain.ActivityID) (domain.Activity, error)) func(*gin.Context) error {
	return func(c *gin.Context) error {
		id, err := activityID(c)
		if err != nil {
			return err
		}
		if err := noBody(c); err != nil {
			return err
		}
		activity, err := do(c.Request.Context(), id)
		return a.sendActivity(c, activity, err)
	}
}

func (a *API) sendActivity(c *gin.Context, activity domain.Activity, err error) error {
	if err != nil {
		return err
	}
	send(c, a.forOperator(activity))
	return nil
}

// noBody refuses fields on a route that has none.
func noBody(c *gin.Context) error {
	f, err := optionalObject(c)
	if err != nil {
		return err
	}
	f.only()
	return f.err
}
