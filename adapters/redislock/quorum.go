package redislock

import (
	"context"
	"crypto/rand"
	"errors"
	"time"

	bsm "github.com/bsm/redislock"
)

// held is a lock on one server, or on the majority of several.
type held interface {
	// Refresh errors: bsm.ErrNotObtained when the lock is lost; any other means
	// that the outcome is unknown.
	Refresh(ctx context.Context, ttl time.Duration, opt *bsm.Options) error
	// Release errors: bsm.ErrLockNotHeld when it was gone; else as Refresh.
	Release(ctx context.Context) error
}

// quorum is a lock on independent servers, each with the same token (the
// Redlock algorithm): whoever has the majority has the lock, so a minority may
// be down. A server that did not answer in time counts as one that refused.
type quorum struct{ locks []*bsm.Lock } // nil where the server did not give it

// nodeShare is the part of a lease that all servers together may take to answer.
const nodeShare = 4

// answers is what the servers said: some agreed, some refused, and the last
// error of those that did neither.
type answers struct {
	agreed, refused int
	err             error
}

// ask asks all servers at the same time.
func ask(ctx context.Context, ttl time.Duration, n int, question func(ctx context.Context, i int) error, refusal error) answers {
	ctx, cancel := context.WithTimeout(ctx, ttl/nodeShare)
	defer cancel()
	replies := make(chan error, n)
	for i := range n {
		go func() { replies <- question(ctx, i) }()
	}
	var all answers
	for range n {
		switch err := <-replies; {
		case err == nil:
			all.agreed++
		case errors.Is(err, refusal):
			all.refused++
		default:
			all.err = err
		}
	}
	return all
}

// outcome is nil when the majority agreed, the refusal when it cannot have
// agreed any more, and unknown otherwise.
func (a answers) outcome(n int, refusal error) error {
	switch {
	case a.agreed > n/2:
		return nil
	case a.refused > (n-1)/2 || a.err == nil:
		return refusal
	}
	return a.err
}

// obtainQuorum makes one attempt. It asks one server after the other, all in the
// same order, and the first that refuses ends it: somebody else has the lock or
// is about to. Asked at the same time, a crowd would split the servers among
// itself again and again. What a lost attempt has got is given back.
//
// An attempt that has begun is finished, so that no lease is left behind.
func obtainQuorum(ctx context.Context, clients []*bsm.Client, key string, ttl time.Duration) (held, error) {
	ctx = context.WithoutCancel(ctx)
	token := rand.Text()[:22] // as long as the library's own
	q := &quorum{locks: make([]*bsm.Lock, len(clients))}
	var all answers
	for i, client := range clients {
		asking, cancel := context.WithTimeout(ctx, ttl/nodeShare/time.Duration(len(clients)))
		lock, err := client.Obtain(asking, key, ttl, &bsm.Options{Token: token})
		cancel()
		if errors.Is(err, bsm.ErrNotObtained) {
			all.refused = len(clients)
			break
		}
		if err != nil {
			all.err = err
			continue
		}
		q.locks[i] = lock
		all.agreed++
	}
	if all.refused == 0 && all.agreed > len(clients)/2 {
		return q, nil
	}
	if all.agreed > 0 {
		cleaning, cancel := context.WithTimeout(ctx, ttl/nodeShare)
		defer cancel()
		_ = q.Release(cleaning) // what it misses ends by itself
	}
	if all.refused > 0 {
		return nil, bsm.ErrNotObtained
	}
	return nil, all.err
}

// Refresh implements held. A server that lost the lock does not get it again.
func (q *quorum) Refresh(ctx context.Context, ttl time.Duration, _ *bsm.Options) error {
	all := ask(ctx, ttl, len(q.locks), func(ctx context.Context, i int) error {
		if q.locks[i] == nil {
			return bsm.ErrNotObtained
		}
		return q.locks[i].Refresh(ctx, ttl, nil)
	}, bsm.ErrNotObtained)
	return all.outcome(len(q.locks), bsm.ErrNotObtained)
}

// Release implements held.
func (q *quorum) Release(ctx context.Context) error {
	all := ask(ctx, releaseTimeout*nodeShare, len(q.locks), func(ctx context.Context, i int) error {
		if q.locks[i] == nil {
			return bsm.ErrLockNotHeld
		}
		return q.locks[i].Release(ctx)
	}, bsm.ErrLockNotHeld)
	return all.outcome(len(q.locks), bsm.ErrLockNotHeld)
}
