package memory

import (
	"context"
	"hash/maphash"
	"time"

	"seckill/domain"
)

// receiveWait is how long Receive waits for an entry.
const receiveWait = time.Second

// Defaults of the queue.
const (
	DefaultPartitions  = 1
	DefaultBackoff     = 5 * time.Second // longer than a batch takes to commit
	DefaultBackoffMax  = 5 * time.Minute
	maxQueuePartitions = 1024
)

// Option changes a default of a Stock.
type Option func(*settings)

type settings struct {
	partitions int
	backoff    time.Duration
	backoffMax time.Duration
}

// WithPartitions splits the queue by sale, so that several consumers can work
// and each sale still is first in first out. Figures outside 1 … 1024 are moved to
// the nearer end; default DefaultPartitions.
func WithPartitions(n int) Option { return func(s *settings) { s.partitions = n } }

// WithBackoff sets how long a delivery stays with its consumer before it may be
// reclaimed: base after the first delivery, then twice as long each time, up to
// limit. Defaults DefaultBackoff and DefaultBackoffMax.
func WithBackoff(base, limit time.Duration) Option {
	return func(s *settings) { s.backoff, s.backoffMax = base, limit }
}

// Queue holds the order intents of a Stock. It has no bound of its own and
// needs none: an entry is written for accepted holds only, and those are
// bounded by the stock.
type Queue struct {
	clock      domain.Clock
	seed       maphash.Seed
	partitions []*partition
}

var _ domain.OrderQueue = (*Queue)(nil)

func newQueue(clock domain.Clock, options []Option) *Queue {
	set := settings{partitions: DefaultPartitions, backoff: DefaultBackoff, backoffMax: DefaultBackoffMax}
	for _, option := range options {
		option(&set)
	}
	q := &Queue{clock: clock, seed: maphash.MakeSeed()}
	for n := range min(max(set.partitions, 1), maxQueuePartitions) {
		q.partitions = append(q.partitions, newPartition(n, set.backoff, max(set.backoff, set.backoffMax)))
	}
	return q
}

// Partitions implements domain.OrderQueue.
func (q *Queue) Partitions() int { return len(q.partitions) }

// Receive implements domain.OrderQueue.
func (q *Queue) Receive(ctx context.Context, partition, limit int) ([]domain.Delivery, error) {
	p, err := q.partition(partition)
	if err != nil {
		return nil, err
	}
	timeout := time.NewTimer(receiveWait)
	defer timeout.Stop()
	for {
		if err := ctx.Err(); err != nil {
			p.wake() // it may be this call that was woken for an entry
			return nil, err
		}
		if got := p.receive(limit, q.clock.Now()); len(got) > 0 || limit < 1 {
			return got, nil
		}
		select {
		case <-p.arrived:
		case <-timeout.C:
			return nil, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// Reclaim implements domain.OrderQueue.
func (q *Queue) Reclaim(_ context.Context, partition, limit int) ([]domain.Delivery, error) {
	p, err := q.partition(partition)
	if err != nil {
		return nil, err
	}
	return p.reclaim(limit, q.clock.Now()), nil
}

// Ack implements domain.OrderQueue.
func (q *Queue) Ack(_ context.Context, deliveries ...domain.Delivery) error {
	for _, delivery := range deliveries {
		p, err := q.partition(delivery.Partition)
		if err != nil {
			return err
		}
		p.ack(delivery.ID)
	}
	return nil
}

// Depth implements domain.OrderQueue.
func (q *Queue) Depth(context.Context) (domain.Depth, error) {
	var depth domain.Depth
	now := q.clock.Now()
	for _, p := range q.partitions {
		orders, oldest := p.depth(now)
		depth.Orders += orders
		depth.Oldest = max(depth.Oldest, oldest)
	}
	return depth, nil
}

// push makes one entry of intents that were accepted together; none: no entry.
func (q *Queue) push(sale domain.SaleID, intents []domain.Intent, now time.Time) {
	if len(intents) > 0 {
		q.home(sale).push(sale, intents, now)
	}
}

// units is how many units of a sale are in entries that are not acknowledged.
func (q *Queue) units(sale domain.SaleID) int64 { return q.home(sale).unitsOf(sale) }

// count is the same figure and, in the same step, what the entries add up to.
func (q *Queue) count(sale domain.SaleID) (recorded, counted int64) { return q.home(sale).count(sale) }

// recount sets the figure to what the entries add up to.
func (q *Queue) recount(sale domain.SaleID) { q.home(sale).recount(sale) }

func (q *Queue) home(sale domain.SaleID) *partition {
	return q.partitions[maphash.Comparable(q.seed, sale)%uint64(len(q.partitions))]
}

func (q *Queue) partition(n int) (*partition, error) {
	if n < 0 || n >= len(q.partitions) {
		return nil, domain.Invalid("partition", "must be from 0 to %d", len(q.partitions)-1)
	}
	return q.partitions[n], nil
}
