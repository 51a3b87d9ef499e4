package main

import (
	"context"
	"slices"
	"sync/atomic"

	"go.uber.org/fx"

	"seckill/domain"
)

// honest is the engine as it is.
const honest = "honest"

// doubles are engines that are broken, each in its own way.
var doubles = map[string]fx.Option{
	"one unit too many": decorated(func(s *brokenStock) {
		s.preheat = func(load domain.Load) domain.Load { load.Total++; return load }
	}),
	"one unit too few": decorated(func(s *brokenStock) {
		s.preheat = func(load domain.Load) domain.Load { load.Total--; return load }
	}),
	"a limit of two": decorated(func(s *brokenStock) {
		s.gate = func(gate domain.Gate) domain.Gate { gate.PerUserLimit++; return gate }
	}),
	// The first one to hear "sold out" is told that it has got a unit.
	"accepted without a unit": decorated(func(s *brokenStock) {
		s.change = func(n int64, claim domain.Claim, outcome *domain.Outcome) {
			if outcome.Verdict == domain.SoldOut && s.once() {
				*outcome = domain.Outcome{Verdict: domain.Accepted, Order: claim.Order}
			}
		}
	}),
	"one order id for two": decorated(func(s *brokenStock) {
		var first atomic.Pointer[domain.OrderID]
		s.change = func(_ int64, _ domain.Claim, outcome *domain.Outcome) {
			if outcome.Verdict == domain.Accepted && !first.CompareAndSwap(nil, &outcome.Order) && s.once() {
				outcome.Order = *first.Load()
			}
		}
	}),
	// A buyer hears "sold out" for no reason, as the answer to an error would be.
	"sold out for a moment": decorated(func(s *brokenStock) {
		s.instead = func(n int64) bool { return n == 20 }
	}),
	"sold out too early for good": decorated(func(s *brokenStock) {
		s.instead = func(n int64) bool { return n >= 60 }
	}),
	// The order that a buyer is shown is not the one that is held.
	"another order id": decorated(func(s *brokenStock) {
		s.change = func(_ int64, _ domain.Claim, outcome *domain.Outcome) {
			if outcome.Verdict == domain.Accepted && s.once() {
				outcome.Order += "0"
			}
		}
	}),
	"a lost order": fx.Decorate(func(queue domain.OrderQueue) domain.OrderQueue {
		return &losingQueue{OrderQueue: queue}
	}),
	"a release that frees nothing": decorated(func(s *brokenStock) { s.keep = true }),
}

// decorated puts a broken stock before the real one.
func decorated(breakIt func(*brokenStock)) fx.Option {
	return fx.Decorate(func(stock domain.Stock) domain.Stock {
		broken := &brokenStock{Stock: stock}
		breakIt(broken)
		return broken
	})
}

// brokenStock is a stock with one fault.
type brokenStock struct {
	domain.Stock
	preheat func(domain.Load) domain.Load
	gate    func(domain.Gate) domain.Gate
	instead func(n int64) bool // say "sold out" to the n-th claim, and reserve nothing
	change  func(n int64, claim domain.Claim, outcome *domain.Outcome)
	keep    bool // do not release

	claims atomic.Int64
	done   atomic.Bool
}

// once is true the first time.
func (s *brokenStock) once() bool { return s.done.CompareAndSwap(false, true) }

func (s *brokenStock) Preheat(ctx context.Context, load domain.Load) error {
	if s.preheat != nil {
		load = s.preheat(load)
	}
	return s.Stock.Preheat(ctx, load)
}

func (s *brokenStock) SetGate(ctx context.Context, sale domain.SaleID, gate domain.Gate, fence int64) error {
	if s.gate != nil {
		gate = s.gate(gate)
	}
	return s.Stock.SetGate(ctx, sale, gate, fence)
}

func (s *brokenStock) Reserve(ctx context.Context, sale domain.SaleID, claims []domain.Claim) ([]domain.Outcome, error) {
	n := s.claims.Add(1)
	if s.instead != nil && s.instead(n) {
		return slices.Repeat([]domain.Outcome{{Verdict: domain.SoldOut}}, len(claims)), nil
	}
	outcomes, err := s.Stock.Reserve(ctx, sale, claims)
	if s.change != nil && err == nil {
		for i := range outcomes {
			s.change(n, claims[i], &outcomes[i])
		}
	}
	return outcomes, err
}

func (s *brokenStock) Release(ctx context.Context, sale domain.SaleID, holds ...domain.OrderID) (int64, error) {
	if s.keep {
		return 0, nil
	}
	return s.Stock.Release(ctx, sale, holds...)
}

// losingQueue forgets the first order that it is asked for.
type losingQueue struct {
	domain.OrderQueue
	done atomic.Bool
}

func (q *losingQueue) Receive(ctx context.Context, partition, limit int) ([]domain.Delivery, error) {
	list, err := q.OrderQueue.Receive(ctx, partition, limit)
	if len(list) > 0 && len(list[0].Intents) > 0 && q.done.CompareAndSwap(false, true) {
		list[0].Intents = list[0].Intents[1:]
	}
	return list, err
}
