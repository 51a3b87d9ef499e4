package redisstock_test

import (
	"context"
	"net"
	"strings"
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
	addrs := cluster(t)
	conformance.Stock(t, func(t *testing.T) conformance.StockWorld {
		return openAt(t, redisstock.ConnectConfig{Addrs: addrs}).conformance(t)
	})
}

// cluster starts three masters that share the slots.
func cluster(t *testing.T) []string {
	t.Helper()
	slots := [][2]int{{0, 5460}, {5461, 10922}, {10923, 16383}}
	var addrs, buses []string
	var nodes []*redis.Client
	for _, part := range slots {
		_, bus, err := net.SplitHostPort(harness.FreeAddr(t))
		must(t, err)
		server := harness.Redis(t, harness.WithRedisConfig("cluster-enabled", "yes"), harness.WithRedisConfig("cluster-port", bus))
		node := server.Client(t)
		must(t, node.ClusterAddSlotsRange(t.Context(), part[0], part[1]).Err())
		addrs, buses, nodes = append(addrs, server.Addr), append(buses, bus), append(nodes, node)
	}
	for i := range nodes[1:] {
		host, port, err := net.SplitHostPort(addrs[i+1])
		must(t, err)
		must(t, nodes[0].Do(t.Context(), "cluster", "meet", host, port, buses[i+1]).Err())
	}
	for _, node := range nodes {
		eventually(t, "the cluster is complete", func() bool {
			info, err := node.ClusterInfo(t.Context()).Result()
			return err == nil && strings.Contains(info, "cluster_state:ok") &&
				strings.Contains(info, "cluster_known_nodes:3") && strings.Contains(info, "cluster_slots_assigned:16384")
		})
	}
	return addrs
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
