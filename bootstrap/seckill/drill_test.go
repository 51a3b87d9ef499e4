package main

import (
	"crypto/rand"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"seckill/bootstrap/seckill/drill"
	"seckill/test/harness"
)

// drillTime bounds one drill of a test.
const drillTime = time.Minute

// drilled runs a drill with a double in the engine.
func drilled(t *testing.T, double string, env []string, args ...string) (code int, said string, figures drill.Figures) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "figures.json")
	args = append([]string{"drill", "--stock=100", "--buyers=300", "--requests=610", "--concurrency=16", "--json=" + file}, args...)
	p := harness.Start(t, os.Args[0], args, append([]string{programEnv + "=" + double, "TMPDIR=" + t.TempDir()}, env...))
	code = p.Wait(t, drillTime)
	text, err := os.ReadFile(file)
	if err == nil && len(text) > 0 {
		err = json.Unmarshal(text, &figures)
	}
	if err != nil {
		t.Errorf("figures: %v", err)
	}
	return code, p.Stdout.String() + p.Stderr.String(), figures
}

// servers is the engine's environment on Redis and MariaDB, migrated.
func servers(t *testing.T) []string {
	t.Helper()
	env := []string{
		"SECKILL_STOCK=lua", "SECKILL_REDIS_ADDRS=" + harness.SharedRedis(t).Addr, "SECKILL_REDIS_PREFIX=t" + strings.ToLower(rand.Text()[:12]),
		"SECKILL_DATABASE=" + harness.SharedMariaDB(t).NewDatabase(t), "SECKILL_REDIS_TIMEOUT=5s", "SECKILL_REDIS_GRAB_TIMEOUT=5s", "SECKILL_REDIS_POOL_WAIT=5s", "SECKILL_LOCK_WAIT=5s",
	}
	p := harness.Start(t, os.Args[0], []string{"migrate"}, append(env, programEnv+"="+honest))
	if code := p.Wait(t, drillTime); code != 0 {
		t.Fatalf("migrate: exit code %d", code)
	}
	return env
}

// TestDrillTells: an honest engine passes, and each broken one is found out.
// covers O2
func TestDrillTells(t *testing.T) {
	// Accepted is queued, so that a fault behind the queue shows behind the queue.
	embedded := []string{"SECKILL_ACCEPT=queued", "SECKILL_RECLAIM_AFTER=1s"}
	memory := func(*testing.T) []string { return embedded }
	// What the drill must say, among other things.
	faults := map[string]string{
		"one unit too many":            "oversold: ",
		"one unit too few":             "accepted grabs: 99 instead of 100",
		"a limit of two":               "buyers with an accepted grab",
		"accepted without a unit":      "oversold: 101 grabs accepted of 100 units",
		"one order id for two":         "distinct order ids: 99 instead of 100",
		"sold out for a moment":        `had heard "sold out" before`,
		"sold out too early for good":  "accepted grabs: ",
		"another order id":             "accepted grabs that became an order: ",
		"a lost order":                 "accepted grabs that became an order: ",
		"a release that frees nothing": "after all orders were cancelled, ",
	}
	for name := range doubles {
		if faults[name] == "" {
			t.Errorf("nothing is expected of the double %q", name)
		}
	}
	for _, store := range []struct {
		name   string
		open   func(*testing.T) []string
		apart  bool // a drill has stores of its own
		faults []string
	}{
		{"memory+sqlite", memory, true, slices.Sorted(maps.Keys(faults))},
		// What is behind the port makes no difference to most faults.
		{"lua+mariadb", servers, false, []string{"one unit too many", "one order id for two", "a lost order"}},
	} {
		t.Run(store.name, func(t *testing.T) {
			t.Parallel()
			env := store.open(t)
			t.Run(honest, func(t *testing.T) { passes(t, env) })
			for _, name := range store.faults {
				t.Run(name, func(t *testing.T) {
					if store.apart {
						t.Parallel()
					}
					code, said, figures := drilled(t, name, env, "--settle=2s")
					if code != 1 || len(figures.Findings) == 0 {
						t.Fatalf("exit code %d\n%s", code, said)
					}
					if line := faults[name]; !strings.Contains(strings.Join(figures.Findings, "\n"), line) || !strings.Contains(said, line) {
						t.Errorf("does not say %q:\n%s", line, said)
					}
				})
			}
		})
	}
}

// passes wants a drill to find nothing, and every figure to be what it must be.
func passes(t *testing.T, env []string) {
	code, said, got := drilled(t, honest, env)
	if code != 0 || len(got.Findings) > 0 || !strings.Contains(said, "Every number agrees.") {
		t.Fatalf("exit code %d\n%s", code, said)
	}
	want := got // what is not set is not certain
	want.Requests, want.Accepted, want.SoldOut, want.LimitReached = 610, 100, 400, 110
	want.Rejected, want.Errors, want.Retried, want.Orders, want.OrdersRejected, want.Balanced = 0, 0, 0, 100, 0, true
	want.Total, want.Available, want.Held, want.Sold = 100, 0, 100, 0
	if !reflect.DeepEqual(got, want) || got.PerSecond <= 0 || got.P50Ms <= 0 || got.P99Ms < got.P50Ms {
		t.Fatalf("figures %+v", got)
	}
}
