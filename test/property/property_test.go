package property

import (
	"maps"
	"slices"
	"testing"

	"seckill/test/harness"
)

// Whatever happens in whatever order, the engine does what the model says and
// keeps what it promises: in one process without services, with many steps.
// covers N1 N2 N3 S5 T6 P1 P2 P3 P4 P5 S13
func TestMemoryAndSQLite(t *testing.T) {
	w := newWorld(t, sqlite(t))
	w.run(t, 80, 80)
	w.wants(t, often...)
}

// The same with a hot store that outlives the process, and may be lost without it.
// covers N1 N2 N3 N7 S5 T6 P1 P2 P3 P4 P5 S13
func TestRedisAndMariaDB(t *testing.T) {
	w := newWorld(t, harness.SharedMariaDB(t).NewDatabase(t)).withRedis(t)
	w.run(t, 30, 60)
	w.wants(t, "accepted", "placed again", "emptied", "doubted", "lost")
}

// covers N1 N2 N3 N7 S5 T6 P1 P2 P3 P4 P5 S13
func TestRedisAndPostgreSQL(t *testing.T) {
	w := newWorld(t, harness.SharedPostgres(t).NewDatabase(t)).withRedis(t)
	w.run(t, 30, 60)
	w.wants(t, "accepted", "placed again", "emptied", "doubted", "lost")
}

// often is what a test with many steps comes across, or it does not test it. What
// is rare (a refund, say, or a stale epoch) is not wanted of every run.
var often = []string{
	"accepted", "replayed", "sold_out", "limit_reached", "ended", "paid", "cancelled", "expired", "placed again",
	"lost", "crashed", "preheated", "preheat refused", "edited",
}

// wants says what must have happened, and shows what did.
func (w *world) wants(t *testing.T, what ...string) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(w.reached)) {
		t.Logf("%6d %s", w.reached[name], name)
	}
	for _, name := range what {
		if w.reached[name] == 0 && !given()["rapid.checks"] && !t.Failed() {
			t.Errorf("%q never happened", name)
		}
	}
}
