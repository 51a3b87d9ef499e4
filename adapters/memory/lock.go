package memory

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"seckill/domain"
)

// DefaultLockWait is how long a Lock waits unless told otherwise.
const DefaultLockWait = 200 * time.Millisecond

// Lock is a domain.Lock for the goroutines of one process.
//
// Holder and store are one process, so nothing can part them: a lease lasts
// until its work returns, and what a watchdog would do always succeeds. A
// lease is therefore never lost, and ErrLeaseLost is only what Renew says
// after Do has returned.
type Lock struct {
	fences domain.Fences
	wait   time.Duration

	mu    sync.Mutex
	turns map[string]*turn // of the keys that somebody holds or waits for
}

// turn is whose turn it is at one key: whoever has put a value into taken.
// Those who wait get it in the order in which they came.
type turn struct {
	taken chan struct{} // capacity 1
	users int           // holder and waiters; guarded by Lock.mu
}

var _ domain.Lock = (*Lock)(nil)

// NewLock makes a Lock. It waits at most wait for a key; 0 stands for
// DefaultLockWait.
func NewLock(fences domain.Fences, wait time.Duration) *Lock {
	if wait <= 0 {
		wait = DefaultLockWait
	}
	return &Lock{fences: fences, wait: wait, turns: map[string]*turn{}}
}

// Do is domain.Lock.Do. A caller whose context ends while it waits gets the
// context's cause.
func (l *Lock) Do(ctx context.Context, key string, ttl time.Duration, fn func(context.Context, domain.Lease) error) error {
	if ttl < domain.MinLockTTL {
		return domain.Invalid("lockTTL", "must be at least %s", domain.MinLockTTL)
	}
	if ctx.Err() != nil {
		return fmt.Errorf("lock %s: %w", key, context.Cause(ctx))
	}
	release, err := l.obtain(ctx, key)
	if err != nil {
		return fmt.Errorf("lock %s: %w", key, err)
	}
	defer release()

	number, err := l.mint(ctx, key, ttl)
	if err != nil {
		return fmt.Errorf("mint fence of lock %s: %w", key, err)
	}
	work, cancel := context.WithCancel(ctx)
	defer cancel()
	// Before release, for whoever kept the lease beyond its work.
	var over atomic.Bool
	defer over.Store(true)
	return fn(work, domain.Lease{
		Fence: domain.Fence{Key: key, Number: number},
		Renew: func(ctx context.Context) error {
			if over.Load() {
				return domain.ErrLeaseLost
			}
			return ctx.Err()
		},
	})
}

// mint does not let a ledger that hangs keep the key for longer than a lease.
func (l *Lock) mint(ctx context.Context, key string, ttl time.Duration) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, ttl)
	defer cancel()
	return l.fences.NextFence(ctx, key)
}

// obtain waits for the key's turn. The returned function gives it back.
func (l *Lock) obtain(ctx context.Context, key string) (release func(), err error) {
	t := l.enter(key)
	timer := time.NewTimer(l.wait)
	defer timer.Stop()
	select {
	case t.taken <- struct{}{}:
		return func() {
			<-t.taken
			l.leave(key, t)
		}, nil
	case <-timer.C:
		err = domain.ErrBusy
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	l.leave(key, t)
	return nil, err
}

func (l *Lock) enter(key string) *turn {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.turns[key]
	if t == nil {
		t = &turn{taken: make(chan struct{}, 1)}
		l.turns[key] = t
	}
	t.users++
	return t
}

func (l *Lock) leave(key string, t *turn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if t.users--; t.users == 0 {
		delete(l.turns, key)
	}
}
