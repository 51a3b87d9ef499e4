// Package usecase tests the use cases on real adapters in one process: stock
// and lock in memory, the ledger in a SQLite file.
package usecase

import (
	"context"
	"log/slog"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"seckill/adapters/memory"
	"seckill/adapters/sqlstore"
	"seckill/adapters/system"
	"seckill/application"
	"seckill/domain"
)

var (
	ctx  = context.Background()
	sale = domain.SaleID{Activity: 1001, SKU: 2001}
)

// clock can be moved: the windows of the hot store follow it. The ledger has
// its own.
type clock struct {
	mu     sync.Mutex
	offset time.Duration
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Now().Add(c.offset)
}

// shop is an engine without loops: a test drives each step itself.
type shop struct {
	*application.Engine
	t     *testing.T
	stock *memory.Stock
	store *sqlstore.Store
}

type options struct {
	wrap  func(domain.Stock) domain.Stock
	total int64
	limit int64
	pay   time.Duration // payment window
}

func open(t *testing.T, o options) *shop {
	t.Helper()
	config := sqlstore.Config{URL: "sqlite://" + filepath.ToSlash(filepath.Join(t.TempDir(), "orders.db"))}
	if err := sqlstore.Migrate(ctx, config, t.Logf); err != nil {
		t.Fatal(err)
	}
	store, err := sqlstore.Open(ctx, config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	s := &shop{t: t, store: store}
	s.start(o)

	now := time.Now()
	activity := domain.Activity{
		ID: sale.Activity, Name: "test", StartsAt: now.Add(-time.Hour), EndsAt: now.Add(time.Hour),
		PaymentWindow: max(o.pay, time.Millisecond),
		SKUs:          []domain.SKU{{ID: sale.SKU, Total: max(o.total, 1), PerUserLimit: max(o.limit, 1), Segments: 1}},
	}
	s.must(s.SaveActivity(ctx, activity))
	s.must(s.Preheat(ctx, sale.Activity))
	s.must(s.SetState(ctx, sale.Activity, "open"))
	return s
}

// start makes a new engine and a new, empty hot store over the same ledger, as
// a restart does.
func (s *shop) start(o options) {
	c := &clock{}
	s.stock = memory.NewStock(c, memory.WithBackoff(time.Millisecond, time.Millisecond))
	var stock domain.Stock = s.stock
	if o.wrap != nil {
		stock = o.wrap(stock)
	}
	s.Engine = application.New(application.Ports{
		Stock: stock, Queue: s.stock.Queue(), Orders: s.store, Outbox: s.store, DeadLetters: s.store,
		Activities: s.store, Lock: memory.NewLock(s.store, 200*time.Millisecond), Clock: c, IDs: system.IDs{},
	}, application.Config{Grace: 20 * time.Millisecond, Log: slog.New(slog.DiscardHandler)})
}

func (s *shop) must(_ any, err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *shop) grab(buyer domain.BuyerID) domain.OrderID {
	s.t.Helper()
	outcome, err := s.Grab(ctx, application.GrabRequest{Sale: sale, Buyer: buyer})
	if err != nil || outcome.Verdict != domain.Accepted {
		s.t.Fatalf("grab by %s: %s, %v", buyer, outcome.Verdict, err)
	}
	return outcome.Order
}

// consume brings what is queued into the ledger.
func (s *shop) consume() {
	s.t.Helper()
	deliveries, err := s.Queue.Receive(ctx, 0, 1000)
	if err != nil {
		s.t.Fatal(err)
	}
	if err := s.Persist(ctx, deliveries); err != nil {
		s.t.Fatal(err)
	}
}

// placed is a grab that has reached the ledger.
func (s *shop) placed(buyer domain.BuyerID) domain.OrderID {
	s.t.Helper()
	id := s.grab(buyer)
	s.consume()
	s.wantStatus(id, domain.Pending)
	return id
}

func (s *shop) wantStatus(id domain.OrderID, want domain.Status) domain.Order {
	s.t.Helper()
	order, err := s.Order(ctx, id, "")
	if err != nil || order.Status != want {
		s.t.Fatalf("order is %q, %v; want %s", order.Status, err, want)
	}
	return order
}

// wantLevel checks the account in both stores, counters and records.
func (s *shop) wantLevel(available, held, sold int64) {
	s.t.Helper()
	report, err := s.Report(ctx, sale.Activity)
	if err != nil {
		s.t.Fatal(err)
	}
	r := report.Sales[0]
	if r.Level.Available != available || r.Level.Held != held || r.Level.Sold != sold || !r.Balanced {
		s.t.Fatalf("available %d held %d sold %d balanced %v (%+v); want %d %d %d", r.Level.Available, r.Level.Held,
			r.Level.Sold, r.Balanced, r.Ledger, available, held, sold)
	}
	audit, err := s.Stock.Audit(ctx, sale)
	if err != nil || !audit.Balanced() {
		s.t.Fatalf("audit: %+v, %v", audit, err)
	}
}
