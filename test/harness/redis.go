package harness

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/redis/go-redis/v9"
)

// RedisServer is a running Redis with its append-only file on.
type RedisServer struct {
	Server
	Addr string // host:port
}

// RedisOption changes how a Redis is started.
type RedisOption func(*redisConfig)

type redisConfig struct{ extra []string }

// WithRedisConfig sets one of Redis' configuration directives, for example
// WithRedisConfig("maxmemory", "64mb").
func WithRedisConfig(name string, values ...string) RedisOption {
	return func(c *redisConfig) {
		c.extra = append(append(c.extra, "--"+name), values...)
	}
}

// Redis starts a Redis of the test's own.
func Redis(t testing.TB, opts ...RedisOption) *RedisServer {
	t.Helper()
	Need(t, "redis-server")
	server, err := startRedis(opts...)
	if err != nil {
		t.Fatal(err)
	}
	server.adopt(t)
	return server
}

// Client returns a client of the server, closed when the test ends.
func (s *RedisServer) Client(t testing.TB) *redis.Client {
	client := redis.NewClient(&redis.Options{Addr: s.Addr, ContextTimeoutEnabled: true})
	t.Cleanup(func() { _ = client.Close() })
	return client
}

func startRedis(opts ...RedisOption) (*RedisServer, error) {
	program, err := Find("redis-server")
	if err != nil {
		return nil, err
	}
	var config redisConfig
	for _, opt := range opts {
		opt(&config)
	}
	place, err := newFolder()
	if err != nil {
		return nil, err
	}
	data := filepath.Join(place.path, "data")
	if err := os.Mkdir(data, 0o700); err != nil {
		return nil, err
	}
	server := &RedisServer{Server: Server{
		name:       "Redis",
		folder:     place,
		stopSignal: syscall.SIGTERM,
		endSignal:  syscall.SIGKILL,
		command: func(port int) *exec.Cmd {
			cmd := exec.Command(program, append([]string{
				"--port", strconv.Itoa(port),
				"--bind", "127.0.0.1",
				"--dir", data,
				"--appendonly", "yes",
				"--appendfsync", "everysec",
				"--save", "",
			}, config.extra...)...)
			cmd.Dir, cmd.Env = place.path, serverEnv(place.path)
			return cmd
		},
	}}
	server.ping = server.pingRedis
	if err := server.boot(); err != nil {
		_ = place.remove()
		return nil, err
	}
	server.Addr = loopback(server.port)
	return server, nil
}

// pingRedis speaks the protocol itself: a client would log every connection
// that a starting or stopped server refuses.
func (s *RedisServer) pingRedis(ctx context.Context) error {
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "tcp", loopback(s.port))
	if err != nil {
		return err
	}
	defer conn.Close()
	if deadline, ok := ctx.Deadline(); ok {
		_ = conn.SetDeadline(deadline)
	}
	if _, err := conn.Write([]byte("PING\r\nINFO server\r\nQUIT\r\n")); err != nil {
		return err
	}
	answer, err := io.ReadAll(io.LimitReader(conn, 64<<10))
	if err != nil {
		return err
	}
	if !strings.HasPrefix(string(answer), "+PONG\r\n") {
		return fmt.Errorf("answer to PING: %.100q", answer)
	}
	if !strings.Contains(string(answer), fmt.Sprintf("process_id:%d\r\n", s.PID())) {
		return fmt.Errorf("another Redis answers on port %d", s.port)
	}
	return nil
}

// AppendOnlyFile is the file that the server writes its commands to; it may be
// changed while the server is down.
func (s *RedisServer) AppendOnlyFile(t testing.TB) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(s.folder.path, "data", "appendonlydir", "*.incr.aof"))
	if err != nil || len(files) == 0 {
		t.Fatalf("append-only files: %v, %v", files, err)
	}
	return files[len(files)-1]
}
