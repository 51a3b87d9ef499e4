package redislock

import (
	"context"
	"errors"
	"sync"
	"time"

	bsm "github.com/bsm/redislock"

	"seckill/domain"
)

// lease is a lock that is held: a deadline, and a watchdog that moves it.
//
// The deadline is a timer of its own. The watchdog may hang inside Redis; the
// timer then fires all the same.
type lease struct {
	held    held
	ttl     time.Duration
	margin  time.Duration
	cancel  context.CancelCauseFunc // of the work
	stop    context.CancelFunc      // of the watchdog
	stopped chan struct{}           // closed once the watchdog has returned

	mu       sync.Mutex
	deadline time.Time // last confirmed renewal's start + ttl − margin
	timer    *time.Timer
	over     bool // lost, or its work is done
}

// begin starts the deadline and the watchdog of a lock that was obtained by an
// attempt that started at start. It returns the context for the work.
func begin(ctx context.Context, held held, start time.Time, ttl, margin time.Duration) (*lease, context.Context) {
	l := &lease{held: held, ttl: ttl, margin: margin, stopped: make(chan struct{})}
	work, cancel := context.WithCancelCause(ctx)
	l.cancel = cancel
	// A caller that gives up cancels the work but not the watchdog: the lease
	// has to last until the work has noticed.
	watching, stop := context.WithCancel(context.WithoutCancel(ctx))
	l.stop = stop

	l.mu.Lock()
	l.deadline = start.Add(ttl - margin)
	l.timer = time.AfterFunc(time.Until(l.deadline), l.expire)
	l.mu.Unlock()

	go func() {
		defer close(l.stopped)
		l.watch(watching)
	}()
	return l, work
}

// watch renews every third of the lease until ctx ends or the lease is lost.
// After a renewal with an unknown outcome it comes back sooner.
func (l *lease) watch(ctx context.Context) {
	every := l.ttl / 3
	next := time.NewTimer(every)
	defer next.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-next.C:
		}
		err := l.renew(ctx)
		switch {
		case err == nil:
			next.Reset(every)
		case errors.Is(err, domain.ErrLeaseLost):
			return
		default:
			next.Reset(every / 4)
		}
	}
}

// renew extends the lease in Redis and then here. It is the Renew of domain.Lease.
func (l *lease) renew(ctx context.Context) error {
	if l.isOver() {
		return domain.ErrLeaseLost
	}
	ctx, cancel := context.WithTimeout(ctx, l.margin*3/4)
	defer cancel()
	// From before the call: Redis counts the new lease from a later moment.
	start := time.Now()
	err := l.held.Refresh(ctx, l.ttl, nil)
	switch {
	case err == nil:
		return l.extend(start)
	case errors.Is(err, bsm.ErrNotObtained):
		l.lose()
		return domain.ErrLeaseLost
	default:
		return unavailable(err)
	}
}

func (l *lease) isOver() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.over
}

// extend moves the deadline after a confirmed renewal that started at start.
// A confirmation that comes too late extends nothing: the work may have been
// cancelled, or must be now.
func (l *lease) extend(start time.Time) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over {
		return domain.ErrLeaseLost
	}
	// Two renewals may be confirmed in the other order than they started.
	if deadline := start.Add(l.ttl - l.margin); deadline.After(l.deadline) {
		l.deadline = deadline
	}
	l.check()
	if l.over {
		return domain.ErrLeaseLost
	}
	return nil
}

// expire is what the timer does.
func (l *lease) expire() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.check()
}

// check loses the lease if its deadline has passed; else it sets the timer to
// it. The timer may have fired while a renewal was moving the deadline.
// The caller holds the mutex.
func (l *lease) check() {
	if l.over {
		return
	}
	if left := time.Until(l.deadline); left > 0 {
		l.timer.Reset(left)
		return
	}
	l.over = true
	l.timer.Stop()
	l.cancel(domain.ErrLeaseLost)
}

// lose is for a renewal that found the lock gone.
func (l *lease) lose() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.deadline = time.Time{}
	l.check()
}

// end ends a lease whose work is done: first the watchdog, so that nothing
// renews what is being released, then the lock in Redis, also when the caller
// has given up. A release that Redis executed but could not confirm, and that
// the client repeated, reads as not held.
func (l *lease) end(ctx context.Context) error {
	l.mu.Lock()
	// The work may be done before the timer of a deadline in the past has run.
	l.check()
	lost := l.over
	l.over = true
	l.timer.Stop()
	l.mu.Unlock()
	l.cancel(nil)
	l.stop()
	<-l.stopped

	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTimeout)
	defer cancel()
	err := l.held.Release(ctx)
	notHeld := errors.Is(err, bsm.ErrLockNotHeld)
	switch {
	case lost && (err == nil || notHeld):
		return domain.ErrLeaseLost
	case lost:
		return errors.Join(domain.ErrLeaseLost, unavailable(err))
	case notHeld:
		return domain.ErrLockNotHeld
	case err != nil:
		return unavailable(err)
	}
	return nil
}
