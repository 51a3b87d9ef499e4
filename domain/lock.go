package domain

import (
	"context"
	"time"
)

// MinLockTTL is the shortest lease a lock accepts.
const MinLockTTL = time.Second

// Lease is the right to work under a lock for a while.
type Lease struct {
	// Fence grows with every lease of the key, over all nodes and restarts.
	// Every guarded write carries it.
	Fence Fence
	// Renew extends the lease by its full time to live, counted from now.
	// A watchdog does the same every third of it. Errors: ErrLeaseLost; any
	// other means that the outcome is unknown.
	Renew func(ctx context.Context) error
}

// Lock lets one owner at a time work under a key. It saves work done twice;
// what is written is guarded by the fencing number.
type Lock interface {
	// Do obtains the lock, runs fn and releases the lock after fn returned.
	//
	// fn's context is cancelled as soon as the lease is lost, or may be: at
	// the latest when a monotonic clock of this process reaches the last
	// confirmed renewal + ttl − a margin, even if the lock's store hangs. fn
	// must write nothing after that.
	//
	// Errors: ErrInvalid for a ttl under MinLockTTL; ErrBusy when the lock was
	// not obtained within the wait; ErrUnavailable when its store did not
	// answer; ErrLeaseLost, joined to fn's own error, when the lease ended
	// before fn; ErrLockNotHeld, joined likewise, when only the release found
	// it gone. fn's error is never hidden.
	Do(ctx context.Context, key string, ttl time.Duration, fn func(context.Context, Lease) error) error
}

// Fences mints fencing numbers in the ledger.
type Fences interface {
	// NextFence returns a number higher than every earlier one of any key, so
	// that a sale's numbers grow although the granularity of its lock changes.
	NextFence(ctx context.Context, key string) (int64, error)
}

// Deployment is what all nodes of a deployment must agree on.
type Deployment interface {
	// Agree records a value under a name unless there is one, and returns the
	// value that holds.
	Agree(ctx context.Context, name, value string) (string, error)
}
