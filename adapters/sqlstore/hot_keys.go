package sqlstore

import (
	"strings"

	"seckill/domain"
)

// Stages of a sale. A sale that is not there has no row.
const (
	sealed = "sealed" // may be loaded; nothing else changes
	ready  = "ready"
)

// saleKey is a sale as the hot tables name it: activity:sku.
type saleKey string

func keyOf(sale domain.SaleID) saleKey { return saleKey(sale.String()) }

// of is the id of one of the sale's records.
func (k saleKey) of(name string) string { return string(k) + ":" + name }

// request is the id of a buyer's request. Neither part can have a colon.
func (k saleKey) request(buyer domain.BuyerID, request domain.RequestID) string {
	return k.of(string(buyer)) + ":" + string(request)
}

// name is what of was given.
func (k saleKey) name(id string) string { return strings.TrimPrefix(id, string(k)+":") }

// bounds enclose the ids of all the sale's records: they sort byte-wise.
func (k saleKey) bounds() (above, below string) { return string(k) + ":", string(k) + ";" }
