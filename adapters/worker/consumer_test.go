package worker_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"seckill/adapters/memory"
	"seckill/adapters/worker"
	"seckill/application"
	"seckill/domain"
)

// These tests run in virtual time: minutes of a slow ledger pass in a moment.

const (
	partitions = 16
	backoff    = 10 * time.Second
)

type clock struct{}

func (clock) Now() time.Time { return time.Now() }

// ledger places so many orders a second, all callers together, and not one more
// while it is away. What it is not asked for in these tests it does not have.
type ledger struct {
	domain.Orders
	pace   float64
	turn   chan struct{}
	mu     sync.Mutex
	away   bool
	work   int // orders that it began to place, repeats included
	placed map[domain.OrderID]bool
}

var errAway = errors.New("the ledger is away")

func newLedger(ordersPerSecond float64) *ledger {
	return &ledger{pace: ordersPerSecond, turn: make(chan struct{}, 1), placed: map[domain.OrderID]bool{}}
}

func (l *ledger) setAway(away bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.away = away
}

func (l *ledger) Place(ctx context.Context, orders []domain.Order) ([]domain.Placed, error) {
	select {
	case l.turn <- struct{}{}:
		defer func() { <-l.turn }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	l.mu.Lock()
	l.work += len(orders)
	l.mu.Unlock()
	select {
	case <-time.After(time.Duration(float64(len(orders)) / l.pace * float64(time.Second))):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.away {
		return nil, errAway
	}
	placed := make([]domain.Placed, len(orders))
	for i, order := range orders {
		l.placed[order.ID] = true
		order.Status = domain.Pending
		placed[i].Order = order
	}
	return placed, nil
}

type world struct {
	t     *testing.T
	stock *memory.Stock
	*ledger
	*worker.Consumer
}

func open(t *testing.T, ledger *ledger) *world {
	stock := memory.NewStock(clock{}, memory.WithPartitions(partitions), memory.WithBackoff(backoff, time.Minute))
	engine := application.New(application.Ports{
		Stock: stock, Queue: stock.Queue(), Orders: ledger, Clock: clock{},
	}, application.Config{Log: slog.New(slog.DiscardHandler)})
	return &world{t, stock, ledger, worker.NewConsumer(engine, stock.Queue(), worker.ConsumerConfig{
		Consumers: 4, Batch: 4000, PlaceTimeout: backoff * 9 / 10, Log: slog.New(slog.DiscardHandler),
	})}
}

// queue queues orders of many sales, so that all partitions have some, in entries
// of perEntry.
func (w *world) queue(orders, perEntry int) {
	w.t.Helper()
	const sales = 100
	for n := range sales {
		sale := domain.SaleID{Activity: 1, SKU: domain.SKUID(n + 1)}
		total := int64(orders / sales)
		if err := w.stock.Seal(w.t.Context(), sale, 1, false); err != nil {
			w.t.Fatal(err)
		}
		err := w.stock.Preheat(w.t.Context(), domain.Load{
			Sale: sale, Total: total, Epoch: 1, Segments: 1,
			Gate: domain.Gate{State: domain.Open, PerUserLimit: 1,
				StartsAt: time.Now().Add(-time.Hour), EndsAt: time.Now().Add(time.Hour)},
			Fence: 1,
		})
		if err != nil {
			w.t.Fatal(err)
		}
		for first := 0; first < int(total); first += perEntry {
			var claims []domain.Claim
			for i := first; i < min(first+perEntry, int(total)); i++ {
				claims = append(claims, domain.Claim{
					Order: domain.NewOrderID(sale, fmt.Sprintf("%08d", i)), Buyer: domain.BuyerID(fmt.Sprint(i)), Quantity: 1,
				})
			}
			if _, err := w.stock.Reserve(w.t.Context(), sale, claims); err != nil {
				w.t.Fatal(err)
			}
		}
	}
	if depth := w.depth(); depth != orders {
		w.t.Fatalf("%d orders are queued, want %d", depth, orders)
	}
}

func (w *world) depth() int {
	depth, err := w.stock.Queue().Depth(context.Background())
	if err != nil {
		w.t.Fatal(err)
	}
	return int(depth.Orders)
}

// run consumes for so long.
func (w *world) run(long time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), long)
	defer cancel()
	w.Run(ctx)
}

// A ledger that is far behind still gets on with new work: it is not handed the
// same orders again and again.
// covers Q4, N6
func TestASlowLedgerIsNotGivenMoreThanItCanPlace(t *testing.T) {
	for _, perEntry := range []int{1, 250} {
		t.Run(fmt.Sprint(perEntry), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const orders, pace = 100_000, 1000
				w := open(t, newLedger(pace))
				w.queue(orders, perEntry)
				w.run(orders / pace * time.Second * 11 / 10)
				if depth := w.depth(); depth > 0 || len(w.placed) < orders {
					t.Errorf("%d of %d orders are placed, %d queued", len(w.placed), orders, depth)
				}
				if w.work > orders*105/100 {
					t.Errorf("%d orders were given to the ledger, want few more than %d", w.work, orders)
				}
			})
		})
	}
}

// covers Q5
func TestAnAbsentLedgerGetsEverythingWhenItIsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const orders = 20_000
		w := open(t, newLedger(100_000))
		w.queue(orders, 50)
		w.setAway(true)
		time.AfterFunc(2*time.Minute, func() { w.setAway(false) })
		w.run(4 * time.Minute)
		if depth := w.depth(); depth > 0 || len(w.placed) < orders {
			t.Errorf("%d of %d orders are placed, %d queued", len(w.placed), orders, depth)
		}
	})
}

// What it has taken it finishes, although its context ends.
// covers Q8
func TestAConsumerFinishesWhatItHasTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const orders = 10_000
		w := open(t, newLedger(1000))
		w.queue(orders, 50)
		w.run(3 * time.Second)
		if len(w.placed) == 0 || len(w.placed)+w.depth() != orders {
			t.Errorf("%d orders are placed, %d queued, want %d together", len(w.placed), w.depth(), orders)
		}
		if err := w.Drain(context.Background()); err != nil {
			t.Error(err)
		}
		if len(w.placed) != orders || w.work > orders || w.depth() > 0 {
			t.Errorf("%d orders are placed, %d queued, want %d and none", len(w.placed), w.depth(), orders)
		}
	})
}
