package fault

import (
	"errors"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"seckill/application"
	"seckill/bootstrap"
	"seckill/test/harness"
	"seckill/test/history"
)

const diskVariable = "SECKILL_TEST_DISK"

// The disk under the SQLite file is full for a while: grabs are refused without an
// outcome, nothing is half done, and with space again all goes on. A limit on the
// size of files stands in for the disk; it is a whole process's, so another one
// has it.
// covers N6 Q5
func TestDiskIsFull(t *testing.T) {
	t.Parallel()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	process := harness.Start(t, path, []string{"-test.run=^TestDiskChild$", "-test.v", "-test.timeout=2m"}, []string{diskVariable + "=1"})
	code := process.Wait(t, 2*patience)
	if out := process.Stdout.String(); code != 0 || !strings.Contains(out, "--- PASS: TestDiskChild") {
		t.Errorf("exit code %d", code)
	}
}

// TestDiskChild is no test: it is the process of TestDiskIsFull.
func TestDiskChild(t *testing.T) {
	if os.Getenv(diskVariable) == "" {
		t.Skip("only for TestDiskIsFull")
	}
	signal.Ignore(syscall.SIGXFSZ) // a write beyond the limit fails instead
	r := newRig(t, setup{hot: "memory", ledger: "sqlite", change: func(c *bootstrap.Config) {
		c.Accept, c.AcceptWait = application.AcceptCommitted, time.Second
	}})
	crowd := r.storm(r.sell(3000, 1), "c", 2000, 20, 1, 5*time.Millisecond)
	crowd.reach(100)
	var before syscall.Rlimit
	r.must(syscall.Getrlimit(syscall.RLIMIT_FSIZE, &before))
	r.must(syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: 4096, Max: before.Max}))
	r.eventually("refusals", func() error {
		if r.history.Count(history.Grab, history.Unknown) == 0 {
			return errors.New("none yet")
		}
		return nil
	})
	r.must(syscall.Setrlimit(syscall.RLIMIT_FSIZE, &before))
	v := r.settle(crowd)
	t.Logf("%d refusals, %+v", r.history.Count(history.Grab, history.Unknown), v)
	if v.Confirmed != 2000 {
		t.Errorf("%+v", v)
	}
}
