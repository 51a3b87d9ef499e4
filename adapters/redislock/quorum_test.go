package redislock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"seckill/adapters/redislock"
	"seckill/domain"
	"seckill/test/conformance"
	"seckill/test/harness"
)

// servers starts independent servers.
func servers(t *testing.T, n int) (list []*harness.RedisServer) {
	for range n {
		list = append(list, harness.Redis(t))
	}
	return list
}

func clients(t *testing.T, list []*harness.RedisServer) (clients []redis.UniversalClient) {
	for _, server := range list {
		clients = append(clients, server.Client(t))
	}
	return clients
}

// covers L8
func TestQuorum(t *testing.T) {
	list := servers(t, 3)
	conformance.Lock(t, func(t *testing.T) conformance.LockWorld {
		fences := conformance.NewLockFences()
		config := redislock.Config{Prefix: prefix(), Fences: fences}
		world := conformance.LockWorld{Wait: redislock.DefaultWait, Fences: fences}
		for range 3 {
			config.Quorum = clients(t, list)
			world.Nodes = append(world.Nodes, redislock.New(config))
		}
		return world
	})
}

// The lock goes on with one server down, before it or in the middle, and loses
// the lease in time with two.
// covers L8, L4
func TestQuorumSurvivesAMinority(t *testing.T) {
	const ttl = 1500 * time.Millisecond
	list := servers(t, 3)
	lock := redislock.New(redislock.Config{
		Quorum: clients(t, list), Prefix: prefix(), Fences: conformance.NewLockFences(), Wait: 5 * time.Second,
	})
	err := lock.Do(t.Context(), "sale", ttl, func(ctx context.Context, lease domain.Lease) error {
		list[0].Kill()
		return errors.Join(lease.Renew(ctx), ctx.Err())
	})
	if err != nil {
		t.Fatalf("a server went down under the lock: %v", err)
	}
	if err := lock.Do(t.Context(), "sale", ttl, func(context.Context, domain.Lease) error { return nil }); err != nil {
		t.Fatalf("a server is down: %v", err)
	}
	err = lock.Do(t.Context(), "sale", ttl, func(ctx context.Context, _ domain.Lease) error {
		start := time.Now()
		list[1].Kill()
		await(t, ctx)
		if took := time.Since(start); took > ttl {
			t.Errorf("cancelled after %v of %v", took, ttl)
		}
		return nil
	})
	if !errors.Is(err, domain.ErrLeaseLost) {
		t.Errorf("two servers are down: %v", err)
	}
	err = lock.Do(t.Context(), "sale", ttl, func(context.Context, domain.Lease) error { return nil })
	if !errors.Is(err, domain.ErrUnavailable) {
		t.Errorf("two servers are down: %v", err)
	}
}

// Who got a minority only gives it back, and is told that the lock is busy.
func TestQuorumNeedsTheMajority(t *testing.T) {
	list := servers(t, 3)
	mark := prefix()
	lock := redislock.New(redislock.Config{Quorum: clients(t, list), Prefix: mark, Fences: conformance.NewLockFences()})
	key := mark + "lock:{sale}"
	for _, server := range list[:2] {
		if err := server.Client(t).Set(t.Context(), key, "somebody else", 0).Err(); err != nil {
			t.Fatal(err)
		}
	}
	err := lock.Do(t.Context(), "sale", time.Second, func(context.Context, domain.Lease) error {
		t.Error("worked with a minority")
		return nil
	})
	if !errors.Is(err, domain.ErrBusy) {
		t.Errorf("error is %v, want ErrBusy", err)
	}
	if n := list[2].Client(t).Exists(t.Context(), key).Val(); n != 0 {
		t.Error("the minority was not given back")
	}
}
