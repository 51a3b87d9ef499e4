package conformance

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"seckill/domain"
)

// LockWorld is what the suite of the Lock port runs against.
type LockWorld struct {
	// Nodes are locks over one store, as the nodes of a deployment have them.
	// One is enough.
	Nodes []domain.Lock
	// Wait is how long each node waits for a busy lock.
	Wait time.Duration
	// Fences is what the nodes mint with.
	Fences *LockFences
}

// node is the i-th node, counted around.
func (w LockWorld) node(i int) domain.Lock { return w.Nodes[i%len(w.Nodes)] }

// LockFences is a ledger of fencing numbers for tests of locks.
type LockFences struct {
	mu     sync.Mutex
	last   map[string]int64
	refuse error
	delay  time.Duration
}

// NewLockFences makes a LockFences.
func NewLockFences() *LockFences { return &LockFences{last: map[string]int64{}} }

// NextFence is domain.Fences.NextFence.
func (f *LockFences) NextFence(ctx context.Context, key string) (int64, error) {
	f.mu.Lock()
	refuse, delay := f.refuse, f.delay
	f.mu.Unlock()
	select {
	case <-time.After(delay):
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	}
	if refuse != nil {
		return 0, refuse
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.last[key]++
	return f.last[key], nil
}

// Refuse makes every NextFence fail with err, or work again when err is nil.
func (f *LockFences) Refuse(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.refuse = err
}

// Delay makes every NextFence take that long.
func (f *LockFences) Delay(delay time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.delay = delay
}

// lockTTL is the lease of the suite: long enough for a busy machine.
const lockTTL = 10 * time.Second

// lockPatience bounds everything that has to happen sooner or later.
const lockPatience = 30 * time.Second

// Lock is the conformance suite of domain.Lock. Every part opens a world of
// its own.
func Lock(t *testing.T, open func(t *testing.T) LockWorld) {
	for _, part := range []struct {
		name string
		run  func(t *testing.T, w LockWorld)
	}{
		{"one owner at a time", lockExcludes},
		{"busy after a bounded wait", lockBusy},
		{"a waiter gets the lock that is released", lockHandsOver},
		{"keys do not wait for one another", lockPerKey},
		{"fences grow", lockFencesGrow},
		{"no fence, no work", lockNeedsFence},
		{"short lease is refused", lockRefusesShortLease},
		{"work may outlast the lease", lockOutlivesLease},
		{"work's error is returned as it is", lockReturnsError},
		{"a panic releases", lockPanics},
		{"cancelled caller", lockCancelled},
		{"renewal by hand", lockRenews},
	} {
		t.Run(part.name, func(t *testing.T) { part.run(t, open(t)) })
	}
}

// covers L1
func lockExcludes(t *testing.T, w LockWorld) {
	const owners = 50
	ctx, cancel := context.WithTimeout(t.Context(), lockPatience)
	defer cancel()
	var (
		inside atomic.Int32
		plain  int // written without any other guard: the race detector watches the lock itself
		all    sync.WaitGroup
	)
	for i := range owners {
		all.Go(func() {
			err := lockPatiently(ctx, w.node(i), "crowd", func(context.Context, domain.Lease) error {
				if n := inside.Add(1); n != 1 {
					t.Errorf("%d owners at once", n)
				}
				plain++
				time.Sleep(time.Millisecond)
				inside.Add(-1)
				return nil
			})
			if err != nil {
				t.Errorf("owner %d: %v", i, err)
			}
		})
	}
	all.Wait()
	if plain != owners {
		t.Errorf("%d of %d owners worked", plain, owners)
	}
}

// covers L2
func lockBusy(t *testing.T, w LockWorld) {
	lockHold(t, w.node(0), "busy", func() {
		start := time.Now()
		err := w.node(1).Do(t.Context(), "busy", lockTTL, lockMustNotRun(t))
		waited := time.Since(start)
		if !errors.Is(err, domain.ErrBusy) {
			t.Errorf("error is %v, want ErrBusy", err)
		}
		if errors.Is(err, domain.ErrUnavailable) {
			t.Errorf("busy lock reads as unavailable: %v", err)
		}
		if waited < w.Wait/2 || waited > w.Wait+2*time.Second {
			t.Errorf("waited %v, want about %v", waited, w.Wait)
		}
	})
	lockMustBeFree(t, w, "busy")
}

// covers L2
func lockHandsOver(t *testing.T, w LockWorld) {
	// The release has to fall into the wait of the second owner, which a busy
	// machine may delay for too long; then once more.
	var err error
	for range 10 {
		asking := make(chan struct{})
		answer := make(chan error, 1)
		lockHold(t, w.node(0), "relay", func() {
			go func() {
				close(asking)
				answer <- w.node(1).Do(t.Context(), "relay", lockTTL, func(context.Context, domain.Lease) error { return nil })
			}()
			<-asking
			time.Sleep(w.Wait / 4)
			select {
			case err := <-answer:
				t.Fatalf("answer while the lock is held: %v", err)
			default:
			}
		})
		if err = <-answer; err == nil {
			return
		}
		if !errors.Is(err, domain.ErrBusy) {
			t.Fatal(err)
		}
	}
	t.Errorf("never got a lock that was released within the wait: %v", err)
}

// covers L7
func lockPerKey(t *testing.T, w LockWorld) {
	lockHold(t, w.node(0), "1001:2001", func() {
		ran := false
		err := w.node(1).Do(t.Context(), "1001:2002", lockTTL, func(context.Context, domain.Lease) error {
			ran = true
			return nil
		})
		if err != nil || !ran {
			t.Errorf("other key: ran %v, error %v", ran, err)
		}
	})
}

// covers L5
func lockFencesGrow(t *testing.T, w LockWorld) {
	last := map[string]int64{}
	for i := range 20 {
		key := []string{"a", "b"}[i/2%2]
		err := w.node(i).Do(t.Context(), key, lockTTL, func(_ context.Context, lease domain.Lease) error {
			if lease.Fence.Key != key {
				t.Errorf("fence is for key %q, want %q", lease.Fence.Key, key)
			}
			if lease.Fence.Number <= last[key] {
				t.Errorf("fence %d after %d", lease.Fence.Number, last[key])
			}
			last[key] = lease.Fence.Number
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// covers L5
func lockNeedsFence(t *testing.T, w LockWorld) {
	refused := fmt.Errorf("%w: on purpose", domain.ErrUnavailable)
	w.Fences.Refuse(refused)
	if err := w.node(0).Do(t.Context(), "fenceless", lockTTL, lockMustNotRun(t)); !errors.Is(err, refused) {
		t.Errorf("error is %v, want the one of the fences", err)
	}
	w.Fences.Refuse(nil)
	lockMustBeFree(t, w, "fenceless")

	// A ledger that hangs does not keep the lock for longer than a lease.
	w.Fences.Delay(time.Hour)
	start := time.Now()
	if err := w.node(0).Do(t.Context(), "fenceless", domain.MinLockTTL, lockMustNotRun(t)); err == nil {
		t.Error("no error without a fence")
	}
	if took := time.Since(start); took > 10*domain.MinLockTTL {
		t.Errorf("waited %v for a fence, with a lease of %v", took, domain.MinLockTTL)
	}
	w.Fences.Delay(0)
	lockMustBeFree(t, w, "fenceless")
}

// covers L1
func lockRefusesShortLease(t *testing.T, w LockWorld) {
	for _, ttl := range []time.Duration{-time.Second, 0, time.Microsecond, domain.MinLockTTL - 1} {
		err := w.node(0).Do(t.Context(), "short", ttl, lockMustNotRun(t))
		var field *domain.FieldError
		if !errors.As(err, &field) || field.Field != "lockTTL" {
			t.Errorf("ttl %v: error is %v, want one that names lockTTL", ttl, err)
		}
	}
	if err := w.node(0).Do(t.Context(), "short", domain.MinLockTTL, func(context.Context, domain.Lease) error { return nil }); err != nil {
		t.Errorf("ttl %v: %v", domain.MinLockTTL, err)
	}
}

// covers L3
func lockOutlivesLease(t *testing.T, w LockWorld) {
	const ttl = 2 * domain.MinLockTTL
	err := w.node(0).Do(t.Context(), "long", ttl, func(ctx context.Context, _ domain.Lease) error {
		for start := time.Now(); time.Since(start) < ttl*3/2; {
			err := w.node(1).Do(t.Context(), "long", ttl, lockMustNotRun(t))
			if !errors.Is(err, domain.ErrBusy) {
				t.Fatalf("%v into the work: error is %v, want ErrBusy", time.Since(start), err)
			}
		}
		return ctx.Err()
	})
	if err != nil {
		t.Errorf("lease did not last: %v", err)
	}
	lockMustBeFree(t, w, "long")
}

// covers L6
func lockReturnsError(t *testing.T, w LockWorld) {
	mine := errors.New("mine")
	if err := w.node(0).Do(t.Context(), "error", lockTTL, func(context.Context, domain.Lease) error { return mine }); err != mine {
		t.Errorf("error is %v, want fn's own", err)
	}
	lockMustBeFree(t, w, "error")
}

// covers L6
func lockPanics(t *testing.T, w LockWorld) {
	func() {
		defer func() {
			if got := recover(); got != "mine" {
				t.Errorf("recovered %v, want fn's own panic", got)
			}
		}()
		_ = w.node(0).Do(t.Context(), "panic", lockTTL, func(context.Context, domain.Lease) error { panic("mine") })
	}()
	lockMustBeFree(t, w, "panic")
}

// covers L6
func lockCancelled(t *testing.T, w LockWorld) {
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if err := w.node(0).Do(cancelled, "cancelled", lockTTL, lockMustNotRun(t)); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled before: error is %v", err)
	}

	lockHold(t, w.node(0), "cancelled", func() {
		waiting, cancel := context.WithTimeout(t.Context(), w.Wait/4)
		defer cancel()
		if err := w.node(1).Do(waiting, "cancelled", lockTTL, lockMustNotRun(t)); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("ended while waiting: error is %v", err)
		}
	})

	working, cancel := context.WithCancel(t.Context())
	defer cancel()
	err := w.node(0).Do(working, "cancelled", lockTTL, func(ctx context.Context, lease domain.Lease) error {
		cancel()
		lockAwait(t, ctx)
		// The lease lasts until the work has come to its end.
		if err := lease.Renew(t.Context()); err != nil {
			t.Errorf("renewal after the caller's end: %v", err)
		}
		return ctx.Err()
	})
	if !errors.Is(err, context.Canceled) || errors.Is(err, domain.ErrLeaseLost) {
		t.Errorf("cancelled at work: error is %v, want fn's own", err)
	}
	lockMustBeFree(t, w, "cancelled")
}

// covers L3
func lockRenews(t *testing.T, w LockWorld) {
	var kept domain.Lease
	var inner context.Context
	err := w.node(0).Do(t.Context(), "renew", lockTTL, func(ctx context.Context, lease domain.Lease) error {
		kept, inner = lease, ctx
		for range 3 {
			if err := lease.Renew(ctx); err != nil {
				return err
			}
		}
		return ctx.Err()
	})
	if err != nil {
		t.Errorf("renewal: %v", err)
	}
	if inner.Err() == nil {
		t.Error("the work's context outlives the lease")
	}
	// Another one's lease is not renewed by a lease of the past.
	lockHold(t, w.node(1), "renew", func() {
		if err := kept.Renew(t.Context()); !errors.Is(err, domain.ErrLeaseLost) {
			t.Errorf("renewal after the end: error is %v, want ErrLeaseLost", err)
		}
	})
}

// lockHold runs during while another goroutine holds the key.
func lockHold(t *testing.T, lock domain.Lock, key string, during func()) {
	t.Helper()
	held, release, done := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		done <- lock.Do(t.Context(), key, lockTTL, func(context.Context, domain.Lease) error {
			close(held)
			<-release
			return nil
		})
	}()
	select {
	case <-held:
	case err := <-done:
		t.Fatalf("hold %s: %v", key, err)
	}
	// Also when during ends the test.
	defer func() {
		close(release)
		if err := <-done; err != nil {
			t.Errorf("hold %s: %v", key, err)
		}
	}()
	during()
}

// lockPatiently comes back as long as the lock is busy.
func lockPatiently(ctx context.Context, lock domain.Lock, key string, fn func(context.Context, domain.Lease) error) error {
	for {
		err := lock.Do(ctx, key, lockTTL, fn)
		if !errors.Is(err, domain.ErrBusy) || ctx.Err() != nil {
			return err
		}
	}
}

// lockMustBeFree fails unless the first attempt gets the key: the lock was
// released and did not have to end by itself.
func lockMustBeFree(t *testing.T, w LockWorld, key string) {
	t.Helper()
	ran := false
	err := w.node(1).Do(t.Context(), key, lockTTL, func(context.Context, domain.Lease) error {
		ran = true
		return nil
	})
	if err != nil || !ran {
		t.Errorf("%s is not free: ran %v, error %v", key, ran, err)
	}
}

func lockMustNotRun(t *testing.T) func(context.Context, domain.Lease) error {
	return func(context.Context, domain.Lease) error {
		t.Error("the work ran")
		return nil
	}
}

func lockAwait(t *testing.T, ctx context.Context) {
	t.Helper()
	select {
	case <-ctx.Done():
	case <-time.After(lockPatience):
		t.Fatal("the work's context is not cancelled")
	}
}
