package redisstock_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"seckill/adapters/redisstock"
	"seckill/domain"
	"seckill/test/harness"
)

// covers S9
func TestScriptsHaveAHeader(t *testing.T) {
	files, err := filepath.Glob("lua/*.lua")
	must(t, err)
	if len(files) == 0 {
		t.Fatal("no script files")
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		must(t, err)
		header, _, _ := strings.Cut(string(text), "\n\n")
		body, _, _ := strings.Cut(string(text), "\nlocal ")
		if !strings.HasPrefix(header, "#!lua") {
			t.Errorf("%s does not name its engine", file)
		}
		for _, word := range []string{"-- KEYS ", "-- ARGV ", "-- Returns "} {
			if !strings.Contains(body, word) {
				t.Errorf("%s has no %q in its header", file, word)
			}
		}
	}
}

// covers S9
func TestScriptsAreSentAgainWhenTheServerForgotThem(t *testing.T) {
	server := harness.Redis(t)
	w := openAt(t, redisstock.ConnectConfig{Addrs: []string{server.Addr}})
	flush := func() { must(t, w.client.ScriptFlush(t.Context()).Err()) }
	flush()
	w.furnish(t)
	for _, name := range []string{"reserve", "reacquire", "release", "settle", "requeue", "adopt", "gate", "audit", "depth"} {
		flush()
		if err := operations[name](t.Context(), w); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	flush()
	deliveries := receive(t, w.Queue(), 2)
	flush()
	must(t, w.Queue().Ack(t.Context(), deliveries...))
	flush()
	must(t, w.Queue().Tidy(t.Context(), redisstock.PartitionOf(sale, 3), time.Hour))
	flush()
	w.preheat(t, domain.Hold{Order: order("a"), Buyer: "alice", Quantity: 1, State: domain.Held})
}

// covers N5, S5
func TestARetriedCallDeductsOnce(t *testing.T) {
	server := harness.Redis(t)
	calm := openAt(t, redisstock.ConnectConfig{Addrs: []string{server.Addr}})
	calm.furnish(t)

	// This client gives up on an answer soon and asks again by itself. It has
	// its connections before the server freezes.
	hasty := redis.NewClient(&redis.Options{
		Addr: server.Addr, ReadTimeout: 150 * time.Millisecond, MaxRetries: 3, PoolSize: 8,
		MinRetryBackoff: time.Millisecond, MaxRetryBackoff: time.Millisecond,
	})
	defer hasty.Close()
	stock := calm.another(t, redisstock.Config{Client: hasty})
	var conns []*redis.Conn
	for range 8 {
		conn := hasty.Conn()
		must(t, conn.Ping(t.Context()).Err())
		conns = append(conns, conn)
	}
	for _, conn := range conns {
		must(t, conn.Close())
	}
	must(t, calm.client.ConfigResetStat(t.Context()).Err())

	server.Pause()
	// One may be known by its order id only, the other by its request too.
	claims := []domain.Claim{claim("new", "dave", 1), claim("newer", "erin", 1)}
	claims[0].Request = ""
	_, err := stock.Reserve(t.Context(), sale, claims)
	wantErr(t, err, domain.ErrUnavailable)
	server.Resume()

	eventually(t, "the repeated calls have arrived", func() bool {
		stats, err := calm.client.Info(t.Context(), "commandstats").Result()
		return err == nil && strings.Contains(stats, "cmdstat_evalsha:calls=4,")
	})
	if got := calm.level(t); got.Available != 93 || got.Held != 4 || got.Queued != 8 {
		t.Fatalf("level is %+v", got)
	}
	outcomes, err := calm.Reserve(t.Context(), sale, claims)
	must(t, err)
	for i, outcome := range outcomes {
		if !outcome.Replayed || outcome.Verdict != domain.Accepted || outcome.Order != claims[i].Order {
			t.Fatalf("outcome is %+v, want a replay", outcome)
		}
	}
	if audit := calm.audit(t); !audit.Balanced() {
		t.Fatalf("audit is %+v", audit)
	}
}

// covers N6
func TestTroubleIsUnavailableAndNeverSoldOut(t *testing.T) {
	server := harness.Redis(t)
	w := openAt(t, redisstock.ConnectConfig{Addrs: []string{server.Addr}})
	w.furnish(t)
	client, blocking, err := redisstock.Connect(redisstock.ConnectConfig{
		Addrs: []string{server.Addr}, ReadTimeout: 100 * time.Millisecond, DialTimeout: 100 * time.Millisecond,
	})
	must(t, err)
	defer client.Close()
	defer blocking.Close()
	hasty := &world{Stock: w.another(t, redisstock.Config{Client: client, Blocking: blocking}), client: client, prefix: w.prefix}

	all := func(t *testing.T, ctx context.Context) {
		t.Helper()
		for name, run := range operations {
			start := time.Now()
			if err := run(ctx, hasty); !isUnavailable(err) {
				t.Errorf("%s: error is %v, want ErrUnavailable", name, err)
			}
			if took := time.Since(start); took > 5*time.Second {
				t.Errorf("%s took %v", name, took)
			}
		}
		if _, err := hasty.Queue().Receive(ctx, 0, 1); !isUnavailable(err) {
			t.Errorf("Receive: error is %v, want ErrUnavailable", err)
		}
		if _, err := hasty.Queue().Reclaim(ctx, 0, 1); !isUnavailable(err) {
			t.Errorf("Reclaim: error is %v, want ErrUnavailable", err)
		}
	}
	must(t, client.Ping(t.Context()).Err())
	t.Run("frozen", func(t *testing.T) {
		server.Pause()
		defer server.Resume()
		all(t, t.Context())
	})
	t.Run("deadline over", func(t *testing.T) {
		ctx, cancel := context.WithDeadline(t.Context(), time.Unix(0, 0))
		defer cancel()
		all(t, ctx)
	})
	t.Run("out of memory", func(t *testing.T) {
		must(t, w.client.ConfigSet(t.Context(), "maxmemory", "1").Err())
		defer w.client.ConfigSet(t.Context(), "maxmemory", "0")
		before := w.snapshot(t)
		for _, name := range []string{"reserve", "reacquire", "adopt", "requeue"} {
			if err := operations[name](t.Context(), w); !isUnavailable(err) {
				t.Errorf("%s: error is %v, want ErrUnavailable", name, err)
			}
		}
		w.wantUnchanged(t, before)
	})
	t.Run("read only", func(t *testing.T) {
		must(t, w.client.ReplicaOf(t.Context(), "127.0.0.1", "1").Err())
		defer w.client.ReplicaOf(t.Context(), "no", "one")
		before := w.snapshot(t)
		for _, name := range []string{"reserve", "release", "settle"} {
			if err := operations[name](t.Context(), w); !isUnavailable(err) {
				t.Errorf("%s: error is %v, want ErrUnavailable", name, err)
			}
		}
		w.wantUnchanged(t, before)
	})
	t.Run("down", func(t *testing.T) {
		server.Kill()
		all(t, t.Context())
	})
	t.Run("back again", func(t *testing.T) {
		server.Restart()
		eventually(t, "the store answers", func() bool { _, err := hasty.Level(t.Context(), sale); return err == nil })
		// Its breaker may still be open.
		eventually(t, "a grab", func() bool {
			_, err := hasty.Reserve(t.Context(), sale, []domain.Claim{claim("after", "dave", 1)})
			return err == nil
		})
		if audit := hasty.audit(t); !audit.Balanced() {
			t.Errorf("audit is %+v", audit)
		}
	})
}
