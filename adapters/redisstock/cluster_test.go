package redisstock_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"seckill/adapters/redisstock"
	"seckill/test/conformance"
	"seckill/test/harness"
)

// covers S10
func TestStockConformanceOnACluster(t *testing.T) {
	if testing.Short() {
		t.Skip("starts three servers")
	}
	addrs := harness.RedisCluster(t)
	conformance.Stock(t, func(t *testing.T) conformance.StockWorld {
		return openAt(t, redisstock.ConnectConfig{Addrs: addrs}).conformance(t)
	})
}

func clusterMasters(t testing.TB, client *redis.ClusterClient) []*redis.Client {
	t.Helper()
	var mu sync.Mutex
	var masters []*redis.Client
	must(t, client.ForEachMaster(t.Context(), func(_ context.Context, master *redis.Client) error {
		mu.Lock()
		defer mu.Unlock()
		masters = append(masters, master)
		return nil
	}))
	return masters
}

// eventually waits for a condition, and fails when it does not come.
func eventually(t testing.TB, what string, condition func() bool) {
	t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for !condition() {
		if time.Now().After(deadline) {
			t.Fatalf("waited too long: %s", what)
		}
		time.Sleep(10 * time.Millisecond)
	}
}
