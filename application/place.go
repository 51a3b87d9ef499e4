package application

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"seckill/domain"
)

const (
	// maxPlace bounds the orders of one ledger transaction.
	maxPlace = 500
	// DefaultPlaceAtOnce is how many transactions of one Persist run at a time. A
	// transaction waits for the database several times, and for the disk once;
	// meanwhile the next ones get on. Two batches of a partition may be on their way
	// as well. Measured on two cores: with 4 at a time the ledger is quicker than the
	// grabs that it serves, and slows them down.
	DefaultPlaceAtOnce = 2
)

// Persist brings deliveries of the queue into the ledger and acknowledges
// those that are done, also when it fails with others. What is not acknowledged
// comes back through the queue.
//
// A delivery is done when every one of its orders is in the ledger, as an
// order, a rejection or a dead letter. An error means that the ledger or the
// queue did not work: try again later.
func (e *Engine) Persist(ctx context.Context, deliveries []domain.Delivery) error {
	var orders []domain.Order
	var from []int // the delivery of each order
	undone := make([]bool, len(deliveries))
	var problems []error
	for i, d := range deliveries {
		if d.Problem != "" {
			if err := e.bury(ctx, domain.DeadLetter{Payload: d.Raw, Reason: d.Problem}); err != nil {
				undone[i], problems = true, append(problems, err)
			}
			continue
		}
		for _, intent := range d.Intents {
			orders = append(orders, orderOf(intent))
			from = append(from, i)
		}
	}
	placed, err := e.placeAll(ctx, orders)
	problems = append(problems, err)
	for k, p := range placed {
		done, err := false, error(nil)
		if p != nil {
			done, err = e.conclude(ctx, *p, deliveries[from[k]].Attempts)
		}
		if !done || err != nil {
			undone[from[k]], problems = true, append(problems, err)
		}
	}
	e.releaseRejected(ctx, placed)
	var done []domain.Delivery
	for i, d := range deliveries {
		if !undone[i] {
			done = append(done, d)
		}
	}
	if len(done) > 0 {
		if err := e.Queue.Ack(ctx, done...); err != nil {
			problems = append(problems, fmt.Errorf("acknowledge: %w", err))
		}
	}
	return errors.Join(problems...)
}

func orderOf(intent domain.Intent) domain.Order {
	return domain.Order{
		ID: intent.Order.Order(), Sale: intent.Sale, Buyer: intent.Buyer, Request: intent.Request,
		Quantity: intent.Quantity, Epoch: intent.Epoch, Hold: intent.Order,
	}
}

func intentOf(order domain.Order) domain.Intent {
	return domain.Intent{
		Order: order.ID, Sale: order.Sale, Buyer: order.Buyer, Request: order.Request,
		Quantity: order.Quantity, Epoch: order.Epoch,
	}
}

// placeAll places orders in transactions of maxPlace, some of them at a time. It
// returns what became of each order: nil where its transaction failed.
func (e *Engine) placeAll(ctx context.Context, orders []domain.Order) ([]*domain.Placed, error) {
	placed := make([]*domain.Placed, len(orders))
	errs := make([]error, (len(orders)+maxPlace-1)/maxPlace)
	slots := make(chan struct{}, e.cfg.PlaceAtOnce)
	var group sync.WaitGroup
	for i := range errs {
		slots <- struct{}{}
		group.Go(func() {
			defer func() { <-slots }()
			from := i * maxPlace
			to := min(from+maxPlace, len(orders))
			answers, err := e.place(ctx, orders[from:to])
			for k := range answers {
				placed[from+k] = &answers[k]
			}
			errs[i] = err
		})
	}
	group.Wait()
	return placed, errors.Join(errs...)
}

func (e *Engine) place(ctx context.Context, orders []domain.Order) ([]domain.Placed, error) {
	start := e.Clock.Now()
	placed, err := e.Orders.Place(ctx, orders)
	if err != nil {
		return nil, fmt.Errorf("place %d orders: %w", len(orders), err)
	}
	e.watch.Placed(len(orders), e.Clock.Now().Sub(start))
	return placed, nil
}

// conclude tells what became of one order. It returns false when the order has
// to come back: it alone could not be placed and has tries left, or a
// subscriber did not take the news.
func (e *Engine) conclude(ctx context.Context, p domain.Placed, attempt int) (bool, error) {
	switch {
	case p.Err != nil:
		e.log.Error("an order cannot be placed", "order_id", p.Order.ID, "attempt", attempt, "error", p.Err)
		if attempt < e.cfg.MaxAttempts {
			return false, nil
		}
		return true, e.buryOrder(ctx, p)
	case p.Order.Status == domain.Rejected:
		e.waits.tell(p.Order)
		e.log.Warn("order rejected by the ledger", "order_id", p.Order.ID, "reason", p.Order.Reason)
	case p.Order.Status == domain.Pending:
		if err := e.publish(ctx, p.Order); err != nil {
			e.log.Warn("a subscriber did not take an event", "order_id", p.Order.ID, "error", err)
			return false, nil
		}
	default: // redelivered after it moved on; its own effect tells
		e.waits.tell(p.Order)
	}
	return true, nil
}

// buryOrder leaves the hold to the letter's effect: if the order got into the
// ledger by another way after all, there is no letter and no effect.
func (e *Engine) buryOrder(ctx context.Context, p domain.Placed) error {
	intent := intentOf(p.Order)
	payload, err := json.Marshal(intent)
	if err != nil {
		return fmt.Errorf("bury order %s: %w", p.Order.ID, err)
	}
	return e.bury(ctx, domain.DeadLetter{Intent: intent, Payload: string(payload), Reason: p.Err.Error()})
}

func (e *Engine) bury(ctx context.Context, letter domain.DeadLetter) error {
	if err := e.DeadLetters.Bury(ctx, letter); err != nil {
		return fmt.Errorf("bury: %w", err)
	}
	e.watch.Buried()
	e.log.Error("dead letter", "order_id", letter.Intent.Order, "reason", letter.Reason)
	return nil
}

// releaseRejected has the units of rejected orders on sale again at once. Their
// effects do it again if this fails.
func (e *Engine) releaseRejected(ctx context.Context, placed []*domain.Placed) {
	holds := map[domain.SaleID][]domain.OrderID{}
	for _, p := range placed {
		if p != nil && p.Err == nil && p.Order.Status == domain.Rejected {
			holds[p.Order.Sale] = append(holds[p.Order.Sale], p.Order.Hold)
		}
	}
	for sale, ids := range holds {
		if _, err := e.giveBack(ctx, sale, ids...); err != nil {
			e.log.Warn("releases are left to the relay", "sale", sale.String(), "holds", len(ids), "error", err)
		}
	}
}

// release frees a hold ahead of its effect, which does it again if this fails.
func (e *Engine) release(ctx context.Context, sale domain.SaleID, hold domain.OrderID) {
	ctx, cancel := detached(ctx)
	defer cancel()
	if _, err := e.giveBack(ctx, sale, hold); err != nil {
		e.log.Warn("release is left to the relay", "order_id", hold, "error", err)
	}
}
