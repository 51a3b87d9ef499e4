package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"seckill/test/harness"
)

// comparison is what a bench writes, as it is documented.
type comparison struct {
	Results []struct {
		Strategy, Mode                            string
		Callers, Stock, Grabs, Accepted, Oversold int64
		PerSecond, P50Ms, P99Ms                   float64
	}
	Limit   struct{ PerSecond float64 }
	Persist []struct {
		Database  string
		Batch     int
		PerSecond float64
	}
	Skipped []string
}

// compare runs the command, as short as it goes.
func compare(t *testing.T, env []string, args ...string) (comparison, *harness.Process) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "figures.json")
	args = append([]string{"bench", "--rounds=1", "--budget=100ms", "--callers=50", "--stock=200", "--grabs=2000", "--json=" + file}, args...)
	p := harness.Start(t, harness.Seckill(t), args, env)
	if code := p.Wait(t, drillBound); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	text, err := os.ReadFile(file)
	var got comparison
	if err == nil {
		err = json.Unmarshal(text, &got)
	}
	if err != nil {
		t.Fatalf("figures: %v\n%s", err, text)
	}
	for _, r := range got.Results {
		if r.Callers != 50 || r.Stock < 1 || r.Accepted != r.Stock || r.Oversold != 0 || r.Grabs <= r.Stock ||
			r.PerSecond <= 0 || r.P50Ms < 0 || r.P99Ms < r.P50Ms {
			t.Errorf("figures of %s %s: %+v", r.Strategy, r.Mode, r)
		}
	}
	for i, batch := range []int{1, 500} {
		if len(got.Persist) != 2 || got.Persist[i].Batch != batch || got.Persist[i].PerSecond <= 0 {
			t.Errorf("figures of persist: %+v", got.Persist)
		}
	}
	return got, p
}

// TestBench runs every strategy on real stores, and leaves nothing behind.
// covers O3
func TestBench(t *testing.T) {
	c := newCell(t, pairing{"lua", "mariadb"})
	got, p := compare(t, c.env)
	seen := map[string]bool{}
	for _, r := range got.Results {
		seen[r.Strategy+" "+r.Mode] = true
		if !strings.Contains(p.Stdout.String(), r.Strategy) {
			t.Errorf("no line for %s", r.Strategy)
		}
	}
	for _, entry := range []string{"lua coalesced", "lua single", "memory single"} {
		if !seen[entry] {
			t.Errorf("no entry %s: %v", entry, seen)
		}
	}
	if got.Limit.PerSecond <= 0 || got.Persist[0].Database != "mariadb" || len(got.Skipped) > 0 {
		t.Errorf("%+v", got)
	}
	c.untouched(t)

	t.Run("interrupted", func(t *testing.T) {
		p := harness.Start(t, c.program, []string{"bench", "--callers=50", "--budget=1m"}, c.env)
		client := c.redis.Client(t)
		eventually(t, startBound, func() error {
			keys, err := client.Keys(t.Context(), "seckill-bench-*").Result()
			if err == nil && len(keys) == 0 {
				err = fmt.Errorf("it has not begun")
			}
			return err
		})
		p.Signal(syscall.SIGINT)
		if code := p.Wait(t, startBound); code != 1 {
			t.Errorf("exit code %d", code)
		}
		c.untouched(t)
	})
}

// untouched wants a bench to have left no key and no row.
func (c *cell) untouched(t *testing.T) {
	t.Helper()
	keys, err := c.redis.Client(t).Keys(t.Context(), "seckill-bench-*").Result()
	if err != nil || len(keys) > 0 {
		t.Errorf("keys are left: %v %v", keys, err)
	}
	c.start(t)
	list := c.operate(c.here(), "GET", "activities", nil).want(t, 200)
	if strings.TrimSpace(string(list.body)) != "[]" {
		t.Errorf("activities are left: %s", list.body)
	}
}

// TestBenchWithoutServers: memory and a SQLite file need nothing; what needs
// Redis is named as skipped.
// covers O3
func TestBenchWithoutServers(t *testing.T) {
	temporary := t.TempDir()
	got, p := compare(t, []string{"TMPDIR=" + temporary})
	if len(got.Results) == 0 || got.Persist[0].Database != "sqlite" || got.Limit.PerSecond != 0 {
		t.Errorf("%+v", got)
	}
	for _, r := range got.Results {
		if r.Strategy == "lua" {
			t.Error("lua ran on a Redis that nobody named")
		}
	}
	if said := p.Stdout.String(); !strings.Contains(said, "skipped: lua coalesced: ") || !strings.Contains(said, "SECKILL_REDIS_ADDRS") {
		t.Errorf("does not say what it skipped:\n%s", said)
	}
	if left, err := os.ReadDir(temporary); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v %v", left, err)
	}

	for _, bad := range [][]string{{"--strategies=sudden"}, {"--rounds=0"}, {"--callers=0"}, {"--budget=1h"}, {"--json=/does/not/exist"}} {
		p := harness.Start(t, harness.Seckill(t), append([]string{"bench"}, bad...), nil)
		if code := p.Wait(t, startBound); code != 1 || !strings.Contains(p.Stderr.String(), strings.Split(bad[0], "=")[0]) {
			t.Errorf("%v: exit code %d", bad, code)
		}
	}
}
