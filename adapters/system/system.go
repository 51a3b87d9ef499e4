// Package system is the process's own clock and source of order ids.
package system

import (
	"crypto/rand"
	"encoding/base32"
	"io"
	"strings"
	"sync"
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
	source := sources.Get().(*source)
	id, _ := uuid.NewV7FromReader(source) // a source never fails
	sources.Put(source)
	var text [26]byte // 128 bits, five a letter
	sortable.Encode(text[:], id[:])
	return domain.NewOrderID(sale, string(text[:]))
}

// Minted is when OrderID made an id.
func (IDs) Minted(id domain.OrderID) (time.Time, bool) {
	text := string(id)
	decoded, err := sortable.DecodeString(text[strings.LastIndexByte(text, '-')+1:])
	if err != nil || len(decoded) != len(uuid.UUID{}) || uuid.UUID(decoded).Version() != 7 {
		return time.Time{}, false
	}
	return time.Unix(uuid.UUID(decoded).Time().UnixTime()), true
}

// source reads the system's random source ahead, for 32 ids at a time: one by
// one, that was most of an id's cost. Each byte is used once.
type source struct {
	bytes [32 * 16]byte
	used  int
}

var (
	_       io.Reader = (*source)(nil)
	sources           = sync.Pool{New: func() any { return &source{used: len(source{}.bytes)} }}
)

// Read fills p, which is no longer than an id. It never fails: without a
// random source the program ends.
func (s *source) Read(p []byte) (int, error) {
	if len(s.bytes)-s.used < len(p) {
		_, _ = rand.Read(s.bytes[:]) // never returns an error
		s.used = 0
	}
	n := copy(p, s.bytes[s.used:])
	clear(s.bytes[s.used : s.used+n])
	s.used += n
	return n, nil
}
