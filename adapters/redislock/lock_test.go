package redislock_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
	"go.uber.org/goleak"

	"seckill/adapters/redislock"
	"seckill/domain"
	"seckill/test/conformance"
	"seckill/test/harness"
)

func TestMain(m *testing.M) {
	logging.Disable() // tests stop servers on purpose
	harness.Main(m)
}

// patience bounds everything that has to happen sooner or later.
const patience = 30 * time.Second

// covers L1 L2 L3 L5 L6 L7
func TestLock(t *testing.T) {
	conformance.Lock(t, func(t *testing.T) conformance.LockWorld {
		server := harness.SharedRedis(t)
		fences := conformance.NewLockFences()
		config := redislock.Config{Prefix: prefix(), Fences: fences}
		world := conformance.LockWorld{Wait: redislock.DefaultWait, Fences: fences}
		for range 3 {
			config.Client = server.Client(t)
			world.Nodes = append(world.Nodes, redislock.New(config))
		}
		return world
	})
}

// A key that is deleted, taken or expired is lost with the next renewal, long
// before the deadline. covers L4
func TestStolenLeaseCancelsWork(t *testing.T) {
	const ttl = 3 * time.Second
	thefts := map[string]func(ctx context.Context, client *redis.Client, key string) error{
		"deleted": func(ctx context.Context, client *redis.Client, key string) error { return client.Del(ctx, key).Err() },
		"taken": func(ctx context.Context, client *redis.Client, key string) error {
			return client.Set(ctx, key, "somebody else", 0).Err()
		},
		"expired": func(ctx context.Context, client *redis.Client, key string) error {
			return client.PExpire(ctx, key, time.Millisecond).Err()
		},
	}
	for name, theft := range thefts {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			lock, client, key := newLock(t, redislock.Config{})
			err := lock.Do(t.Context(), "sale", ttl, func(ctx context.Context, _ domain.Lease) error {
				start := time.Now()
				if err := theft(t.Context(), client, key); err != nil {
					t.Fatal(err)
				}
				await(t, ctx)
				// The next renewal is due after a third, the deadline after four fifths.
				if took := time.Since(start); took > ttl*2/3 {
					t.Errorf("cancelled after %v: the renewal did not do it", took)
				}
				if cause := context.Cause(ctx); !errors.Is(cause, domain.ErrLeaseLost) {
					t.Errorf("cause is %v, want ErrLeaseLost", cause)
				}
				return nil
			})
			if !errors.Is(err, domain.ErrLeaseLost) {
				t.Errorf("error is %v, want ErrLeaseLost", err)
			}
			if errors.Is(err, domain.ErrLockNotHeld) || errors.Is(err, domain.ErrUnavailable) {
				t.Errorf("more than the loss is reported: %v", err)
			}
		})
	}
}

// covers L3 L4
func TestRenewalByHandFindsTheLeaseLost(t *testing.T) {
	lock, client, key := newLock(t, redislock.Config{})
	mine := errors.New("mine")
	err := lock.Do(t.Context(), "sale", time.Minute, func(ctx context.Context, lease domain.Lease) error {
		client.Del(t.Context(), key)
		if err := lease.Renew(ctx); !errors.Is(err, domain.ErrLeaseLost) {
			t.Errorf("renewal: error is %v, want ErrLeaseLost", err)
		}
		if ctx.Err() == nil {
			t.Error("the work goes on")
		}
		return mine
	})
	if !errors.Is(err, domain.ErrLeaseLost) || !errors.Is(err, mine) {
		t.Errorf("error is %v, want ErrLeaseLost and fn's own", err)
	}
	if n := client.Exists(t.Context(), key).Val(); n != 0 {
		t.Error("the renewal brought the key back")
	}
}

