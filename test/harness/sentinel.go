package harness

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"github.com/redis/go-redis/v9"
)

// RedisReplica starts a Redis that copies another one, by the address of that one
// or of a proxy in front of it.
func RedisReplica(t testing.TB, master string) *RedisServer {
	t.Helper()
	host, port, err := net.SplitHostPort(master)
	if err != nil {
		t.Fatal(err)
	}
	return Redis(t, WithRedisConfig("replicaof", host, port), WithRedisConfig("repl-diskless-sync-delay", "0"))
}

// Sentinel starts one Sentinel that watches a master under a name and is enough to
// decide. It finds the replicas by itself.
func Sentinel(t testing.TB, name string, master *RedisServer) *RedisServer {
	t.Helper()
	program := Need(t, "redis-server")
	place, err := newFolder()
	if err != nil {
		t.Fatal(err)
	}
	host, port, err := net.SplitHostPort(master.Addr)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(place.path, "sentinel.conf") // it writes there what it learns
	text := fmt.Sprintf("sentinel monitor %[1]s %[2]s %[3]s 1\nsentinel down-after-milliseconds %[1]s 1000\nsentinel failover-timeout %[1]s 3000\n", name, host, port)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	sentinel := &RedisServer{Server: Server{
		name: "Sentinel", folder: place, stopSignal: syscall.SIGTERM, endSignal: syscall.SIGKILL,
		command: func(port int) *exec.Cmd {
			cmd := exec.Command(program, file, "--sentinel", "--port", strconv.Itoa(port), "--bind", "127.0.0.1")
			cmd.Dir, cmd.Env = place.path, serverEnv(place.path)
			return cmd
		},
	}}
	// It does not know QUIT, as the other way to ask needs.
	sentinel.ping = func(ctx context.Context) error {
		client := redis.NewClient(&redis.Options{Addr: loopback(sentinel.port), MaxRetries: -1})
		defer client.Close()
		return client.Ping(ctx).Err()
	}
	if err := sentinel.boot(); err != nil {
		_ = place.remove()
		t.Fatal(err)
	}
	sentinel.Addr = loopback(sentinel.port)
	sentinel.adopt(t)
	return sentinel
}
