package redisstock

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	bsm "github.com/bsm/redislock"

	"seckill/domain"
)

const (
	// lockTTL is the lease of a grab's lock: many times what a batch takes. A
	// process that dies under the lock holds its sale up for so long.
	lockTTL = 3 * time.Second
	// lockTries × the mean of lockPause is how long a grab waits for the lock,
	// about 200 ms and the round trips.
	lockTries = 100
	lockPause = 2 * time.Millisecond
	// lockedTries bounds how often a batch is decided anew under the lock,
	// because a release, a payment or an acknowledgement came in between.
	lockedTries = 64
	// cleanTime bounds what is put in order after the caller was answered or
	// has given up.
	cleanTime = 2 * time.Second
)

// Locked is the hot store in Redis, strategy "lock": grabs of a sale read,
// check and write one after the other, under a distributed lock per sale.
//
// It keeps the whole contract, as Stock does. The lock only keeps grabs from
// deciding in vain: releases, payments and operators do not take it, and its
// lease may end too early. So the write is a transaction that Redis refuses
// when the lock has another owner or none (then nothing is written and the
// answer is ErrUnavailable), or when the sale has changed (then it is decided
// anew). A batch that has nothing to write is answered without the lock.
//
// The grabs of one process queue up in memory, so that the lock is contended by
// processes only. Waiting is bounded; then the answer is ErrUnavailable, never
// sold out. The lock's key carries the sale's hash tag and a time to live.
type Locked struct {
	unsplit
	locks *bsm.Client
	turns turns
}

var _ domain.Stock = (*Locked)(nil)

// NewLocked makes a Locked. It does not talk to Redis yet.
func NewLocked(config Config) (*Locked, error) {
	stock, err := New(config)
	if err != nil {
		return nil, err
	}
	return &Locked{unsplit: unsplit{stock}, locks: bsm.New(stock.config.Client), turns: turns{size: 1}}, nil
}

// Reserve implements domain.Admission. At most 1000 claims.
func (s *Locked) Reserve(ctx context.Context, sale domain.SaleID, claims []domain.Claim) ([]domain.Outcome, error) {
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
	lock, err := s.obtain(ctx, keys)
	if err != nil {
		return nil, err
	}
	defer s.release(ctx, lock)
	for try := range lockedTries {
		outcomes, err := s.transact(ctx, keys, claims, guard{lock.Key(), lock.Token()})
		if outcomes != nil || err != nil {
			return outcomes, err
		}
		if outcomes, err = s.refusals(ctx, keys, claims); outcomes != nil || err != nil {
			return outcomes, err
		}
		if err := pause(ctx, try); err != nil {
			return nil, err
		}
	}
	return nil, unavailable(fmt.Errorf("sale %s kept changing", keys.id))
}

// obtain waits for the lock of a sale, for a bounded time. An attempt that has
// begun is finished when ctx ends: cut off, it might leave a lease behind.
func (s *Locked) obtain(ctx context.Context, keys saleKeys) (*bsm.Lock, error) {
	for range lockTries {
		if ctx.Err() != nil {
			return nil, unavailable(context.Cause(ctx))
		}
		trying, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanTime)
		lock, err := s.locks.Obtain(trying, keys.lock(), lockTTL, nil)
		cancel()
		if err == nil {
			return lock, nil
		}
		if !errors.Is(err, bsm.ErrNotObtained) {
			return nil, unavailable(err)
		}
		select {
		case <-time.After(lockPause/2 + rand.N(lockPause)):
		case <-ctx.Done():
		}
	}
	return nil, unavailable(fmt.Errorf("the lock of sale %s is busy", keys.id))
}

// release gives the lock back, also when the caller has given up. What fails
// here ends by itself with the lease, so nobody has to hear of it.
func (s *Locked) release(ctx context.Context, lock *bsm.Lock) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanTime)
	defer cancel()
	_ = lock.Release(ctx)
}

// lock is the key of the sale's lock, in the sale's slot.
func (k saleKeys) lock() string {
	return k.sale + ":lock"
}
