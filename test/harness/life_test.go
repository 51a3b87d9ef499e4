package harness

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"
)

func TestMain(m *testing.M) { Main(m) }

// patience is for an answer that must come, however busy the machine is.
const patience = 30 * time.Second

func ping(s *Server, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	return s.Ping(ctx)
}

// life takes a server through everything a test may do to it.
func life(t *testing.T, s *Server) {
	t.Helper()
	if err := ping(s, patience); err != nil {
		t.Fatalf("ping: %v", err)
	}
	pid := s.PID()
	s.Kill()
	if alive(pid) {
		t.Fatal("still alive after Kill")
	}
	if ping(s, patience) == nil {
		t.Fatal("answers after Kill")
	}
	s.Restart()
	if s.PID() == pid {
		t.Fatal("same process after Restart")
	}
	s.Pause()
	if err := ping(s, time.Second); !timedOut(err) {
		t.Fatalf("ping while paused: %v, want a timeout", err)
	}
	s.Resume()
	if err := ping(s, patience); err != nil {
		t.Fatalf("ping after Resume: %v", err)
	}
	s.Stop()
	if ping(s, patience) == nil {
		t.Fatal("answers after Stop")
	}
	s.Restart()
	s.Pause()
	s.Restart() // of a server that runs, and is paused at that
	if err := ping(s, patience); err != nil {
		t.Fatalf("ping after Restart: %v", err)
	}
}

func timedOut(err error) bool {
	var timeout net.Error
	return errors.Is(err, context.DeadlineExceeded) || errors.As(err, &timeout) && timeout.Timeout()
}

func TestRedisLife(t *testing.T) {
	t.Parallel()
	life(t, &Redis(t).Server)
}

func TestMariaDBLife(t *testing.T) {
	t.Parallel()
	life(t, &MariaDB(t).Server)
}

func TestPostgresLife(t *testing.T) {
	t.Parallel()
	life(t, &Postgres(t).Server)
}

func TestPingDuringRestart(t *testing.T) {
	t.Parallel()
	server := Redis(t)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range 50 {
			_ = ping(&server.Server, patience)
			_ = server.PID()
		}
	}()
	server.Kill()
	server.Restart()
	<-done
}

func TestStartShowsTheLog(t *testing.T) {
	t.Parallel()
	Need(t, "redis-server")
	_, err := startRedis(WithRedisConfig("no-such-directive", "1"))
	if err == nil || !strings.Contains(err.Error(), "no-such-directive") {
		t.Fatalf("error %v does not show what the server said", err)
	}
}

func TestPortInUseIsNoticed(t *testing.T) {
	t.Parallel()
	Need(t, "redis-server")
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	if _, err := startRedis(WithRedisConfig("port", port)); !errors.Is(err, errInUse) {
		t.Fatalf("error %v, want %v", err, errInUse)
	}
}
