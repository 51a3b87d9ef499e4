package property

import (
	"context"
	"crypto/rand"
	"flag"
	"log/slog"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"pgregory.net/rapid"

	"seckill/adapters/memory"
	"seckill/adapters/redislock"
	"seckill/adapters/redisstock"
	"seckill/adapters/sqlstore"
	"seckill/adapters/system"
	"seckill/application"
	"seckill/domain"
	"seckill/test/harness"
)

var ctx = context.Background()

// world is what the sequences of a test have in common: the ledger and the
// server of the hot store. Each has an activity and a key prefix of its own.
type world struct {
	store    *sqlstore.Store
	client   redis.UniversalClient // nil: the hot store is in memory
	blocking redis.UniversalClient
	last     domain.ActivityID
	reached  map[string]int // how often something has happened
}

func sqlite(t *testing.T) string {
	return "sqlite://" + filepath.ToSlash(filepath.Join(t.TempDir(), "orders.db"))
}

func newWorld(t *testing.T, databaseURL string) *world {
	t.Helper()
	config := sqlstore.Config{URL: databaseURL}
	if err := sqlstore.Migrate(ctx, config, func(string, ...any) {}); err != nil {
		t.Fatal(err)
	}
	store, err := sqlstore.Open(ctx, config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	return &world{store: store, last: 1000, reached: map[string]int{}}
}

// withRedis has the hot store in the shared Redis.
func (w *world) withRedis(t *testing.T) *world {
	t.Helper()
	// A slow machine is not what is tested.
	const patience = 10 * time.Second
	var err error
	w.client, w.blocking, err = redisstock.Connect(redisstock.ConnectConfig{
		Addrs:       []string{harness.SharedRedis(t).Addr},
		DialTimeout: patience, ReadTimeout: patience, WriteTimeout: patience, PoolTimeout: patience,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = w.client.Close()
		_ = w.blocking.Close()
	})
	return w
}

// given are the flags of the command line.
var given = sync.OnceValue(func() map[string]bool {
	names := map[string]bool{}
	flag.Visit(func(f *flag.Flag) { names[f.Name] = true })
	return names
})

// run tries so many sequences of about so many steps, unless the command line
// says how many.
func (w *world) run(t *testing.T, checks, steps int) {
	t.Helper()
	if harness.Race {
		checks /= 2 // each takes twice as long
	}
	for name, value := range map[string]int{"rapid.checks": checks, "rapid.steps": steps} {
		if given()[name] {
			continue
		}
		if err := flag.Set(name, strconv.Itoa(value)); err != nil {
			t.Fatal(err)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		m := w.newMachine(t)
		defer m.end()
		t.Repeat(m.actions())
		m.finish(t)
	})
}

// clock can be moved.
type clock struct {
	mu     sync.Mutex
	offset time.Duration
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Now().Add(c.offset)
}

func (c *clock) move(by time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.offset += by
}

// machine is one engine without loops, each step of which is driven by hand, and
// the model that it is held against.
type machine struct {
	*application.Engine
	model
	w      *world
	id     domain.ActivityID
	prefix string
	clock  *clock
	stock  domain.Stock // without faults
	queue  domain.OrderQueue
	faults faults
	hand   []domain.Delivery               // what a consumer has and is not done with
	seen   map[domain.OrderID]domain.Order // as the ledger last had them
	expiry bool                            // unpaid orders are due at once
	harm   string                          // that is to be done to the stores once
	edits  int
}

func (w *world) newMachine(t *rapid.T) *machine {
	w.last++
	m := &machine{
		w: w, id: w.last, prefix: "p" + rand.Text()[:12], clock: &clock{}, seen: map[domain.OrderID]domain.Order{},
		expiry: rapid.Bool().Draw(t, "orders expire at once"),
		harm:   rapid.SampledFrom(harms()).Draw(t, "harm"),
	}
	m.start(t)
	now := time.Now()
	activity := domain.Activity{
		ID: m.id, Name: "property", StartsAt: now.Add(-24 * time.Hour), EndsAt: now.Add(24 * time.Hour), PaymentWindow: time.Hour,
	}
	if m.expiry {
		activity.PaymentWindow = time.Millisecond
	}
	for i := range 2 {
		sku := domain.SKU{
			ID: domain.SKUID(2001 + i), Segments: 1,
			Total:        rapid.Int64Range(1, 8).Draw(t, "total"),
			PerUserLimit: rapid.Int64Range(1, 4).Draw(t, "limit"),
		}
		activity.SKUs = append(activity.SKUs, sku)
		m.sales = append(m.sales, &saleModel{
			id: activity.Sale(sku.ID), total: sku.Total, limit: sku.PerUserLimit, epoch: 1, requests: map[request]*order{},
		})
	}
	m.must(t)(m.SaveActivity(ctx, activity))
	m.must(t)(m.Preheat(ctx, m.id))
	m.must(t)(m.SetState(ctx, m.id, "open"))
	m.state = domain.Open
	return m
}

// start makes a new engine, as a new process does: over an empty hot store if
// that is in memory.
func (m *machine) start(t *rapid.T) {
	quiet := slog.New(slog.DiscardHandler)
	ports := application.Ports{
		Orders: m.w.store, Outbox: promptOutbox{m.w.store}, DeadLetters: m.w.store,
		Activities: m.w.store, Clock: m.clock, IDs: system.IDs{},
	}
	if m.w.client == nil {
		stock := memory.NewStock(m.clock, memory.WithBackoff(time.Millisecond, time.Millisecond))
		m.stock, m.queue = stock, stock.Queue()
		ports.Lock = memory.NewLock(m.w.store, time.Second)
	} else {
		stock, err := redisstock.New(redisstock.Config{
			Client: m.w.client, Blocking: m.w.blocking, Prefix: m.prefix, Partitions: 1,
			ReclaimAfter: time.Millisecond, ReclaimMax: time.Millisecond, GrabTimeout: 10 * time.Second,
		})
		if err != nil {
			t.Fatal(err)
		}
		m.stock, m.queue = stock, stock.Queue()
		ports.Continuity = stock
		ports.Lock = redislock.New(redislock.Config{
			Client: m.w.client, Fences: m.w.store, Prefix: m.prefix + ":", Wait: time.Second, Logger: quiet,
		})
	}
	ports.Stock, ports.Queue = faultyStock{m.stock, &m.faults}, faultyQueue{m.queue, &m.faults}
	m.Engine = application.New(ports, application.Config{Grace: time.Millisecond, Log: quiet})
	if m.w.client == nil {
		m.ok(t, m.Rebuild(ctx))
	}
	m.ok(t, m.Watch(ctx))
}

// end leaves nothing that another sequence would come across.
func (m *machine) end() {
	m.faults = faults{}
	time.Sleep(2 * time.Millisecond)
	_, _ = m.Engine.Expire(ctx)
	if activity, err := m.w.store.Activity(ctx, m.id); err == nil {
		_ = m.w.store.SetState(ctx, m.id, activity.State, domain.Archived)
	}
	if m.w.client != nil {
		_ = m.flush()
	}
}

// flush removes all that Redis has of this machine.
func (m *machine) flush() error {
	keys := m.w.client.Scan(ctx, 0, m.prefix+"*", 1000).Iterator()
	for keys.Next(ctx) {
		if err := m.w.client.Del(ctx, keys.Val()).Err(); err != nil {
			return err
		}
	}
	return keys.Err()
}

func (m *machine) ok(t *rapid.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (m *machine) must(t *rapid.T) func(any, error) {
	return func(_ any, err error) {
		t.Helper()
		m.ok(t, err)
	}
}

func (m *machine) reach(what string) { m.w.reached[what]++ }
