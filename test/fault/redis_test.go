package fault

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"seckill/bootstrap"
	"seckill/domain"
	"seckill/test/harness"
	"seckill/test/history"
)

// harmTime is how long a fault lasts that is taken away again.
const harmTime = 700 * time.Millisecond

// TestRedisTrouble injects one fault of Redis into the middle of a sale of which
// everybody can have a unit. Whoever asks hears "accepted" or a refusal that says
// nothing of the stock; afterwards all that was accepted is an order, or was lost
// with Redis and is told so.
// covers N2 N5 N6 S9
func TestRedisTrouble(t *testing.T) {
	for _, fault := range []struct {
		name  string
		redis []harness.RedisOption
		harm  func(t *testing.T, r *rig, admin *redis.Client)
		// loses says that Redis itself loses what it has answered.
		loses bool
	}{
		{name: "answers lost after the script ran", harm: func(_ *testing.T, r *rig, _ *redis.Client) {
			heal := r.toRedis.Harm("timeout", "downstream", map[string]int64{"timeout": 20})
			time.Sleep(harmTime)
			heal()
		}},
		{name: "connections reset", harm: func(_ *testing.T, r *rig, _ *redis.Client) {
			for range 10 {
				r.toRedis.Cut()
				r.toRedis.Mend()
				time.Sleep(harmTime / 10)
			}
		}},
		{name: "200 ms slower", harm: func(_ *testing.T, r *rig, _ *redis.Client) {
			heal := r.toRedis.Harm("latency", "downstream", map[string]int64{"latency": 200})
			time.Sleep(2 * harmTime)
			heal()
		}},
		{name: "SCRIPT FLUSH", harm: func(t *testing.T, r *rig, admin *redis.Client) {
			for range 10 {
				r.must(admin.ScriptFlush(t.Context()).Err())
				time.Sleep(harmTime / 10)
			}
		}},
		{name: "NOSCRIPT after a restart", harm: func(_ *testing.T, r *rig, _ *redis.Client) { r.redis.Restart() }},
		{name: "READONLY after a demotion", harm: func(t *testing.T, r *rig, admin *redis.Client) {
			r.must(admin.ReplicaOf(t.Context(), "127.0.0.1", "1").Err())
			time.Sleep(harmTime)
			r.must(admin.ReplicaOf(t.Context(), "NO", "ONE").Err())
		}},
		{name: "NOREPLICAS", harm: func(t *testing.T, r *rig, admin *redis.Client) {
			r.must(admin.ConfigSet(t.Context(), "min-replicas-to-write", "1").Err())
			time.Sleep(harmTime)
			r.must(admin.ConfigSet(t.Context(), "min-replicas-to-write", "0").Err())
		}},
		{name: "OOM", harm: func(t *testing.T, r *rig, admin *redis.Client) {
			r.must(admin.ConfigSet(t.Context(), "maxmemory", "1").Err())
			time.Sleep(harmTime)
			r.must(admin.ConfigSet(t.Context(), "maxmemory", "0").Err())
		}},
		{name: "BUSY", redis: []harness.RedisOption{harness.WithRedisConfig("busy-reply-threshold", "20")}, harm: func(t *testing.T, r *rig, admin *redis.Client) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			go admin.Eval(ctx, "while true do end", nil)
			r.eventually("a busy Redis", func() error {
				if err := admin.Get(t.Context(), "x").Err(); redis.HasErrorPrefix(err, "BUSY") {
					return nil
				}
				return domain.ErrNotReady
			})
			time.Sleep(harmTime)
			r.must(admin.ScriptKill(t.Context()).Err())
		}},
		{name: "LOADING", redis: []harness.RedisOption{
			// Each key takes 20 ms to load from the base file.
			harness.WithRedisConfig("key-load-delay", "20000"), harness.WithRedisConfig("loading-process-events-interval-bytes", "1024"),
		}, harm: func(t *testing.T, r *rig, admin *redis.Client) {
			r.must(admin.BgRewriteAOF(t.Context()).Err())
			r.eventually("a base file", func() error {
				if info := admin.Info(t.Context(), "persistence").Val(); !strings.Contains(info, "aof_rewrite_in_progress:0") {
					return domain.ErrBusy
				}
				return nil
			})
			r.redis.Restart()
		}},
		{name: "killed, with appendfsync always", redis: []harness.RedisOption{harness.WithRedisConfig("appendfsync", "always")}, harm: func(_ *testing.T, r *rig, _ *redis.Client) {
			r.redis.Kill()
			r.redis.Restart()
		}},
		{name: "killed", loses: true, harm: func(_ *testing.T, r *rig, _ *redis.Client) {
			r.redis.Kill()
			r.redis.Restart()
		}},
		{name: "truncated append-only file", loses: true, harm: func(t *testing.T, r *rig, _ *redis.Client) {
			r.redis.Kill()
			file := r.redis.AppendOnlyFile(t)
			info, err := os.Stat(file)
			r.must(err)
			r.must(os.Truncate(file, info.Size()*9/10))
			r.redis.Restart()
		}},
		{name: "empty append-only file", loses: true, harm: func(t *testing.T, r *rig, _ *redis.Client) {
			r.redis.Kill()
			r.must(os.Truncate(r.redis.AppendOnlyFile(t), 0))
			r.redis.Restart()
		}},
		{name: "group destroyed", harm: func(t *testing.T, r *rig, admin *redis.Client) {
			for range 5 {
				for _, stream := range admin.Keys(t.Context(), r.config.Redis.Prefix+":*:queue").Val() {
					r.must(admin.XGroupDestroy(t.Context(), stream, "orders").Err())
				}
				time.Sleep(harmTime / 5)
			}
		}},
	} {
		t.Run(fault.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, setup{ledger: "mariadb", own: true, redis: fault.redis})
			sale := r.sell(5000, 1)
			crowd := r.storm(sale, "c", 3000, 30, 1, 20*time.Millisecond)
			crowd.reach(200)
			fault.harm(t, r, r.redis.Client(t))
			crowd.wait()
			v := r.settle(crowd)
			t.Logf("%d grabs had no answer at first; %d accepted, %d confirmed, %d gone", r.history.Count(history.Grab, history.Unknown), v.Accepted, v.Confirmed, v.Gone)
			if !fault.loses && (v.Confirmed != 3000 || v.Rejected > 0) {
				t.Errorf("%+v, want 3000 orders", v)
			}
		})
	}
}

