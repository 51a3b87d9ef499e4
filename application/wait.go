package application

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"seckill/domain"
)

const (
	pollEvery = 100 * time.Millisecond // commits of other nodes are seen this late at most
	pollMax   = 500                    // ids in one look at the ledger
)

// waits lets callers wait until the ledger has an order. A commit by this
// process wakes them at once; for commits by others, one goroutine looks for
// all of them together, for as long as anybody waits.
type waits struct {
	orders domain.Orders
	log    *slog.Logger

	mu      sync.Mutex
	waiting map[domain.OrderID][]*wait
	polling bool
}

type wait struct {
	id    domain.OrderID
	all   *waits
	found chan domain.Order // capacity 1: telling never blocks
}

func newWaits(orders domain.Orders, log *slog.Logger) *waits {
	return &waits{orders: orders, log: log, waiting: map[domain.OrderID][]*wait{}}
}

// add starts to wait; the caller must stop it.
func (w *waits) add(id domain.OrderID) *wait {
	one := &wait{id: id, all: w, found: make(chan domain.Order, 1)}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.waiting[id] = append(w.waiting[id], one)
	if !w.polling {
		w.polling = true
		go w.poll()
	}
	return one
}

func (one *wait) stop() {
	w := one.all
	w.mu.Lock()
	defer w.mu.Unlock()
	rest := w.waiting[one.id]
	for i, other := range rest {
		if other == one {
			rest = append(rest[:i:i], rest[i+1:]...)
			break
		}
	}
	if len(rest) == 0 {
		delete(w.waiting, one.id)
		return
	}
	w.waiting[one.id] = rest
}

// result waits for the order, bounded by ctx.
func (one *wait) result(ctx context.Context) (domain.Order, error) {
	select {
	case order := <-one.found:
		return order, nil
	case <-ctx.Done():
		return domain.Order{}, ctx.Err()
	}
}

// tell wakes everybody who waits for the order.
func (w *waits) tell(order domain.Order) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, one := range w.waiting[order.ID] {
		select {
		case one.found <- order:
		default: // has been told already
		}
	}
}

// poll ends when nobody waits any more; the next add starts it again.
func (w *waits) poll() {
	for {
		time.Sleep(pollEvery)
		ids, done := w.ids()
		if done {
			return
		}
		for len(ids) > 0 {
			n := min(len(ids), pollMax)
			w.look(ids[:n])
			ids = ids[n:]
		}
	}
}

func (w *waits) ids() (ids []domain.OrderID, done bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.waiting) == 0 {
		w.polling = false
		return nil, true
	}
	for id := range w.waiting {
		ids = append(ids, id)
	}
	return ids, false
}

func (w *waits) look(ids []domain.OrderID) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	orders, err := w.orders.Find(ctx, ids...)
	if err != nil {
		w.log.Warn("could not look for awaited orders", "error", err)
		return
	}
	for _, order := range orders {
		w.tell(order)
	}
}
