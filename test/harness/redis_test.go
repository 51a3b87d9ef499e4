package harness

import (
	"context"
	"testing"
	"time"
)

func TestRedisSideBySide(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	one, two := Redis(t), Redis(t, WithRedisConfig("maxmemory", "64mb"))
	if one.Addr == two.Addr {
		t.Fatalf("both at %s", one.Addr)
	}
	if err := one.Client(t).Set(ctx, "key", "value", 0).Err(); err != nil {
		t.Fatal(err)
	}
	if n, err := two.Client(t).Exists(ctx, "key").Result(); err != nil || n != 0 {
		t.Fatalf("exists in the other one: %d, %v", n, err)
	}
	config, err := two.Client(t).ConfigGet(ctx, "maxmemory").Result()
	if err != nil || config["maxmemory"] != "67108864" {
		t.Fatalf("maxmemory %v, %v", config, err)
	}

	one.Stop()
	one.Restart()
	if value, err := one.Client(t).Get(ctx, "key").Result(); err != nil || value != "value" {
		t.Fatalf("after Restart: %q, %v", value, err)
	}
}

func TestSharedRedisIsOne(t *testing.T) {
	t.Parallel()
	if SharedRedis(t) != SharedRedis(t) {
		t.Fatal("two shared servers")
	}
}
