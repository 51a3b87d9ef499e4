package harness

import (
	"net"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// clusterWait bounds how long the nodes of a cluster may take to know each other.
const clusterWait = 30 * time.Second

// RedisCluster starts a cluster of the test's own, three masters that share the
// slots, and returns their addresses.
func RedisCluster(t testing.TB) (addrs []string) {
	t.Helper()
	for _, server := range RedisClusterServers(t) {
		addrs = append(addrs, server.Addr)
	}
	return addrs
}

// RedisClusterServers is RedisCluster for a test that harms its servers.
func RedisClusterServers(t testing.TB) (servers []*RedisServer) {
	t.Helper()
	slots := [][2]int{{0, 5460}, {5461, 10922}, {10923, 16383}}
	var addrs, buses []string
	var nodes []*redis.Client
	for _, part := range slots {
		_, bus, err := net.SplitHostPort(FreeAddr(t))
		if err != nil {
			t.Fatal(err)
		}
		server := Redis(t, WithRedisConfig("cluster-enabled", "yes"), WithRedisConfig("cluster-port", bus))
		node := server.Client(t)
		if err := node.ClusterAddSlotsRange(t.Context(), part[0], part[1]).Err(); err != nil {
			t.Fatal(err)
		}
		servers, addrs, buses, nodes = append(servers, server), append(addrs, server.Addr), append(buses, bus), append(nodes, node)
	}
	for i := range nodes[1:] {
		host, port, err := net.SplitHostPort(addrs[i+1])
		if err != nil {
			t.Fatal(err)
		}
		if err := nodes[0].Do(t.Context(), "cluster", "meet", host, port, buses[i+1]).Err(); err != nil {
			t.Fatal(err)
		}
	}
	for _, node := range nodes {
		waitForCluster(t, node)
	}
	return servers
}

func waitForCluster(t testing.TB, node *redis.Client) {
	t.Helper()
	for deadline := time.Now().Add(clusterWait); ; time.Sleep(10 * time.Millisecond) {
		info, err := node.ClusterInfo(t.Context()).Result()
		if err == nil && strings.Contains(info, "cluster_state:ok") &&
			strings.Contains(info, "cluster_known_nodes:3") && strings.Contains(info, "cluster_slots_assigned:16384") {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("the cluster is not complete after %s: %s (%v)", clusterWait, info, err)
		}
	}
}
