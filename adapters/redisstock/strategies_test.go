package redisstock_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"seckill/adapters/memory"
	"seckill/adapters/redisstock"
	"seckill/adapters/system"
	"seckill/domain"
	"seckill/test/conformance"
	"seckill/test/harness"
)

// strategy is a Stock that decides grabs in its own way.
type strategy struct {
	name string
	make func(config redisstock.Config) (domain.Stock, error)
}

// strategies are those that decide in the client.
var strategies = []strategy{
	{"watch", func(config redisstock.Config) (domain.Stock, error) { return redisstock.NewWatch(config) }},
	{"incr", func(config redisstock.Config) (domain.Stock, error) { return redisstock.NewIncr(config) }},
	{"lock", func(config redisstock.Config) (domain.Stock, error) { return redisstock.NewLocked(config) }},
}

// on is the strategy on a world's keys, through a client of its own.
func (s strategy) on(t testing.TB, w *world, client redis.UniversalClient) domain.Stock {
	t.Helper()
	if client == nil {
		client = w.client
	}
	stock, err := s.make(redisstock.Config{Client: client, Prefix: w.prefix, Partitions: 3, ReclaimAfter: reclaimAfter})
	must(t, err)
	return stock
}

func (s strategy) world(t testing.TB) conformance.StockWorld {
	w := open(t)
	conform := w.conformance(t)
	conform.Stock = s.on(t, w, nil)
	return conform
}

// The queue is the one of Stock; what the strategies write into it is part of
// the suite of Stock.
// covers S12
func TestStrategiesConform(t *testing.T) {
	for _, s := range strategies {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel() // the suites mostly wait
			conformance.Stock(t, func(t *testing.T) conformance.StockWorld { return s.world(t) })
			if s.name != "incr" { // its figures are off while it puts units back, see Incr
				conformance.StockAtEveryMoment(t, func(t *testing.T) conformance.StockWorld { return s.world(t) })
			}
		})
	}
}

// The answers of every strategy are those of memory, step by step.
// covers S12, S5, N1
func TestStrategiesHistory(t *testing.T) {
	for _, s := range strategies {
		for seed := range int64(3) {
			t.Run(fmt.Sprintf("%s seed %d", s.name, seed), func(t *testing.T) {
				t.Parallel()
				clock := system.Clock{}
				stock := memory.NewStock(clock, memory.WithPartitions(3), memory.WithBackoff(reclaimAfter, reclaimAfter*16))
				conformance.History(t, seed, 300,
					conformance.StockWorld{Stock: stock, Queue: stock.Queue(), Now: clock.Now, Reclaim: reclaimAfter},
					s.world(t))
			})
		}
	}
}

// covers S12, S5, N1
func TestStrategiesSellExactlyTheStock(t *testing.T) {
	for _, s := range strategies {
		t.Run(s.name, func(t *testing.T) {
			w := open(t)
			must(t, w.Seal(t.Context(), sale, 2, true))
			must(t, w.Preheat(t.Context(), domain.Load{Sale: sale, Epoch: 1, Gate: gate(), Total: 50, Fence: 2}))
			// Two stocks, as two processes would have them.
			stocks := []domain.Stock{s.on(t, w, nil), s.on(t, w, nil)}
			var accepted, fresh atomic.Int64
			var all sync.WaitGroup
			for caller := range 100 {
				all.Go(func() {
					for try := range 3 {
						c := claim(fmt.Sprintf("c%dx%d", caller, try), fmt.Sprint("b", caller), 1)
						outcome, err := untilAnswered(t.Context(), stocks[caller%2], c)
						switch {
						case err != nil:
							t.Error(err)
						case outcome.Verdict == domain.Accepted:
							accepted.Add(1)
							if !outcome.Replayed {
								fresh.Add(1)
							}
						case outcome.Verdict != domain.SoldOut:
							t.Errorf("verdict is %v", outcome.Verdict)
						}
					}
				})
			}
			all.Wait()
			audit := w.audit(t)
			if accepted.Load() != 50 || audit.Level.Held != 50 || audit.Level.Available != 0 || !audit.Balanced() {
				t.Fatalf("%d accepted of 50, audit is %+v", accepted.Load(), audit)
			}
			if fresh.Load() < 45 { // a repeat after an unknown outcome is a replay
				t.Errorf("%d of 50 were fresh", fresh.Load())
			}
		})
	}
}

