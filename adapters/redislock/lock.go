// Package redislock is the Lock port on one Redis, standalone, behind Sentinel
// or as a Cluster, or on the majority of several independent ones, through
// bsm/redislock.
//
// The lease lives in Redis, the fencing number comes from the ledger. Redis
// may lose a lease (failover, data loss, a paused process), so the lock saves
// double work and the fence keeps what is written right.
package redislock

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	bsm "github.com/bsm/redislock"
	"github.com/redis/go-redis/v9"

	"seckill/domain"
)

// Defaults of Config.
const (
	DefaultPrefix     = "seckill:"
	DefaultWait       = 200 * time.Millisecond
	DefaultRetryEvery = 20 * time.Millisecond
)

// marginShare is the part of a lease that the default margin takes.
const marginShare = 5

// releaseTimeout bounds a release. The shortest lease is as long: waiting any
// longer gains nothing, because the lease then ends by itself.
const releaseTimeout = domain.MinLockTTL

// Config is what a Lock needs. Client and Fences are required.
type Config struct {
	// Client must have ContextTimeoutEnabled set: without it a Redis that
	// hangs holds up callers for the client's own time-outs. (The work under a
	// lease is cancelled in time all the same.)
	Client redis.UniversalClient
	// Quorum are independent servers, three or five, none a replica of another;
	// then the lock is had on their majority, and Client is not used. It goes on
	// while a minority is down. It is not safer than the fencing numbers make it:
	// a server that forgets its leases in a restart, a jump of its clock, or a
	// pause of this process still lets two owners work at a time.
	Quorum []redis.UniversalClient
	// Fences mints the fencing numbers.
	Fences domain.Fences
	// Prefix starts every key in Redis. Default: DefaultPrefix.
	Prefix string
	// Wait is how long Do waits for a lock, a hanging Redis included.
	// Default: DefaultWait, a fraction of what a buyer waits for an answer.
	Wait time.Duration
	// RetryEvery is the mean pause between two attempts within Wait, spread by
	// half so that waiters do not march in step. Default: DefaultRetryEvery.
	RetryEvery time.Duration
	// Margin is how long before the end of the lease the work is cancelled. It
	// covers the difference between this machine's and Redis' clock rates and
	// the time the work takes to notice. A renewal is given up within it. A
	// lease under three margins is refused. Default: a fifth of the lease.
	Margin time.Duration
	// Observer hears the times. Default: nobody does.
	Observer Observer
	// Logger gets the warnings. Default: slog.Default().
	Logger *slog.Logger
}

// Observer hears what the lock does, for metrics. Both may be nil; both are
// called on the goroutine of Do and must be quick.
type Observer struct {
	// Asked is called once per attempt to get a lock, with the time it took;
	// err is nil when the lock was obtained.
	Asked func(wait time.Duration, err error)
	// Held is called once per lease after its release, with the time from the
	// start of the attempt that obtained it.
	Held func(hold time.Duration)
}

// Lock is a domain.Lock. It is safe for concurrent use.
type Lock struct {
	config  Config
	clients []*bsm.Client
	holds   holds
}

var _ domain.Lock = (*Lock)(nil)

// New makes a Lock.
func New(config Config) *Lock {
	if config.Prefix == "" {
		config.Prefix = DefaultPrefix
	}
	if config.Wait <= 0 {
		config.Wait = DefaultWait
	}
	if config.RetryEvery <= 0 {
		config.RetryEvery = DefaultRetryEvery
	}
	if config.Logger == nil {
		config.Logger = slog.Default()
	}
	lock := &Lock{config: config}
	servers := config.Quorum
	if len(servers) == 0 {
		servers = []redis.UniversalClient{config.Client}
	}
	for _, server := range servers {
		lock.clients = append(lock.clients, bsm.New(server))
	}
	return lock
}

