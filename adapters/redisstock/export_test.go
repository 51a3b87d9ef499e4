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

// Lend makes a loan and stops after so many of its three steps, as a process
// does that dies.
func Lend(ctx context.Context, s *Stock, sale domain.SaleID, lender, borrower int, units int64, steps int) error {
	l, err := s.find(ctx, sale)
	if err != nil {
		return err
	}
	if steps == 3 {
		return s.bring(ctx, l, lender, borrower, units)
	}
	reply, err := s.command(ctx, lendScript, []string{l.segments[lender].sale}, borrower, units)
	if err != nil || steps == 1 {
		return err
	}
	_, err = s.command(ctx, borrowScript, []string{l.segments[borrower].sale}, lender, reply[1], reply[2], reply[3])
	return err
}

// LateLoan takes a loan out and returns what brings it to its borrower.
func LateLoan(ctx context.Context, t interface{ Fatal(...any) }, s *Stock, sale domain.SaleID, lender, borrower int, units int64) func() error {
	l, err := s.find(ctx, sale)
	if err != nil {
		t.Fatal(err)
	}
	reply, err := s.command(ctx, lendScript, []string{l.segments[lender].sale}, borrower, units)
	if err != nil {
		t.Fatal(err)
	}
	return func() error {
		_, err := s.command(ctx, borrowScript, []string{l.segments[borrower].sale}, lender, reply[1], reply[2], reply[3])
		return err
	}
}

// ReleaseIn releases in one segment, as a process does that is cut off.
func ReleaseIn(ctx context.Context, s *Stock, sale domain.SaleID, segment int, id domain.OrderID) error {
	l, err := s.find(ctx, sale)
	if err != nil {
		return err
	}
	keys := l.segments[segment]
	_, err = s.apply(ctx, releaseScript, []string{keys.sale, keys.holds, keys.buyers}, nil, []domain.OrderID{id})
	return err
}

// Home is the segment that decides a buyer's claims.
func Home(t interface{ Fatal(...any) }, s *Stock, sale domain.SaleID, buyer domain.BuyerID) int {
	l, err := s.find(context.Background(), sale)
	if err != nil {
		t.Fatal(err)
	}
	return l.home(buyer)
}
