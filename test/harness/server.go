package harness

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

const (
	startTimeout = 60 * time.Second
	stopTimeout  = 60 * time.Second
)

var errInUse = errors.New("address in use")

// Server is what all servers have in common: their life. Its methods may be
// called from several goroutines; a method that cannot do its work fails the
// test.
type Server struct {
	name       string
	folder     *folder
	stopSignal syscall.Signal // asks for an orderly end without waiting for clients
	endSignal  syscall.Signal // the quickest end, when the data is thrown away
	command    func(port int) *exec.Cmd
	ping       func(ctx context.Context) error // also makes sure that it is this server that answers
	afterKill  func()                          // removes what a killed server leaves outside its folder

	mu      sync.Mutex
	tb      testing.TB // nil for a shared server
	port    int        // does not change once the server has started
	release func()
	child   *child
	pid     atomic.Int64 // of the child; read while another call holds the mutex
}

// PID is the process id of the running server, or of the last one that ran.
func (s *Server) PID() int { return int(s.pid.Load()) }

// Ping asks the server for a sign of life.
func (s *Server) Ping(ctx context.Context) error { return s.ping(ctx) }

// Stop ends the server in its orderly way and waits for the end.
func (s *Server) Stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.check("stop", s.stop())
}

// Kill ends the server at once (SIGKILL), as a crash would.
func (s *Server) Kill() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.check("kill", s.child.kill())
}

// Pause freezes the server: connections stay open, nothing is answered.
func (s *Server) Pause() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.check("pause", s.child.pause())
}

// Resume lets a paused server go on.
func (s *Server) Resume() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.check("resume", s.child.resume())
}

// Restart starts the server again on the same port and data, after stopping it
// if it still runs, and waits until it answers.
func (s *Server) Restart() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.check("restart", s.restart())
}

func (s *Server) check(what string, err error) {
	if err == nil {
		return
	}
	if s.tb == nil {
		panic(fmt.Sprintf("%s %s: %v", what, s.name, err))
	}
	s.tb.Helper()
	s.tb.Fatalf("%s %s: %v", what, s.name, err)
}

// boot starts the server for the first time, on a port of its own.
func (s *Server) boot() error {
	var err error
	for range 5 {
		if s.port, s.release, err = reservePort(); err != nil {
			return err
		}
		if err = s.start(); err == nil {
			return nil
		}
		s.release()
		if !errors.Is(err, errInUse) {
			return err
		}
	}
	return err
}

func (s *Server) stop() error {
	if s.child.ended() {
		return nil
	}
	// A paused server would not see the other signal.
	_ = s.child.resume()
	if err := s.child.signal(s.stopSignal); err != nil && !s.child.ended() {
		return err
	}
	if !s.child.wait(stopTimeout) {
		_ = s.child.kill()
		return fmt.Errorf("still running after %v\n%s", stopTimeout, s.logTail(0))
	}
	return nil
}

func (s *Server) restart() error {
	if err := s.stop(); err != nil {
		return err
	}
	deadline := time.Now().Add(30 * time.Second)
	for {
		err := s.start()
		if !errors.Is(err, errInUse) || time.Now().After(deadline) {
			return err
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// discard ends the server and removes all its traces.
func (s *Server) discard() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.child.ended() {
		_ = s.child.resume()
		_ = s.child.signal(s.endSignal)
		s.child.wait(10 * time.Second)
	}
	err := s.child.kill()
	if s.afterKill != nil {
		s.afterKill()
	}
	s.release()
	return errors.Join(err, s.folder.remove())
}

// start starts the program once and waits until it answers.
func (s *Server) start() error {
	log, err := os.OpenFile(s.logPath(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	info, err := log.Stat()
	if err != nil {
		return err
	}
	cmd := s.command(s.port)
	cmd.Stdout, cmd.Stderr = log, log
	if s.child, err = startChild(cmd); err != nil {
		return err
	}
	s.pid.Store(int64(s.child.pid))
	if err := s.awaitAnswer(); err != nil {
		_ = s.child.kill()
		tail := s.logTail(info.Size())
		if strings.Contains(strings.ToLower(tail), "address already in use") {
			err = errors.Join(errInUse, err)
		}
		return fmt.Errorf("start %s: %w\nend of its log:\n%s", s.name, err, tail)
	}
	return nil
}

func (s *Server) awaitAnswer() error {
	deadline := time.Now().Add(startTimeout)
	for {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		err := s.ping(ctx)
		cancel()
		if err == nil {
			return nil
		}
		if s.child.ended() {
			return fmt.Errorf("it ended: %v", s.child.cmd.ProcessState)
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("no answer after %v: %w", startTimeout, err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func (s *Server) logPath() string { return filepath.Join(s.folder.path, "log") }

// logTail is the end of the log, of what was written after the given offset.
func (s *Server) logTail(from int64) string {
	text, err := os.ReadFile(s.logPath())
	if err != nil {
		return err.Error()
	}
	return tail(string(text[min(from, int64(len(text))):]))
}

// tail keeps as much of a text's end as a test's failure should show.
func tail(text string) string {
	const keep = 8 << 10
	if len(text) <= keep {
		return text
	}
	return "...\n" + text[len(text)-keep:]
}

// adopt ties a started server to its test.
func (s *Server) adopt(t testing.TB) {
	s.tb = t
	t.Cleanup(func() {
		if err := s.discard(); err != nil {
			t.Errorf("remove %s: %v", s.name, err)
		}
	})
}
