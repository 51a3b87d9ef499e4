package redisstock

import (
	"context"
	"time"

	"seckill/domain"
)

// Tidy removes consumers that have been silent for idle, instead of an hour.
func (q *Queue) Tidy(ctx context.Context, partition int, idle time.Duration) error {
	stream, err := q.stream(partition)
	if err != nil {
		return err
	}
	return q.tidy(ctx, stream, idle)
}

// PartitionOf is the partition of a sale, for tests that look at keys.
var PartitionOf = partitionOf

// Waiting is how many claims wait in a sale's first lane.
func Waiting(s *Stock, sale domain.SaleID) int {
	l := &s.lanes[s.keys(sale).partition]
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.waiting)
}

// Calls is how many calls of a sale's first lane are on their way.
func Calls(s *Stock, sale domain.SaleID) int {
	l := &s.lanes[s.keys(sale).partition]
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.calls
}

// Crowd fills a sale's first lane with callers who wait for ever, and returns
// what empties it.
func Crowd(s *Stock, sale domain.SaleID) func() {
	l := &s.lanes[s.keys(sale).partition]
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waiting = make([]*seat, maxWaiting)
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.waiting = nil
	}
}