// Do is domain.Lock.Do. A caller whose context ends while it waits gets the
// context's cause. ErrUnavailable is also joined to fn's error when the lock
// was held until fn returned and the outcome of the release is unknown. A lease
// that such a release, or an attempt without an answer, has left behind ends by
// itself after ttl.
//
// The fencing number is minted after the lock was obtained, within the first
// lease; fn does not run when that fails.
//
// Times are taken from time.Now and not from the Clock port: a lease is a
// distance on the monotonic clock, which no wall clock correction may stretch.
func (l *Lock) Do(ctx context.Context, key string, ttl time.Duration, fn func(context.Context, domain.Lease) error) (err error) {
	margin := l.config.Margin
	if margin <= 0 {
		margin = ttl / marginShare
	}
	switch {
	case ttl < domain.MinLockTTL:
		return domain.Invalid("lockTTL", "must be at least %s", domain.MinLockTTL)
	case ttl < 3*margin:
		return domain.Invalid("lockTTL", "must be at least %s, three times the margin", 3*margin)
	case ctx.Err() != nil:
		return fmt.Errorf("lock %s: %w", key, context.Cause(ctx))
	}

	asked := time.Now()
	held, start, err := l.obtain(ctx, key, ttl)
	if l.config.Observer.Asked != nil {
		l.config.Observer.Asked(time.Since(asked), err)
	}
	if err != nil {
		return fmt.Errorf("lock %s: %w", key, err)
	}

	lease, work := begin(ctx, held, start, ttl, margin)
	// Deferred, so that a panic of fn, too, ends the lease on its way up.
	returned := false
	defer func() {
		ended := lease.end(ctx)
		l.observe(key, time.Since(start), ttl)
		switch {
		case ended == nil:
		case returned:
			err = errors.Join(err, fmt.Errorf("lock %s: %w", key, ended))
		default:
			l.config.Logger.ErrorContext(ctx, "lock not released in order after a panic", "lock_key", key, "error", ended)
		}
	}()
	err = l.guard(work, key, lease, fn)
	returned = true
	return err
}

// guard mints the fencing number and runs fn.
func (l *Lock) guard(ctx context.Context, key string, lease *lease, fn func(context.Context, domain.Lease) error) error {
	// The watchdog would keep the lease for as long as a hanging ledger likes.
	minting, cancel := context.WithTimeout(ctx, lease.ttl-lease.margin)
	number, err := l.config.Fences.NextFence(minting, key)
	cancel()
	if err != nil {
		return fmt.Errorf("mint fence of lock %s: %w", key, err)
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return fn(ctx, domain.Lease{
		Fence: domain.Fence{Key: key, Number: number},
		Renew: lease.renew,
	})
}

// obtain tries for as long as Wait allows. It returns the lock and the start of
// the attempt that got it: the lease in Redis ends no sooner than ttl after it.
func (l *Lock) obtain(ctx context.Context, key string, ttl time.Duration) (held, time.Time, error) {
	deadline := time.Now().Add(l.config.Wait)
	waiting, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	for busy := false; ; busy = true {
		start := time.Now()
		// One attempt per call: the library's own retries would hide its start.
		held, err := l.attempt(waiting, key, ttl)
		if err == nil {
			return held, start, nil
		}
		if !errors.Is(err, bsm.ErrNotObtained) {
			if busy && waiting.Err() != nil && ctx.Err() == nil {
				// Only the end of the wait came before the answer, and somebody had the
				// lock a moment ago.
				return nil, start, domain.ErrBusy
			}
			if ctx.Err() != nil {
				err = errors.Join(context.Cause(ctx), err)
			}
			return nil, start, unavailable(err)
		}
		// The last attempt starts RetryEvery before the end of the wait, to
		// have time for its answer: an answer that is cut off would look like
		// a failure and might leave a lease that nobody holds.
		left := time.Until(deadline) - l.config.RetryEvery
		if left <= 0 {
			return nil, start, domain.ErrBusy
		}
		pause := l.config.RetryEvery/2 + rand.N(l.config.RetryEvery)
		select {
		case <-time.After(min(pause, left)):
		case <-ctx.Done():
			return nil, start, context.Cause(ctx)
		}
	}
}

func (l *Lock) attempt(ctx context.Context, key string, ttl time.Duration) (held, error) {
	if len(l.clients) > 1 {
		return obtainQuorum(ctx, l.clients, l.redisKey(key), ttl)
	}
	return l.clients[0].Obtain(ctx, l.redisKey(key), ttl, nil)
}

// redisKey puts the key into a hash tag, so that the name of a lock alone
// decides on which node of a Cluster it lives.
func (l *Lock) redisKey(key string) string { return l.config.Prefix + "lock:{" + key + "}" }

// observe reports a hold.
func (l *Lock) observe(key string, hold, ttl time.Duration) {
	if l.config.Observer.Held != nil {
		l.config.Observer.Held(hold)
	}
	if share, warn := l.holds.add(hold, ttl, time.Now()); warn {
		l.config.Logger.Warn("locks are held too long: the 99th percentile exceeds half of the lease",
			"p99_of_lease", share, "lock_key", key, "hold", hold, "lease", ttl)
	}
}

// unavailable wraps an error of the client whose outcome is unknown.
func unavailable(err error) error { return fmt.Errorf("%w: %w", domain.ErrUnavailable, err) }
