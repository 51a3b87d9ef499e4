package redisstock_test

import (
	"testing"

	"github.com/redis/go-redis/v9"

	"seckill/adapters/redisstock"
	"seckill/domain"
	"seckill/test/harness"
)

// A full server admits nothing, says so, and can be got out of that state by
// the orders that end.
// covers N6
func TestAFullServer(t *testing.T) {
	server := harness.Redis(t, harness.WithRedisConfig("maxmemory-policy", "noeviction"))
	w := openAt(t, redisstock.ConnectConfig{Addrs: []string{server.Addr}})
	w.furnish(t)
	entries := receive(t, w.Queue(), 1)
	w.reserve(t, claim("later", "erin", 2))

	must(t, w.client.ConfigSet(t.Context(), "maxmemory", "1mb").Err()) // less than an empty server has
	wantFull := func() {
		t.Helper()
		if err := w.client.Set(t.Context(), w.prefix+":more", "x", 0).Err(); !redis.IsOOMError(err) {
			t.Fatalf("a plain write answers %v: the server is not full", err)
		}
	}
	wantFull()
	before := w.snapshot(t)
	for _, name := range []string{"reserve", "reacquire", "requeue", "adopt"} {
		wantErr(t, operations[name](t.Context(), w), domain.ErrUnavailable)
	}
	w.wantUnchanged(t, before)
	if audit := w.audit(t); !audit.Balanced() || audit.Level.Available != 93 {
		t.Fatalf("audit is %+v", audit)
	}

	wantFull()
	entries = append(entries, receive(t, w.Queue(), 1)...)
	if again := reclaim(t, w.Queue(), 1); again[0].ID != entries[0].ID {
		t.Fatalf("reclaimed %+v, want %+v", again[0], entries[0])
	}
	must(t, w.Queue().Ack(t.Context(), entries...))
	must(t, w.Queue().Tidy(t.Context(), redisstock.PartitionOf(sale, 3), 0))
	depth, err := w.Queue().Depth(t.Context())
	must(t, err)
	if n := w.client.XLen(t.Context(), w.key("queue")).Val(); n != 0 || depth.Orders != 0 || w.level(t).Queued != 0 {
		t.Fatalf("%d entries are left, depth %+v, level %+v", n, depth, w.level(t))
	}
	units, err := w.Release(t.Context(), sale, order("held"), order("never"))
	must(t, err)
	if units != 2 {
		t.Fatalf("%d units came free", units)
	}
	units, err = w.Settle(t.Context(), sale, order("later"))
	must(t, err)
	if units != 2 {
		t.Fatalf("%d units were settled", units)
	}
	paused := gate()
	paused.State = domain.Paused
	must(t, w.SetGate(t.Context(), sale, paused, 3))
	wantFull()
	if audit := w.audit(t); !audit.Balanced() || audit.Level.Available != 95 || audit.Level.Sold != 5 || audit.Level.State != domain.Paused {
		t.Fatalf("audit is %+v", audit)
	}
	must(t, w.SetGate(t.Context(), sale, gate(), 3))

	must(t, w.client.ConfigSet(t.Context(), "maxmemory", "0").Err())
	w.reserve(t, claim("after", "dave", 1))
	if audit := w.audit(t); !audit.Balanced() || audit.Level.Available != 94 {
		t.Fatalf("audit is %+v", audit)
	}
	must(t, w.Queue().Ack(t.Context(), receive(t, w.Queue(), 1)...))
	_, err = w.Settle(t.Context(), sale, order("after"))
	must(t, err)

	must(t, w.client.ConfigSet(t.Context(), "maxmemory", "1mb").Err())
	wantFull()
	must(t, w.Archive(t.Context(), sale, 3))
	_, err = w.Level(t.Context(), sale)
	wantErr(t, err, domain.ErrNotReady)
}
