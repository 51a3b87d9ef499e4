package redisstock

import (
	"context"
	"fmt"

	"seckill/domain"
)

// watchTries bounds how often a grab is decided anew because something of the
// sale changed between its read and its write. With the pauses in between that
// is about half a second.
const watchTries = 64

// watchers is how many grabs of a sale try at a time in one process. Measured: 2
// are a third slower, 4 half as fast.
const watchers = 1

// Watch is the hot store in Redis, strategy "watch": it reads a sale, decides
// in the client, and writes in a MULTI/EXEC that Redis refuses when the sale or
// a hold has changed since (WATCH). Then it begins again, after a pause.
//
// It keeps the whole contract, as Stock does. A batch that has nothing to write
// is answered from one read, without conflicts. Under a crowd, grabs that could
// win get into each other's way: out of tries, or of time, the answer is
// ErrUnavailable. While a slot moves between the nodes of a cluster, grabs of
// its sales are ErrUnavailable too.
//
// The grabs of one process try one after the other: more at a time only make
// each other begin again.
type Watch struct {
	unsplit
	turns turns
}

var _ domain.Stock = (*Watch)(nil)

// NewWatch makes a Watch. It does not talk to Redis yet.
func NewWatch(config Config) (*Watch, error) {
	stock, err := New(config)
	if err != nil {
		return nil, err
	}
	return &Watch{unsplit{stock}, turns{size: watchers}}, nil
}

// Reserve implements domain.Admission. At most 1000 claims.
func (s *Watch) Reserve(ctx context.Context, sale domain.SaleID, claims []domain.Claim) ([]domain.Outcome, error) {
	if err := checkClaims(claims); err != nil || len(claims) == 0 {
		return nil, err
	}
	keys := s.keys(sale)
	outcomes, err := s.refusals(ctx, keys, claims)
	if outcomes != nil || err != nil {
		return outcomes, err
	}
	leave, err := s.turns.take(ctx, keys)
	if err != nil {
		return nil, err
	}
	defer leave()
	for try := range watchTries {
		outcomes, err := s.refusals(ctx, keys, claims)
		if outcomes != nil || err != nil {
			return outcomes, err
		}
		outcomes, err = s.transact(ctx, keys, claims, guard{})
		if outcomes != nil || err != nil {
			return outcomes, err
		}
		if err := pause(ctx, try); err != nil {
			return nil, err
		}
	}
	return nil, unavailable(fmt.Errorf("sale %s kept changing", keys.id))
}
