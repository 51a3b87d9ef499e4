package harness

import (
	"os"
	"os/exec"
	"time"
)

// What follows serves programs that measure, which have no test to end their
// servers: the caller closes what it started. Everything still dies with the
// process where the system can do that.

// StartRedis is Redis outside of a test.
func StartRedis(opts ...RedisOption) (*RedisServer, error) { return startRedis(opts...) }

// StartMariaDB is MariaDB outside of a test. Options of the server that are
// given here beat the harness's own.
func StartMariaDB(options ...string) (*SQLServer, error) { return startMariaDB(options...) }

// Close ends a server that was started outside of a test and removes its data.
func (s *Server) Close() error { return s.discard() }

// BuildSeckill is Seckill outside of a test. CleanUp removes the program.
func BuildSeckill() (string, error) { return buildSeckill() }

// CleanUp removes what outlives a single server. Call it before the process ends.
func CleanUp() { closeShared() }

// FreePort is FreeAddr outside of a test; call release when it is not needed
// any more.
func FreePort() (addr string, release func(), err error) {
	port, release, err := reservePort()
	return loopback(port), release, err
}

// Spawn is Start outside of a test. Everything the program says goes to output.
func Spawn(path string, args, env []string, output *os.File) (*Process, error) {
	cmd := exec.Command(path, args...)
	cmd.Env = append(os.Environ(), env...)
	cmd.Stdout, cmd.Stderr = output, output
	child, err := startChild(cmd)
	if err != nil {
		return nil, err
	}
	return &Process{PID: child.pid, child: child}, nil
}

// Await is WaitFor outside of a test.
func (p *Process) Await(url string, timeout time.Duration) error { return p.await(url, timeout) }

// Code waits for the program's end and returns its exit code; -1 if a signal
// ended it or it did not end in time.
func (p *Process) Code(timeout time.Duration) int {
	if !p.child.wait(timeout) {
		return -1
	}
	return p.child.cmd.ProcessState.ExitCode()
}

// End kills a program that Spawn started, and what it started itself.
func (p *Process) End() error { return p.child.kill() }
