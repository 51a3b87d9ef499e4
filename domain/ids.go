package domain

import (
	"strconv"
	"strings"
)

// MaxInteger is the largest integer that JavaScript, Lua and Go agree on: 2^53−1.
const MaxInteger = 1<<53 - 1

// Bounds of the outer contract.
const (
	MaxQuantity  = 1000 // units in one grab
	MaxNameBytes = 64   // length of a buyer's, request's or payment's id
)

// ActivityID is 1 … MaxInteger.
type ActivityID int64

// SKUID is 1 … MaxInteger.
type SKUID int64

// SaleID names one SKU of one activity.
type SaleID struct {
	Activity ActivityID
	SKU      SKUID
}

// String is "activity:sku", for logs and lock keys.
func (s SaleID) String() string {
	return strconv.FormatInt(int64(s.Activity), 10) + ":" + strconv.FormatInt(int64(s.SKU), 10)
}

// ParseSaleID reads what String wrote.
func ParseSaleID(text string) (SaleID, error) {
	a, s, found := strings.Cut(text, ":")
	activity, err := ParseInteger("activityId", a)
	if err != nil || !found {
		return SaleID{}, Invalid("sale", "is not activity:sku")
	}
	sku, err := ParseInteger("skuId", s)
	if err != nil {
		return SaleID{}, Invalid("sale", "is not activity:sku")
	}
	return SaleID{ActivityID(activity), SKUID(sku)}, nil
}

// ParseInteger reads a plain decimal integer 1 … MaxInteger: no sign, no
// leading zero, no exponent, no fraction.
func ParseInteger(field, text string) (int64, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 1 || n > MaxInteger || strconv.FormatInt(n, 10) != text {
		return 0, Invalid(field, "must be an integer from 1 to %d", int64(MaxInteger))
	}
	return n, nil
}

// BuyerID, RequestID and PaymentID are 1–64 characters of A-Z a-z 0-9 . _ @ -.
// Two ids are the same when their bytes are.
type (
	BuyerID   string
	RequestID string
	PaymentID string
)

// ParseBuyerID checks a buyer's id; the error names the field userId.
func ParseBuyerID(text string) (BuyerID, error) {
	return BuyerID(text), checkName("userId", text)
}

// ParseRequestID checks a request's id; the error names the field requestId.
func ParseRequestID(text string) (RequestID, error) {
	return RequestID(text), checkName("requestId", text)
}

// ParsePaymentID checks a payment's id; the error names the field paymentId.
func ParsePaymentID(text string) (PaymentID, error) {
	return PaymentID(text), checkName("paymentId", text)
}

func checkName(field, text string) error {
	if len(text) == 0 || len(text) > MaxNameBytes {
		return Invalid(field, "must have 1 to %d characters", MaxNameBytes)
	}
	for i := range len(text) {
		c := text[i]
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9':
		case c == '.', c == '_', c == '@', c == '-':
		default:
			return Invalid(field, "may hold only A-Z a-z 0-9 . _ @ -")
		}
	}
	return nil
}

// OrderID is "SK<activity>-<sku>-<unique>". The unique part sorts by time and
// cannot be guessed. The sale is in clear, so that an order that is not in the
// ledger yet can be found in the hot store.
type OrderID string

// maxOrderID bounds an order id, in bytes.
const maxOrderID = 96

// lateSuffix marks the second hold of an order, taken when a payment arrives
// after the first hold was released. It is never part of a public order id.
const lateSuffix = "-late"

// NewOrderID puts an order id together; unique is lower-case letters and digits.
func NewOrderID(sale SaleID, unique string) OrderID {
	var text [maxOrderID]byte
	id := strconv.AppendInt(append(text[:0], "SK"...), int64(sale.Activity), 10)
	id = strconv.AppendInt(append(id, '-'), int64(sale.SKU), 10)
	return OrderID(append(append(id, '-'), unique...))
}

// ParseOrderID checks an order id from outside.
func ParseOrderID(text string) (OrderID, error) {
	if _, ok := saleOf(text); !ok {
		return "", Invalid("orderId", "is not an order id")
	}
	return OrderID(text), nil
}

// Sale is the sale that the id names. It is zero for an id that did not come
// from NewOrderID or ParseOrderID.
func (o OrderID) Sale() SaleID {
	sale, _ := saleOf(string(o.Order()))
	return sale
}

// Late is the id of the order's second hold, see Stock.Reacquire.
func (o OrderID) Late() OrderID { return o + lateSuffix }

// Order is the order that a hold belongs to: the id itself, or what Late was called on.
func (o OrderID) Order() OrderID { return OrderID(strings.TrimSuffix(string(o), lateSuffix)) }

func saleOf(text string) (SaleID, bool) {
	if len(text) > maxOrderID || !strings.HasPrefix(text, "SK") {
		return SaleID{}, false
	}
	parts := strings.Split(text[2:], "-")
	if len(parts) != 3 || parts[2] == "" {
		return SaleID{}, false
	}
	activity, err1 := ParseInteger("activityId", parts[0])
	sku, err2 := ParseInteger("skuId", parts[1])
	if err1 != nil || err2 != nil {
		return SaleID{}, false
	}
	for _, c := range []byte(parts[2]) {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') {
			return SaleID{}, false
		}
	}
	return SaleID{ActivityID(activity), SKUID(sku)}, true
}
