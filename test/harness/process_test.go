package harness

import (
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"
)

// helper makes the test binary, started again by a test, do something else.
const helper = "SECKILL_HARNESS_HELPER"

// TestHelperProgram is the program that TestProcess starts.
func TestHelperProgram(t *testing.T) {
	addr, ok := strings.CutPrefix(os.Getenv(helper), "serve ")
	if !ok {
		return // not started by a test
	}
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM)
	go func() { _ = http.ListenAndServe(addr, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})) }()
	fmt.Fprintln(os.Stderr, "ready")
	<-stop
	os.Exit(3)
}

func startHelper(t *testing.T, test, what string) *Process {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return Start(t, self, []string{"-test.run=^" + test + "$", "-test.timeout=2m"}, []string{helper + "=" + what})
}

func TestProcess(t *testing.T) {
	t.Parallel()
	addr := FreeAddr(t)
	p := startHelper(t, "TestHelperProgram", "serve "+addr)
	p.WaitFor(t, "http://"+addr, 30*time.Second)
	if !p.Running() {
		t.Fatal("not running")
	}
	if !strings.Contains(p.Stderr.String(), "ready") {
		t.Fatalf("stderr %q", p.Stderr)
	}
	p.Signal(syscall.SIGTERM)
	if code := p.Wait(t, 30*time.Second); code != 3 {
		t.Fatalf("exit code %d", code)
	}

	p = startHelper(t, "TestHelperProgram", "serve "+addr)
	p.WaitFor(t, "http://"+addr, 30*time.Second)
	p.Kill(t)
	if code := p.Wait(t, 0); code != -1 {
		t.Fatalf("exit code %d after Kill", code)
	}
}

func TestFreeAddrsDiffer(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for range 100 {
		addr := FreeAddr(t)
		if seen[addr] {
			t.Fatalf("%s given twice", addr)
		}
		seen[addr] = true
	}
}
