package httpapi

import (
	"github.com/gin-gonic/gin"

	"seckill/application"
	"seckill/domain"
)

// reportView is the account of an activity. All figures are units.
type reportView struct {
	ActivityID domain.ActivityID `json:"activityId"`
	State      domain.State      `json:"state"`
	Balanced   bool              `json:"balanced"` // every sale is
	SKUs       []saleView        `json:"skus"`
}

type saleView struct {
	SKUID     domain.SKUID `json:"skuId"`
	Loaded    bool         `json:"loaded"` // the hot store has the sale
	Total     int64        `json:"total"`
	Available int64        `json:"available"`
	Held      int64        `json:"held"`
	Sold      int64        `json:"sold"`
	Queued    int64        `json:"queued"`
	Ledger    ledgerView   `json:"ledger"`
	Drift     int64        `json:"drift"`
	Balanced  bool         `json:"balanced"`
	Problem   string       `json:"problem,omitempty"` // why it is not balanced, where the figures do not say
	Repairs   []repairView `json:"repairs,omitempty"`
}

type ledgerView struct {
	Pending   int64 `json:"pending"`
	Paid      int64 `json:"paid"`
	Cancelled int64 `json:"cancelled"`
	Expired   int64 `json:"expired"`
	Rejected  int64 `json:"rejected"`
	RefundDue int64 `json:"refundDue"`
}

type repairView struct {
	What    string         `json:"what"`
	OrderID domain.OrderID `json:"orderId,omitempty"`
	Units   int64          `json:"units"`
}

func viewReport(r application.Report) reportView {
	view := reportView{
		ActivityID: r.Activity.ID, State: r.Activity.State, Balanced: r.Balanced(),
		SKUs: make([]saleView, 0, len(r.Sales)),
	}
	for _, s := range r.Sales {
		sale := saleView{
			SKUID: s.Sale.SKU, Problem: s.Problem, Loaded: s.Loaded, Total: s.Level.Total, Available: s.Level.Available,
			Held: s.Level.Held, Sold: s.Level.Sold, Queued: s.Level.Queued,
			Ledger: ledgerView{
				Pending: s.Ledger.Pending, Paid: s.Ledger.Paid, Cancelled: s.Ledger.Cancelled,
				Expired: s.Ledger.Expired, Rejected: s.Ledger.Rejected, RefundDue: s.Ledger.RefundDue,
			},
			Drift: s.Drift, Balanced: s.Balanced,
		}
		for _, repair := range s.Repairs {
			sale.Repairs = append(sale.Repairs, repairView{repair.What, repair.Order.Order(), repair.Units})
		}
		view.SKUs = append(view.SKUs, sale)
	}
	return view
}

func (a *API) report(c *gin.Context) error {
	id, err := activityID(c)
	if err != nil {
		return err
	}
	report, err := a.engine.Report(c.Request.Context(), id)
	if err != nil {
		return err
	}
	send(c, viewReport(report))
	return nil
}

// reconcile repairs only when it is told to.
func (a *API) reconcile(c *gin.Context) error {
	id, err := activityID(c)
	if err != nil {
		return err
	}
	f, err := optionalObject(c)
	if err != nil {
		return err
	}
	f.only("repair")
	repair := f.flag("repair")
	if f.err != nil {
		return f.err
	}
	report, err := a.engine.Reconcile(c.Request.Context(), id, repair)
	if err != nil {
		return err
	}
	send(c, viewReport(report))
	return nil
}