// untilAnswered repeats a grab whose outcome is unknown.
func untilAnswered(ctx context.Context, stock domain.Stock, c domain.Claim) (domain.Outcome, error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	for {
		outcomes, err := stock.Reserve(ctx, c.Order.Sale(), []domain.Claim{c})
		if err == nil {
			return outcomes[0], nil
		}
		if !errors.Is(err, domain.ErrUnavailable) || ctx.Err() != nil {
			return domain.Outcome{}, err
		}
	}
}

// What cannot be read is not guessed at: nothing is written then, and what a
// grab does not need does not matter to it.
// covers S12, S5, S7
func TestStrategiesAndDamage(t *testing.T) {
	set := func(key, field, value string) func(*world) error {
		return func(w *world) error { return w.client.HSet(context.Background(), w.key(key), field, value).Err() }
	}
	list := func(key string) func(*world) error {
		return func(w *world) error {
			w.client.Del(context.Background(), w.key(key))
			return w.client.RPush(context.Background(), w.key(key), "not this").Err()
		}
	}
	damages := map[string]func(*world) error{
		"depth=1e3":    func(w *world) error { return w.client.Set(context.Background(), w.key("depth"), "1e3", 0).Err() },
		"buyer=0x10":   set("buyers", "dave", "0x10"),
		"empty record": set("holds", string(order("new")), ""),
		"odd record":   set("holds", string(order("new")), "x1|2|dave|r"),
	}
	for _, key := range []string{"sale", "holds", "buyers", "requests", "queue", "depth"} {
		damages[key] = list(key)
	}
	for _, field := range []string{"epoch", "available", "held", "queued", "limit", "starts", "ends"} {
		for _, figure := range []string{"1e3", "-1", "", "9007199254740992"} {
			damages[field+"="+figure] = set("sale", field, figure)
		}
	}
	for _, s := range strategies {
		t.Run(s.name, func(t *testing.T) {
			for name, damage := range damages {
				w := open(t)
				stock := s.on(t, w, nil)
				w.furnish(t)
				must(t, damage(w))
				before := w.snapshot(t)
				_, err := stock.Reserve(t.Context(), sale, []domain.Claim{claim("newer", "erin", 1), claim("new", "dave", 1)})
				if !errors.Is(err, domain.ErrUnavailable) {
					t.Errorf("%s: error is %v, want ErrUnavailable", name, err)
				}
				w.wantUnchanged(t, before)
			}
			w := open(t)
			w.furnish(t)
			must(t, set("sale", "fence", "x")(w))
			must(t, set("sale", "sold", "x")(w))
			if _, err := s.on(t, w, nil).Reserve(t.Context(), sale, []domain.Claim{claim("new", "dave", 1)}); err != nil {
				t.Errorf("a grab minds figures that it does not need: %v", err)
			}
		})
	}
}

// covers S12, N6
func TestStrategiesInTroubleAreNeverSoldOut(t *testing.T) {
	for _, s := range strategies {
		t.Run(s.name, func(t *testing.T) {
			server := harness.Redis(t)
			w := openAt(t, redisstock.ConnectConfig{Addrs: []string{server.Addr}})
			w.furnish(t)
			client, blocking, err := redisstock.Connect(redisstock.ConnectConfig{
				Addrs: []string{server.Addr}, ReadTimeout: 100 * time.Millisecond, DialTimeout: 100 * time.Millisecond,
			})
			must(t, err)
			defer client.Close()
			defer blocking.Close()
			stock := s.on(t, w, client)
			must(t, client.Ping(t.Context()).Err())
			try := func(name string) {
				t.Helper()
				_, err := stock.Reserve(t.Context(), sale, []domain.Claim{claim(name, "dave", 1)})
				if !isUnavailable(err) {
					t.Errorf("%s: error is %v, want ErrUnavailable", name, err)
				}
			}
			server.Pause()
			try("frozen")
			server.Resume()

			eventually(t, "the server answers", func() bool { return client.Ping(t.Context()).Err() == nil })
			before := w.snapshot(t)
			must(t, w.client.ConfigSet(t.Context(), "maxmemory", "1").Err())
			try("memory")
			must(t, w.client.ConfigSet(t.Context(), "maxmemory", "0").Err())
			must(t, w.client.ReplicaOf(t.Context(), "127.0.0.1", "1").Err())
			try("replica")
			must(t, w.client.ReplicaOf(t.Context(), "no", "one").Err())
			w.wantUnchanged(t, before)

			ended, cancel := context.WithCancel(t.Context())
			cancel()
			if _, err := stock.Reserve(ended, sale, []domain.Claim{claim("ended", "dave", 1)}); !isUnavailable(err) {
				t.Errorf("cancelled: error is %v, want ErrUnavailable", err)
			}
			outcome, err := untilAnswered(t.Context(), stock, claim("after", "dave", 1))
			if err != nil || outcome.Verdict != domain.Accepted {
				t.Errorf("afterwards: %+v, %v", outcome, err)
			}
			if audit := w.audit(t); !audit.Balanced() {
				t.Errorf("audit is %+v", audit)
			}
		})
	}
}

