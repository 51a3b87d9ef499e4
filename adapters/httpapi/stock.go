package httpapi

import (
	"net/http"

	"github.com/gin-gonic/gin"

	"seckill/domain"
)

// editView is a change of how many units a sale has.
type editView struct {
	ActivityID domain.ActivityID `json:"activityId"`
	SKUID      domain.SKUID      `json:"skuId"`
	Delta      int64             `json:"delta"` // units added; negative: withdrawn
	Reason     string            `json:"reason"`
	Key        domain.RequestID  `json:"key"` // the Idempotency-Key, or what was made up for it
	Total      int64             `json:"total"`
	At         stamp             `json:"at"`
}

func viewEdit(e domain.StockEdit) editView {
	return editView{e.Sale.Activity, e.Sale.SKU, e.Delta, e.Reason, e.Key, e.Total, stamp{e.At}}
}

// editStock adds units to a sale or withdraws some. The same Idempotency-Key
// makes one edit of many calls.
func (a *API) editStock(c *gin.Context) error {
	sale, err := saleID(c)
	if err != nil {
		return err
	}
	f, err := object(c)
	if err != nil {
		return err
	}
	f.only("delta", "reason")
	edit := domain.StockEdit{Sale: sale, Delta: f.difference("delta"), Reason: f.text("reason")}
	if f.err != nil {
		return f.err
	}
	if edit.Key, err = requestID("", c.Request.Header.Values("Idempotency-Key")); err != nil {
		return domain.Invalid("Idempotency-Key", "must be one, of 1 to %d characters of A-Z a-z 0-9 . _ @ -", domain.MaxNameBytes)
	}
	made, err := a.engine.EditStock(c.Request.Context(), edit)
	if err != nil {
		p := a.failure(c, err)
		if p.Status == http.StatusServiceUnavailable {
			// It may have been made. Only with its key can it be asked for again.
			p.Key = made.Key
			p.Detail = "A store did not answer, so the outcome is unknown. Asking again with this key as Idempotency-Key is safe."
		}
		p.send(c)
		return nil
	}
	send(c, viewEdit(made))
	return nil
}

func (a *API) stockEdits(c *gin.Context) error {
	sale, err := saleID(c)
	if err != nil {
		return err
	}
	edits, err := a.engine.StockEdits(c.Request.Context(), sale)
	if err != nil {
		return err
	}
	list := make([]editView, 0, len(edits))
	for _, edit := range edits {
		list = append(list, viewEdit(edit))
	}
	send(c, list)
	return nil
}

func saleID(c *gin.Context) (domain.SaleID, error) {
	activity, err := activityID(c)
	if err != nil {
		return domain.SaleID{}, err
	}
	sku, err := domain.ParseInteger("skuId", c.Param("skuId"))
	return domain.SaleID{Activity: activity, SKU: domain.SKUID(sku)}, err
}
