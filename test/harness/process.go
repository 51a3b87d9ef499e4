package harness

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"
)

// Process is a program started by a test. It is killed when the test ends, and
// a failed test shows the end of its output.
type Process struct {
	PID    int
	Stdout *Buffer
	Stderr *Buffer
	child  *child
}

// Start starts a program with arguments and with additions ("NAME=value") to
// the test's environment.
func Start(t testing.TB, path string, args []string, env []string) *Process {
	t.Helper()
	p := &Process{Stdout: &Buffer{}, Stderr: &Buffer{}}
	cmd := exec.Command(path, args...)
	cmd.Env = append(os.Environ(), env...)
	cmd.Stdout, cmd.Stderr = p.Stdout, p.Stderr
	var err error
	if p.child, err = startChild(cmd); err != nil {
		t.Fatalf("start %s: %v", path, err)
	}
	p.PID = p.child.pid
	t.Cleanup(func() {
		if err := p.child.kill(); err != nil {
			t.Errorf("kill %s: %v", path, err)
		}
		if t.Failed() {
			t.Logf("%s %q\n%s", path, args, p.output())
		}
	})
	return p
}

// Signal sends a signal to the program itself. One that has already ended is
// left alone.
func (p *Process) Signal(sig syscall.Signal) { _ = p.child.signal(sig) }

// Kill ends the program and everything it started at once, and waits for the
// end.
func (p *Process) Kill(t testing.TB) {
	t.Helper()
	if err := p.child.kill(); err != nil {
		t.Fatal(err)
	}
}

// Running reports whether the program has not ended yet.
func (p *Process) Running() bool { return !p.child.ended() }

// Wait waits for the program's end and returns its exit code, or -1 if a
// signal ended it. The test fails if the program does not end in time.
func (p *Process) Wait(t testing.TB, timeout time.Duration) int {
	t.Helper()
	if !p.child.wait(timeout) {
		t.Fatalf("process %d still runs after %v", p.PID, timeout)
	}
	return p.child.cmd.ProcessState.ExitCode()
}

// WaitFor waits until the URL, which the program is to serve, answers 200. The
// test fails if that takes too long or the program ends before.
func (p *Process) WaitFor(t testing.TB, url string, timeout time.Duration) {
	t.Helper()
	if err := p.await(url, timeout); err != nil {
		t.Fatal(err)
	}
}

func (p *Process) await(url string, timeout time.Duration) error {
	// Connections of its own: none may stay open to a program that a test
	// restarts.
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	deadline := time.Now().Add(timeout)
	for {
		err := get(client, url)
		if err == nil {
			return nil
		}
		if p.child.ended() {
			return fmt.Errorf("process %d ended (%v) before %s answered", p.PID, p.child.cmd.ProcessState, url)
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%s after %v: %w", url, timeout, err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func get(client *http.Client, url string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	_ = response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("status %s", response.Status)
	}
	return nil
}

func (p *Process) output() string {
	return "stdout:\n" + tail(p.Stdout.String()) + "\nstderr:\n" + tail(p.Stderr.String())
}
