package harness

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// child is a started program. It leads its own process group and dies with the
// test process where the system can do that.
type child struct {
	cmd  *exec.Cmd
	pid  int
	done chan struct{} // closed once the program has ended and was waited for
}

func startChild(cmd *exec.Cmd) (*child, error) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setpgid = true
	// A grandchild that keeps the output open must not hold up the wait.
	cmd.WaitDelay = 5 * time.Second
	if err := startTied(cmd); err != nil {
		return nil, err
	}
	c := &child{cmd: cmd, pid: cmd.Process.Pid, done: make(chan struct{})}
	go func() {
		_ = cmd.Wait()
		close(c.done)
	}()
	return c, nil
}

func (c *child) ended() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

func (c *child) wait(timeout time.Duration) bool {
	select {
	case <-c.done:
		return true
	case <-time.After(timeout):
		return c.ended()
	}
}

// signal reaches the program itself.
func (c *child) signal(sig syscall.Signal) error { return c.cmd.Process.Signal(sig) }

// pause freezes the program and everything below it. The program comes first,
// so that it starts nothing new in between. PostgreSQL's processes each lead a
// group of their own, so a signal to one group would miss them.
func (c *child) pause() error {
	if err := c.signal(syscall.SIGSTOP); err != nil {
		return err
	}
	for _, pid := range descendants(c.pid) {
		_ = syscall.Kill(pid, syscall.SIGSTOP)
	}
	return nil
}

func (c *child) resume() error {
	for _, pid := range descendants(c.pid) {
		_ = syscall.Kill(pid, syscall.SIGCONT)
	}
	return c.signal(syscall.SIGCONT)
}

// kill ends the program and everything below it at once, and returns when all
// of it is gone.
func (c *child) kill() error {
	if c.ended() {
		return nil
	}
	_ = c.signal(syscall.SIGSTOP)
	below := descendants(c.pid)
	for _, pid := range below {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	_ = c.signal(syscall.SIGKILL)
	if !c.wait(30 * time.Second) {
		return fmt.Errorf("process %d does not die", c.pid)
	}
	deadline := time.Now().Add(30 * time.Second)
	for _, pid := range below {
		for alive(pid) {
			if time.Now().After(deadline) {
				return fmt.Errorf("process %d does not die", pid)
			}
			time.Sleep(5 * time.Millisecond)
		}
	}
	return nil
}

// run runs a program to its end and returns an error with its output when it
// fails or takes too long.
func run(cmd *exec.Cmd, timeout time.Duration) error {
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	c, err := startChild(cmd)
	if err != nil {
		return err
	}
	if !c.wait(timeout) {
		_ = c.kill()
		return fmt.Errorf("%s took longer than %v", cmd.Path, timeout)
	}
	if !cmd.ProcessState.Success() {
		return fmt.Errorf("%s: %v\n%s", cmd.Path, cmd.ProcessState, output.String())
	}
	return nil
}

// serverEnv is a small environment, the same for everybody: English messages
// and no settings of the user's own servers.
func serverEnv(dir string) []string {
	env := []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C", "HOME=" + dir, "TMPDIR=" + dir}
	return append(env, clockEnv(dir)...)
}

// below lists everything under pid in a table of parents and their children.
func below(children map[int][]int, pid int) []int {
	var all []int
	for _, id := range children[pid] {
		all = append(append(all, id), below(children, id)...)
	}
	return all
}