// What was trimmed from the stream by hand, and what cannot be read any more, is
// put right by a reconcile.
// covers N3 Q3 S7
func TestRedisIsHarmedByHand(t *testing.T) {
	for _, harm := range []struct {
		name string
		do   func(ctx context.Context, admin *redis.Client, key func(kind string) string) error
	}{
		{"stream trimmed", func(ctx context.Context, admin *redis.Client, key func(string) string) error {
			return admin.XTrimMaxLen(ctx, key("queue"), 0).Err()
		}},
		{"stream removed", func(ctx context.Context, admin *redis.Client, key func(string) string) error {
			return admin.Del(ctx, key("queue")).Err()
		}},
		{"sale of the wrong type", func(ctx context.Context, admin *redis.Client, key func(string) string) error {
			return admin.Set(ctx, key("sale"), "oops", 0).Err()
		}},
		{"holds of the wrong type", func(ctx context.Context, admin *redis.Client, key func(string) string) error {
			return admin.Set(ctx, key("holds"), "oops", 0).Err()
		}},
		{"buyers of the wrong type", func(ctx context.Context, admin *redis.Client, key func(string) string) error {
			return admin.Set(ctx, key("buyers"), "oops", 0).Err()
		}},
		{"requests of the wrong type", func(ctx context.Context, admin *redis.Client, key func(string) string) error {
			return admin.Set(ctx, key("requests"), "oops", 0).Err()
		}},
		{"stock that is no number", func(ctx context.Context, admin *redis.Client, key func(string) string) error {
			return admin.HSet(ctx, key("sale"), "available", "many").Err()
		}},
		{"queue of the wrong type", func(ctx context.Context, admin *redis.Client, key func(string) string) error {
			return admin.Set(ctx, key("queue"), "oops", 0).Err()
		}},
		{"depth of the wrong type", func(ctx context.Context, admin *redis.Client, key func(string) string) error {
			return admin.Do(ctx, "copy", key("sale"), key("depth"), "replace").Err()
		}},
		{"sale removed", func(ctx context.Context, admin *redis.Client, key func(string) string) error {
			return admin.Del(ctx, key("sale")).Err()
		}},
	} {
		t.Run(harm.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, setup{ledger: "postgres"})
			sale := r.sell(3000, 1)
			crowd := r.storm(sale, "c", 1500, 30, 1, 10*time.Millisecond)
			crowd.reach(200)
			admin := r.redis.Client(t)
			d := &damaged{rig: r, client: admin}
			r.must(harm.do(t.Context(), admin, func(kind string) string {
				key := d.key("sale")
				tag := key[:strings.Index(key, "}")+2]
				if kind == "queue" || kind == "depth" {
					return tag + kind
				}
				return tag + kind + ":" + sale.String()
			}))
			time.Sleep(harmTime)
			r.repaired(sale)
			v := r.settle(crowd)
			t.Logf("%d accepted, %d confirmed, %d rejected", v.Accepted, v.Confirmed, v.Rejected)
		})
	}
}

// A pool that is too small for the crowd makes refusals, not lies.
// covers N6
func TestRedisPoolIsExhausted(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{ledger: "mariadb", change: func(c *bootstrap.Config) {
		c.Redis.Pool, c.Redis.PoolWait, c.Redis.Batch = 4, 20*time.Millisecond, 1
	}})
	sale := r.sell(2000, 1)
	heal := r.toRedis.Harm("latency", "downstream", map[string]int64{"latency": 30})
	crowd := r.storm(sale, "c", 500, 100, 1, 0)
	crowd.wait()
	heal()
	refused := r.history.Count(history.Grab, history.Unknown)
	if v := r.settle(crowd); refused == 0 || v.Confirmed != 500 {
		t.Errorf("%d refusals, %+v", refused, v)
	}
}