// A renewal by hand moves both ends: the one in Redis and the deadline. covers L3
func TestRenewalByHandExtends(t *testing.T) {
	const ttl = time.Minute
	lock, client, key := newLock(t, redislock.Config{})
	err := lock.Do(t.Context(), "sale", ttl, func(ctx context.Context, lease domain.Lease) error {
		client.PExpire(t.Context(), key, ttl/2)
		if err := lease.Renew(ctx); err != nil {
			return err
		}
		if left := client.PTTL(t.Context(), key).Val(); left <= ttl/2 {
			t.Errorf("%v left in Redis after the renewal, want %v", left, ttl)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// Redis hangs right after it was heard for the last time: the work is cancelled
// before the lease of that moment can have run out in Redis. covers L4
func TestHangingRedisCancelsWorkInTime(t *testing.T) {
	const ttl = 3 * time.Second
	for _, c := range []struct {
		name     string
		renewed  bool // the last word was a renewal
		obedient bool // the client gives up a call whose context has ended
	}{
		{"after obtaining", false, true},
		{"after a renewal", true, true},
		{"with a client that hangs in the renewal", true, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			server := harness.Redis(t)
			client := redis.NewClient(&redis.Options{
				Addr:                  server.Addr,
				ContextTimeoutEnabled: c.obedient,
				ReadTimeout:           patience,
				MaxRetries:            -1,
			})
			t.Cleanup(func() { _ = client.Close() })
			lock := redislock.New(redislock.Config{Client: client, Fences: conformance.NewLockFences()})

			heard := time.Now()
			err := lock.Do(t.Context(), "sale", ttl, func(ctx context.Context, lease domain.Lease) error {
				defer server.Resume()
				if c.renewed {
					heard = time.Now()
					if err := lease.Renew(ctx); err != nil {
						t.Fatal(err)
					}
				}
				server.Pause()
				await(t, ctx)
				took := time.Since(heard)
				t.Logf("cancelled after %v of %v", took, ttl)
				if took >= ttl {
					t.Error("the lease may have ended before")
				}
				if took < ttl/2 {
					t.Error("one renewal without an answer is no loss")
				}
				if cause := context.Cause(ctx); !errors.Is(cause, domain.ErrLeaseLost) {
					t.Errorf("cause is %v, want ErrLeaseLost", cause)
				}
				server.Resume()
				if err := lease.Renew(t.Context()); !errors.Is(err, domain.ErrLeaseLost) {
					t.Errorf("renewal of a lost lease: error is %v, want ErrLeaseLost", err)
				}
				return nil
			})
			if !errors.Is(err, domain.ErrLeaseLost) {
				t.Errorf("error is %v, want ErrLeaseLost", err)
			}
		})
	}
}

// A short failure of Redis within a lease costs nothing. covers L3
func TestLeaseSurvivesRestart(t *testing.T) {
	const ttl = 6 * time.Second
	server := harness.Redis(t, harness.WithRedisConfig("appendfsync", "always"))
	lock := redislock.New(redislock.Config{Client: server.Client(t), Fences: conformance.NewLockFences()})
	err := lock.Do(t.Context(), "sale", ttl, func(ctx context.Context, lease domain.Lease) error {
		start := time.Now()
		server.Restart()
		for time.Since(start) < ttl {
			select {
			case <-ctx.Done():
				return context.Cause(ctx)
			case <-time.After(10 * time.Millisecond):
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// covers L2 L4
func TestHangingRedisIsNotBusy(t *testing.T) {
	server := harness.Redis(t)
	const wait = 300 * time.Millisecond
	lock := redislock.New(redislock.Config{Client: server.Client(t), Fences: conformance.NewLockFences(), Wait: wait})
	server.Pause()
	start := time.Now()
	err := lock.Do(t.Context(), "sale", time.Second, func(context.Context, domain.Lease) error {
		t.Error("the work ran")
		return nil
	})
	if !errors.Is(err, domain.ErrUnavailable) || errors.Is(err, domain.ErrBusy) {
		t.Errorf("error is %v, want ErrUnavailable", err)
	}
	if took := time.Since(start); took > wait+2*time.Second {
		t.Errorf("took %v, want about %v", took, wait)
	}
}

// covers L6
func TestReleaseWithoutAnswer(t *testing.T) {
	server := harness.Redis(t)
	lock := redislock.New(redislock.Config{Client: server.Client(t), Fences: conformance.NewLockFences()})
	mine := errors.New("mine")
	start := time.Now()
	err := lock.Do(t.Context(), "sale", time.Minute, func(context.Context, domain.Lease) error {
		server.Pause()
		return mine
	})
	if took := time.Since(start); took > 10*time.Second {
		t.Errorf("release took %v", took)
	}
	if !errors.Is(err, mine) || !errors.Is(err, domain.ErrUnavailable) {
		t.Errorf("error is %v, want fn's own and ErrUnavailable", err)
	}
	if errors.Is(err, domain.ErrLockNotHeld) || errors.Is(err, domain.ErrLeaseLost) {
		t.Errorf("an unknown outcome reads as a known one: %v", err)
	}
}

// covers L1 L6
func TestReleaseOfALockThatIsNotHeld(t *testing.T) {
	mine := errors.New("mine")
	for name, want := range map[string]error{"fn fails": mine, "fn succeeds": nil} {
		t.Run(name, func(t *testing.T) {
			lock, client, key := newLock(t, redislock.Config{})
			err := lock.Do(t.Context(), "sale", time.Minute, func(context.Context, domain.Lease) error {
				client.Set(t.Context(), key, "somebody else", 0)
				return want
			})
			if !errors.Is(err, domain.ErrLockNotHeld) || want != nil && !errors.Is(err, want) {
				t.Errorf("error is %v, want ErrLockNotHeld and fn's %v", err, want)
			}
			if errors.Is(err, domain.ErrLeaseLost) || errors.Is(err, domain.ErrUnavailable) {
				t.Errorf("more than the release is reported: %v", err)
			}
			if value := client.Get(t.Context(), key).Val(); value != "somebody else" {
				t.Errorf("another owner's lock is now %q", value)
			}
		})
	}
}

// Tokens are random: no two leases have the same. The key always has an
// expiry. covers L1
func TestTokenAndExpiry(t *testing.T) {
	lock, client, key := newLock(t, redislock.Config{})
	seen := map[string]bool{}
	for range 20 {
		err := lock.Do(t.Context(), "sale", time.Minute, func(ctx context.Context, _ domain.Lease) error {
			token := client.Get(ctx, key).Val()
			if len(token) < 20 || seen[token] {
				t.Errorf("token %q", token)
			}
			seen[token] = true
			if left := client.PTTL(ctx, key).Val(); left <= 0 || left > time.Minute {
				t.Errorf("%v left of a minute", left)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// covers L6
func TestRenewalRacesRelease(t *testing.T) {
	lock, client, key := newLock(t, redislock.Config{})
	for range 50 {
		var renewing sync.WaitGroup
		err := lock.Do(t.Context(), "sale", time.Minute, func(_ context.Context, lease domain.Lease) error {
			var started sync.WaitGroup
			for range 4 {
				started.Add(1)
				renewing.Go(func() {
					started.Done()
					for range 1000 {
						if err := lease.Renew(context.Background()); err != nil {
							if !errors.Is(err, domain.ErrLeaseLost) {
								t.Errorf("renewal: %v", err)
							}
							return
						}
					}
				})
			}
			started.Wait()
			return nil
		})
		if err != nil {
			t.Fatalf("a renewal of the past became an error: %v", err)
		}
		renewing.Wait()
		if client.Exists(t.Context(), key).Val() != 0 {
			t.Fatal("a renewal brought a released lock back")
		}
	}
}

// A lease whose release was lost on the way ends by itself: whoever kept it
// cannot prolong it. covers L3 L6
func TestRenewalAfterTheEnd(t *testing.T) {
	lock, client, key := newLock(t, redislock.Config{})
	var kept domain.Lease
	var token string
	err := lock.Do(t.Context(), "sale", time.Minute, func(ctx context.Context, lease domain.Lease) error {
		kept, token = lease, client.Get(ctx, key).Val()
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	client.Set(t.Context(), key, token, time.Second)
	if err := kept.Renew(t.Context()); !errors.Is(err, domain.ErrLeaseLost) {
		t.Errorf("error is %v, want ErrLeaseLost", err)
	}
	if left := client.PTTL(t.Context(), key).Val(); left > time.Second {
		t.Errorf("%v left of a second: prolonged", left)
	}
}

// The watchdog is gone when Do returns. covers L6
func TestNothingRunsOn(t *testing.T) {
	lock, client, key := newLock(t, redislock.Config{})
	client.Ping(t.Context())
	before := goleak.IgnoreCurrent()
	for _, steal := range []bool{false, true} {
		err := lock.Do(t.Context(), "sale", time.Minute, func(ctx context.Context, lease domain.Lease) error {
			if steal {
				client.Del(ctx, key)
				_ = lease.Renew(ctx)
			}
			return nil
		})
		if steal != errors.Is(err, domain.ErrLeaseLost) {
			t.Error(err)
		}
		goleak.VerifyNone(t, before)
	}
}

// A lease that is lost while its fence is minted: the work does not start, even
// if the ledger answers all the same. covers L4 L5
func TestLeaseLostWhileMinting(t *testing.T) {
	var fences stubbornFences
	lock, client, key := newLock(t, redislock.Config{Fences: &fences})
	fences.before = func() { client.Del(context.Background(), key) }
	err := lock.Do(t.Context(), "sale", time.Second, func(context.Context, domain.Lease) error {
		t.Error("the work ran")
		return nil
	})
	if !errors.Is(err, domain.ErrLeaseLost) {
		t.Errorf("error is %v, want ErrLeaseLost", err)
	}
}

// stubbornFences answers only once nobody waits for it any more.
type stubbornFences struct{ before func() }

func (f *stubbornFences) NextFence(ctx context.Context, _ string) (int64, error) {
	f.before()
	<-ctx.Done()
	return 1, nil
}

// covers L4
func TestMarginBoundsTheLease(t *testing.T) {
	lock, _, _ := newLock(t, redislock.Config{Margin: time.Second})
	err := lock.Do(t.Context(), "sale", 2*time.Second, func(context.Context, domain.Lease) error { return nil })
	if !errors.Is(err, domain.ErrInvalid) {
		t.Errorf("error is %v, want ErrInvalid for a lease under three margins", err)
	}
	if err := lock.Do(t.Context(), "sale", 3*time.Second, func(context.Context, domain.Lease) error { return nil }); err != nil {
		t.Error(err)
	}
}

// covers L9
func TestObserverHearsTimes(t *testing.T) {
	var asked []error
	var waits, held []time.Duration
	lock, client, key := newLock(t, redislock.Config{Observer: redislock.Observer{
		Asked: func(wait time.Duration, err error) { waits, asked = append(waits, wait), append(asked, err) },
		Held:  func(hold time.Duration) { held = append(held, hold) },
	}})
	const work = 50 * time.Millisecond
	if err := lock.Do(t.Context(), "sale", time.Second, func(context.Context, domain.Lease) error {
		time.Sleep(work)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	client.Set(t.Context(), key, "somebody else", 0)
	if err := lock.Do(t.Context(), "sale", time.Second, nil); !errors.Is(err, domain.ErrBusy) {
		t.Fatal(err)
	}
	if len(asked) != 2 || asked[0] != nil || !errors.Is(asked[1], domain.ErrBusy) {
		t.Errorf("asked: %v, want one success and one ErrBusy", asked)
	}
	if len(waits) == 2 && waits[1] < redislock.DefaultWait/2 {
		t.Errorf("waited %v for a busy lock", waits[1])
	}
	if len(held) != 1 || held[0] < work {
		t.Errorf("held: %v, want one of at least %v", held, work)
	}
}

// The panic of fn comes through, and a release that fails then is logged. covers L6
func TestPanicWithFailedRelease(t *testing.T) {
	var log bytes.Buffer
	lock, client, key := newLock(t, redislock.Config{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	func() {
		defer func() {
			if got := recover(); got != "mine" {
				t.Errorf("recovered %v", got)
			}
		}()
		_ = lock.Do(t.Context(), "sale", time.Minute, func(ctx context.Context, _ domain.Lease) error {
			client.Del(ctx, key)
			panic("mine")
		})
	}()
	if !strings.Contains(log.String(), domain.ErrLockNotHeld.Error()) {
		t.Errorf("log: %q", log.String())
	}
}

// newLock makes a lock on the shared Redis with a prefix of its own, and tells
// the Redis key of the lock "sale".
func newLock(t *testing.T, config redislock.Config) (*redislock.Lock, *redis.Client, string) {
	t.Helper()
	client := harness.SharedRedis(t).Client(t)
	config.Client, config.Prefix = client, prefix()
	if config.Fences == nil {
		config.Fences = conformance.NewLockFences()
	}
	return redislock.New(config), client, config.Prefix + "lock:{sale}"
}

func prefix() string { return "test-" + rand.Text() + ":" }

func await(t *testing.T, ctx context.Context) {
	t.Helper()
	select {
	case <-ctx.Done():
	case <-time.After(patience):
		t.Fatal("the work's context is not cancelled")
	}
}
