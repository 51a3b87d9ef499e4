package fault

import (
	"context"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"go.uber.org/fx"

	"seckill/domain"
)

// killer ends its own process, as kill -9 does, when a point of the engine is
// passed for the n-th time. The points are the calls through the engine's ports:
// just before one, and when its answer has come and nobody has seen it yet.
type killer struct {
	point string // "" kills nobody
	hit   int

	mu     sync.Mutex
	passed int
}

func (k *killer) at(point string) {
	if point != k.point {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.passed++; k.passed == k.hit {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {} // until it has arrived; no other call goes on meanwhile
	}
}

// crashPoints lists all of them.
func crashPoints() []string {
	var points []string
	for _, call := range []string{
		"reserve", "release", "settle", "reacquire", "seal", "preheat", "set gate", "set total",
		"receive", "ack",
		"place", "pay", "pay late", "cancel", "expire", "applied",
		"save", "set state", "edit stock", "begin epoch",
		"lock", "locked work",
	} {
		points = append(points, "before "+call, "after "+call)
	}
	return points
}

// around passes the points of a call.
func around[T any](k *killer, call string, do func() (T, error)) (T, error) {
	k.at("before " + call)
	result, err := do()
	k.at("after " + call)
	return result, err
}

func (k *killer) around(call string, do func() error) error {
	_, err := around(k, call, func() (struct{}, error) { return struct{}{}, do() })
	return err
}

// decorate puts the points around the ports.
func (k *killer) decorate() fx.Option {
	return fx.Decorate(
		func(s domain.Stock) domain.Stock { return crashStock{s, k} },
		func(q domain.OrderQueue) domain.OrderQueue { return crashQueue{q, k} },
		func(o domain.Orders) domain.Orders { return crashOrders{o, k} },
		func(o domain.Outbox) domain.Outbox { return crashOutbox{o, k} },
		func(a domain.Activities) domain.Activities { return crashActivities{a, k} },
		func(l domain.Lock) domain.Lock { return crashLock{l, k} },
	)
}

type crashStock struct {
	domain.Stock
	k *killer
}

func (s crashStock) Reserve(ctx context.Context, sale domain.SaleID, claims []domain.Claim) ([]domain.Outcome, error) {
	return around(s.k, "reserve", func() ([]domain.Outcome, error) { return s.Stock.Reserve(ctx, sale, claims) })
}

func (s crashStock) Release(ctx context.Context, sale domain.SaleID, holds ...domain.OrderID) (int64, error) {
	return around(s.k, "release", func() (int64, error) { return s.Stock.Release(ctx, sale, holds...) })
}

func (s crashStock) Settle(ctx context.Context, sale domain.SaleID, holds ...domain.OrderID) (int64, error) {
	return around(s.k, "settle", func() (int64, error) { return s.Stock.Settle(ctx, sale, holds...) })
}

func (s crashStock) Reacquire(ctx context.Context, sale domain.SaleID, claim domain.Claim) (domain.Outcome, error) {
	return around(s.k, "reacquire", func() (domain.Outcome, error) { return s.Stock.Reacquire(ctx, sale, claim) })
}

func (s crashStock) Seal(ctx context.Context, sale domain.SaleID, fence int64, force bool) error {
	return s.k.around("seal", func() error { return s.Stock.Seal(ctx, sale, fence, force) })
}

func (s crashStock) Preheat(ctx context.Context, load domain.Load) error {
	return s.k.around("preheat", func() error { return s.Stock.Preheat(ctx, load) })
}

func (s crashStock) SetGate(ctx context.Context, sale domain.SaleID, gate domain.Gate, fence int64) error {
	return s.k.around("set gate", func() error { return s.Stock.SetGate(ctx, sale, gate, fence) })
}

func (s crashStock) SetTotal(ctx context.Context, sale domain.SaleID, seen, total int64, fence int64) error {
	return s.k.around("set total", func() error { return s.Stock.SetTotal(ctx, sale, seen, total, fence) })
}

type crashQueue struct {
	domain.OrderQueue
	k *killer
}

// Receive passes its points only when there was something to receive.
func (q crashQueue) Receive(ctx context.Context, partition, limit int) ([]domain.Delivery, error) {
	got, err := q.OrderQueue.Receive(ctx, partition, limit)
	if len(got) > 0 {
		q.k.at("before receive")
		q.k.at("after receive")
	}
	return got, err
}

func (q crashQueue) Ack(ctx context.Context, deliveries ...domain.Delivery) error {
	return q.k.around("ack", func() error { return q.OrderQueue.Ack(ctx, deliveries...) })
}

type crashOrders struct {
	domain.Orders
	k *killer
}

func (o crashOrders) Place(ctx context.Context, orders []domain.Order) ([]domain.Placed, error) {
	return around(o.k, "place", func() ([]domain.Placed, error) { return o.Orders.Place(ctx, orders) })
}

func (o crashOrders) Pay(ctx context.Context, id domain.OrderID, payment domain.PaymentID) (domain.Effect, error) {
	return around(o.k, "pay", func() (domain.Effect, error) { return o.Orders.Pay(ctx, id, payment) })
}

func (o crashOrders) PayLate(ctx context.Context, id domain.OrderID, payment domain.PaymentID, reacquired bool) (domain.Effect, error) {
	return around(o.k, "pay late", func() (domain.Effect, error) { return o.Orders.PayLate(ctx, id, payment, reacquired) })
}

func (o crashOrders) Cancel(ctx context.Context, id domain.OrderID) (domain.Effect, error) {
	return around(o.k, "cancel", func() (domain.Effect, error) { return o.Orders.Cancel(ctx, id) })
}

func (o crashOrders) Expire(ctx context.Context, sale domain.SaleID, limit int, fence domain.Fence) ([]domain.Effect, error) {
	return around(o.k, "expire", func() ([]domain.Effect, error) { return o.Orders.Expire(ctx, sale, limit, fence) })
}

type crashOutbox struct {
	domain.Outbox
	k *killer
}

func (o crashOutbox) Applied(ctx context.Context, ids ...int64) error {
	return o.k.around("applied", func() error { return o.Outbox.Applied(ctx, ids...) })
}

// A field named Activities would hide the method.
type catalogue = domain.Activities

type crashActivities struct {
	catalogue
	k *killer
}

func (a crashActivities) Save(ctx context.Context, activity domain.Activity) error {
	return a.k.around("save", func() error { return a.catalogue.Save(ctx, activity) })
}

func (a crashActivities) SetState(ctx context.Context, id domain.ActivityID, from, to domain.State) error {
	return a.k.around("set state", func() error { return a.catalogue.SetState(ctx, id, from, to) })
}

func (a crashActivities) EditStock(ctx context.Context, edit domain.StockEdit, fence domain.Fence) (domain.StockEdit, error) {
	return around(a.k, "edit stock", func() (domain.StockEdit, error) { return a.catalogue.EditStock(ctx, edit, fence) })
}

func (a crashActivities) BeginEpoch(ctx context.Context, sale domain.SaleID, fence domain.Fence) (int64, error) {
	return around(a.k, "begin epoch", func() (int64, error) { return a.catalogue.BeginEpoch(ctx, sale, fence) })
}

type crashLock struct {
	domain.Lock
	k *killer
}

func (l crashLock) Do(ctx context.Context, key string, ttl time.Duration, work func(context.Context, domain.Lease) error) error {
	return l.k.around("lock", func() error {
		return l.Lock.Do(ctx, key, ttl, func(ctx context.Context, lease domain.Lease) error {
			return l.k.around("locked work", func() error { return work(ctx, lease) })
		})
	})
}

// crashHits are the passes at which it is killed.
var crashHits = []int{1, 2, 10}

// hitOf spreads the hits over the pairs of stores, so that a short run has every
// point with every pair and every hit with every point.
func hitOf(point string, pair int) int {
	return crashHits[(slices.Index(crashPoints(), point)+pair)%len(crashHits)]
}
