package property

import (
	"context"
	"time"

	"seckill/domain"
)

// faults are what a test has done to the ports of its engine.
type faults struct {
	deaf   bool // the hot store is not reached with the outcomes of orders
	ackOff bool // the queue is not reached with acknowledgements
}

// faultyStock cannot always be told about outcomes.
type faultyStock struct {
	domain.Stock
	faults *faults
}

func (s faultyStock) Release(ctx context.Context, sale domain.SaleID, holds ...domain.OrderID) (int64, error) {
	if s.faults.deaf {
		return 0, domain.ErrUnavailable
	}
	return s.Stock.Release(ctx, sale, holds...)
}

func (s faultyStock) Settle(ctx context.Context, sale domain.SaleID, holds ...domain.OrderID) (int64, error) {
	if s.faults.deaf {
		return 0, domain.ErrUnavailable
	}
	return s.Stock.Settle(ctx, sale, holds...)
}

// faultyQueue cannot always be told what is done.
type faultyQueue struct {
	domain.OrderQueue
	faults *faults
}

func (q faultyQueue) Ack(ctx context.Context, deliveries ...domain.Delivery) error {
	if q.faults.ackOff {
		return domain.ErrUnavailable
	}
	return q.OrderQueue.Ack(ctx, deliveries...)
}

// promptOutbox does not leave young effects to whoever made the decision: here
// nobody else is at work.
type promptOutbox struct{ domain.Outbox }

func (o promptOutbox) Effects(ctx context.Context, _ time.Duration, after int64, max int) ([]domain.Effect, error) {
	return o.Outbox.Effects(ctx, 0, after, max)
}