// covers S12, S10
func TestStrategiesOnACluster(t *testing.T) {
	if testing.Short() {
		t.Skip("starts three servers")
	}
	addrs := harness.RedisCluster(t)
	for _, s := range strategies {
		t.Run(s.name, func(t *testing.T) {
			w := openAt(t, redisstock.ConnectConfig{Addrs: addrs})
			w.preheat(t)
			stock := s.on(t, w, nil)
			for i := range 10 {
				c := claim(fmt.Sprint("n", i), fmt.Sprint("b", i), 3)
				if outcome, err := untilAnswered(t.Context(), stock, c); err != nil || outcome.Verdict != domain.Accepted {
					t.Fatalf("outcome is %+v, %v", outcome, err)
				}
			}
			if audit := w.audit(t); !audit.Balanced() || audit.Level.Held != 30 || audit.QueuedUnits != 30 {
				t.Fatalf("audit is %+v", audit)
			}
		})
	}
}

// A crowd at the end of a small stock: every caller has an answer, and what was
// taken in vain is put back.
// covers S12, N1
func TestStrategiesAtTheEndOfTheStock(t *testing.T) {
	const total, crowdSize = 20, 600
	for _, s := range strategies {
		t.Run(s.name, func(t *testing.T) {
			w := open(t)
			stock := s.on(t, w, nil)
			preheat(t, stock, sale, total)
			var accepted, soldOut atomic.Int64
			crowd(crowdSize, func(n int) {
				outcomes, err := stock.Reserve(t.Context(), sale, []domain.Claim{numbered(int64(n))})
				switch {
				case err != nil:
					t.Error(err)
				case outcomes[0].Verdict == domain.Accepted:
					accepted.Add(1)
				case outcomes[0].Verdict == domain.SoldOut:
					soldOut.Add(1)
				default:
					t.Errorf("verdict is %v", outcomes[0].Verdict)
				}
			})
			audit, err := stock.Audit(t.Context(), sale)
			if accepted.Load() != total || soldOut.Load() != crowdSize-total || err != nil || !audit.Balanced() || audit.Level.Held != total {
				t.Errorf("%d accepted, %d sold out, %+v, %v", accepted.Load(), soldOut.Load(), audit, err)
			}
		})
	}
}

// The strategies that look at one segment load one, and leave a sale alone that
// is split.
func TestStrategiesDoNotSplit(t *testing.T) {
	for _, s := range strategies {
		t.Run(s.name, func(t *testing.T) {
			w := open(t)
			stock := s.on(t, w, nil)
			must(t, stock.Seal(t.Context(), sale, 1, true))
			must(t, stock.Preheat(t.Context(), domain.Load{Sale: sale, Epoch: 1, Gate: gate(), Total: 3, Fence: 1, Segments: 3}))
			for n := range int64(3) {
				outcomes, err := stock.Reserve(t.Context(), sale, []domain.Claim{numbered(n)})
				if err != nil || outcomes[0].Verdict != domain.Accepted {
					t.Errorf("%+v, %v", outcomes, err)
				}
			}
			preheatSegments(t, w.Stock, saleNumber(7), 3, 3)
			outcomes, err := stock.Reserve(t.Context(), saleNumber(7), []domain.Claim{numbered(9)})
			if !errors.Is(err, domain.ErrUnavailable) {
				t.Errorf("a split sale: %+v, %v", outcomes, err)
			}
		})
	}
}
