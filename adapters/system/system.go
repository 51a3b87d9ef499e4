// Package system is the process's own clock and source of order ids.
package system

import (
	"encoding/base32"
	"time"

	"github.com/google/uuid"

	"seckill/domain"
)

var (
	_ domain.Clock = Clock{}
	_ domain.IDs   = IDs{}
)

// Clock is the operating system's clock.
type Clock struct{}

// Now is the time of this process.
func (Clock) Now() time.Time { return time.Now() }

// IDs mints order ids from UUIDs of version 7: milliseconds first, so ids sort
// by time, then 74 bits of which 62 come from the system's random source, so
// nobody can guess one.
type IDs struct{}

// sortable is base32 whose letters sort as the bytes do.
var sortable = base32.NewEncoding("0123456789abcdefghijklmnopqrstuv").WithPadding(base32.NoPadding)

// OrderID returns a new order id.
func (IDs) OrderID(sale domain.SaleID) domain.OrderID {
	id := uuid.Must(uuid.NewV7()) // fails only when the system has no random source
	var text [26]byte             // 128 bits, five a letter
	sortable.Encode(text[:], id[:])
	return domain.NewOrderID(sale, string(text[:]))
}
