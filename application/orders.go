package application

import (
	"context"
	"errors"
	"fmt"
	"time"

	"seckill/domain"
)

// MaxWait bounds how long AwaitOrder waits.
const MaxWait = 30 * time.Second

// Order finds a buyer's order, in the ledger or still queued. An empty buyer
// means the operator, who sees every order.
//
// Errors: ErrNotFound, also for somebody else's order; ErrUnavailable.
func (e *Engine) Order(ctx context.Context, id domain.OrderID, buyer domain.BuyerID) (domain.Order, error) {
	order, err := e.order(ctx, id)
	if err != nil {
		return domain.Order{}, fmt.Errorf("find order: %w", err)
	}
	if order.Reason == domain.ReasonLost {
		order.Buyer = buyer // nobody knows whose it was
	}
	if buyer != "" && order.Buyer != buyer {
		return domain.Order{}, fmt.Errorf("find order: %w", domain.ErrNotFound)
	}
	return order, nil
}

// order looks in the ledger, then in the hot store, then in the ledger again:
// in between the order may have moved from one to the other.
func (e *Engine) order(ctx context.Context, id domain.OrderID) (domain.Order, error) {
	if order, err := e.ledgerOrder(ctx, id); err == nil || !errors.Is(err, domain.ErrNotFound) {
		return order, err
	}
	hold, err := e.Stock.Hold(ctx, id.Sale(), id)
	if err == nil && hold.State == domain.Held {
		return domain.Order{
			ID: id, Sale: id.Sale(), Buyer: hold.Buyer, Request: hold.Request,
			Quantity: hold.Quantity, Status: domain.Queued, CreatedAt: hold.CreatedAt,
		}, nil
	}
	if err != nil && !errors.Is(err, domain.ErrNotFound) {
		return domain.Order{}, err
	}
	order, err := e.ledgerOrder(ctx, id)
	if errors.Is(err, domain.ErrNotFound) {
		return e.lost(ctx, id)
	}
	return order, err
}

func (e *Engine) ledgerOrder(ctx context.Context, id domain.OrderID) (domain.Order, error) {
	orders, err := e.Orders.Find(ctx, id)
	if err != nil {
		return domain.Order{}, err
	}
	if len(orders) == 0 {
		return domain.Order{}, domain.ErrNotFound
	}
	return orders[0], nil
}

// AwaitOrder is Order, but while the order is queued it waits for the ledger,
// at most for the given time and at most MaxWait.
func (e *Engine) AwaitOrder(ctx context.Context, id domain.OrderID, buyer domain.BuyerID, atMost time.Duration) (domain.Order, error) {
	if atMost <= 0 {
		return e.Order(ctx, id, buyer)
	}
	commit := e.waits.add(id) // before the look, so that no commit falls in between
	defer commit.stop()
	order, err := e.Order(ctx, id, buyer)
	if err != nil || order.Status != domain.Queued {
		return order, err
	}
	ctx, cancel := context.WithTimeout(ctx, min(atMost, MaxWait))
	defer cancel()
	if placed, err := commit.result(ctx); err == nil {
		return placed, nil
	}
	return order, nil
}
