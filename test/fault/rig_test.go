package fault

import (
	"context"
	"crypto/rand"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/fx"

	"seckill/adapters/sqlstore"
	"seckill/application"
	"seckill/bootstrap"
	"seckill/domain"
	"seckill/test/harness"
	"seckill/test/history"
)

// patience bounds everything that has to happen sooner or later.
const patience = 60 * time.Second

// setup is what a rig is made of.
type setup struct {
	ledger string                  // mariadb, postgres or sqlite
	hot    string                  // "" is lua
	own    bool                    // the servers are this test's, to be stopped and harmed
	still  bool                    // the loops do not run: the test takes each step itself
	redis  []harness.RedisOption   // of its own Redis
	change func(*bootstrap.Config) // of the configuration, at last
	// at connects to Redis, where that is neither the shared nor its own one.
	at func(*bootstrap.Config)
}

// rig is the whole engine in this process, loops included, with proxies between
// it and its real servers, and a history of what its clients were told.
type rig struct {
	*application.Engine
	t        *testing.T
	config   bootstrap.Config
	app      *fx.App
	stock    domain.Stock
	queue    domain.OrderQueue
	store    *sqlstore.Store
	redis    *harness.RedisServer // nil without Redis
	database *harness.SQLServer   // nil with SQLite
	toRedis  *harness.Proxy       // nil without Redis
	toSQL    *harness.Proxy       // nil with SQLite
	ledger   string
	// directURL leads to the database past the proxy.
	directURL string
	history   *history.History
	sales     []history.Sale
	log       *harness.Buffer
	last      atomic.Int64 // activity id
	stopped   bool
	still     bool         // its loops do not run
	swap      sync.RWMutex // of Engine
}

func newRig(t *testing.T, s setup) *rig {
	t.Helper()
	r := &rig{t: t, history: history.New(), log: &harness.Buffer{}, still: s.still}
	r.last.Store(1000)
	c := bootstrap.Default()
	c.Redis.Prefix = "t" + strings.ToLower(rand.Text()[:12])
	c.Stock, c.Accept = "lua", application.AcceptQueued
	if s.hot != "" {
		c.Stock = s.hot
	}
	c.ReclaimAfter, c.ExpireEvery, c.RelayEvery = 2*time.Second, 100*time.Millisecond, 100*time.Millisecond
	c.ReconcileEvery = 0 // a test says when
	// A slow machine is not what is tested.
	c.Redis.Timeout, c.Redis.GrabTimeout, c.Redis.PoolWait, c.Lock.Wait = 5*time.Second, 5*time.Second, 5*time.Second, 5*time.Second
	c.Database = r.openLedger(s)
	switch {
	case s.at != nil:
		s.at(&c)
	case c.Stock != "memory" && c.Stock != "sql":
		if r.redis = harness.SharedRedis(t); s.own {
			r.redis = harness.Redis(t, s.redis...)
		}
		r.toRedis = harness.NewProxy(t, r.redis.Addr)
		c.Redis.Addrs = []string{r.toRedis.Addr}
	}
	if s.change != nil {
		s.change(&c)
	}
	r.config = c
	if err := bootstrap.Migrate(t.Context(), c, slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	r.start()
	t.Cleanup(func() {
		r.stop()
		if t.Failed() {
			t.Logf("the engine's log:\n%s", tail(r.log.String(), 8000))
		}
	})
	return r
}

func (r *rig) openLedger(s setup) (databaseURL string) {
	switch s.ledger {
	case "mariadb":
		if r.database = harness.SharedMariaDB(r.t); s.own {
			r.database = harness.MariaDB(r.t)
		}
	case "postgres":
		if r.database = harness.SharedPostgres(r.t); s.own {
			r.database = harness.Postgres(r.t)
		}
	default:
		return "sqlite://" + filepath.ToSlash(filepath.Join(r.t.TempDir(), "orders.db"))
	}
	r.ledger, r.directURL = s.ledger, r.database.NewDatabase(r.t)
	r.toSQL, databaseURL = harness.ProxyURL(r.t, r.directURL)
	return databaseURL
}

// start starts the engine: the first one, or the next after stop.
func (r *rig) start(more ...fx.Option) {
	r.t.Helper()
	log := slog.New(slog.NewJSONHandler(r.log, &slog.HandlerOptions{Level: slog.LevelWarn}))
	var engine *application.Engine
	r.app = fx.New(fx.Supply(r.config, log), fx.NopLogger, r.modules(),
		fx.Populate(&engine, &r.stock, &r.queue, &r.store), fx.Options(more...))
	r.stopped = false
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := r.app.Start(ctx); err != nil {
		r.t.Fatal(err)
	}
	r.swap.Lock()
	defer r.swap.Unlock()
	r.Engine = engine
}

func (r *rig) modules() fx.Option {
	if r.still {
		return bootstrap.Stores
	}
	return bootstrap.Module
}

// engine is the one that runs now, for clients who outlive it.
func (r *rig) engine() *application.Engine {
	r.swap.RLock()
	defer r.swap.RUnlock()
	return r.Engine
}

// another is a second engine on the same stores, as another node has it.
func (r *rig) another() *rig {
	r.t.Helper()
	other := &rig{t: r.t, config: r.config, history: r.history, log: r.log, sales: r.sales}
	other.start()
	r.t.Cleanup(other.stop)
	return other
}

// stop drains the engine as SIGTERM does.
func (r *rig) stop() {
	if r.stopped {
		return
	}
	r.stopped = true
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := r.app.Stop(ctx); err != nil {
		r.t.Errorf("stop: %v", err)
	}
}

// sell makes a sale and opens it.
func (r *rig) sell(total, limit int64) history.Sale {
	r.t.Helper()
	return r.sellFor(total, limit, time.Hour)
}

// sellFor is sell with a time to pay.
func (r *rig) sellFor(total, limit int64, window time.Duration) history.Sale {
	r.t.Helper()
	sale := r.make(total, limit, window)
	_, err := r.Preheat(r.t.Context(), sale.Activity)
	r.must(err)
	_, err = r.SetState(r.t.Context(), sale.Activity, "open")
	r.must(err)
	return sale
}

// draft is a sale that is not loaded yet.
func (r *rig) draft(total int64) history.Sale {
	r.t.Helper()
	return r.make(total, 1, time.Hour)
}

func (r *rig) make(total, limit int64, window time.Duration) history.Sale {
	r.t.Helper()
	id := domain.SaleID{Activity: domain.ActivityID(r.last.Add(1)), SKU: 2001}
	now := time.Now()
	_, err := r.SaveActivity(r.t.Context(), domain.Activity{
		ID: id.Activity, Name: "fault", StartsAt: now.Add(-24 * time.Hour), EndsAt: now.Add(24 * time.Hour), PaymentWindow: window,
		SKUs: []domain.SKU{{ID: id.SKU, Name: "fault", Total: total, PerUserLimit: limit, Segments: 1}},
	})
	r.must(err)
	sale := history.Sale{SaleID: id, Total: total, Limit: limit}
	r.sales = append(r.sales, sale)
	return sale
}

func (r *rig) must(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

// eventually asks until there is nothing wrong.
func (r *rig) eventually(what string, wrong func() error) {
	r.t.Helper()
	var err error
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if err = wrong(); err == nil {
			return
		}
	}
	r.t.Fatalf("%s: %v", what, err)
}

func tail(text string, n int) string { return text[max(0, len(text)-n):] }
