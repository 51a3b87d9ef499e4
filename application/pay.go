package application

import (
	"context"
	"errors"
	"fmt"

	"seckill/domain"
)

// Pay records a payment of an order. An empty buyer means the operator.
//
// A payment of an expired order takes the units again if they are still there;
// else the order becomes RefundDue and the money has to go back.
// Repeat: the same payment id has the same answer.
// Errors: ErrInvalid, ErrNotFound, ErrOrderQueued (try again soon),
// ClosedError with the order when another outcome won, ErrUnavailable.
func (e *Engine) Pay(ctx context.Context, id domain.OrderID, buyer domain.BuyerID, payment domain.PaymentID) (domain.Order, error) {
	if _, err := domain.ParsePaymentID(string(payment)); err != nil {
		return domain.Order{}, err
	}
	order, err := e.decidable(ctx, id, buyer)
	if err != nil {
		return domain.Order{}, fmt.Errorf("pay: %w", err)
	}
	effect, err := e.Orders.Pay(ctx, id, payment)
	var closed *domain.ClosedError
	if errors.As(err, &closed) && closed.Order.Status == domain.Expired {
		effect, err = e.payLate(ctx, order, payment)
	}
	if err != nil {
		return domain.Order{}, fmt.Errorf("pay: %w", err)
	}
	e.applyNow(ctx, effect)
	return effect.Order, nil
}

// payLate takes the units in the hot store first, so that nobody else is
// promised them, and then lets the ledger decide. A crash in between leaves a
// late hold of an expired order, which reconcile releases.
func (e *Engine) payLate(ctx context.Context, order domain.Order, payment domain.PaymentID) (domain.Effect, error) {
	// The expiry's own release may not have reached the hot store yet. It is
	// decided, so anyone may apply it.
	if _, err := e.giveBack(ctx, order.Sale, order.ID); err != nil && !errors.Is(err, domain.ErrNotReady) {
		return domain.Effect{}, err
	}
	outcome, err := e.Stock.Reacquire(ctx, order.Sale, domain.Claim{
		Order: order.ID, Buyer: order.Buyer, Quantity: order.Quantity,
	})
	if err != nil {
		return domain.Effect{}, err
	}
	reacquired := outcome.Verdict == domain.Accepted
	if outcome.Verdict == domain.NotReady {
		activity, err := e.Activities.Activity(ctx, order.Sale.Activity)
		if err != nil {
			return domain.Effect{}, err
		}
		if activity.State != domain.Archived {
			return domain.Effect{}, domain.ErrNotReady
		}
		reacquired = true // no hot store to ask any more: the ledger decides alone
	}
	effect, err := e.Orders.PayLate(ctx, order.ID, payment, reacquired)
	if err == nil && effect.ID == 0 {
		e.followLate(ctx, effect.Order)
	}
	return effect, err
}

// followLate has the late hold follow a decision that an earlier call made: that
// one may have died, or decided while this one took the units.
func (e *Engine) followLate(ctx context.Context, order domain.Order) {
	if order.Status == domain.RefundDue {
		e.release(ctx, order.Sale, order.ID.Late())
		return
	}
	ctx, cancel := detached(ctx)
	defer cancel()
	if _, err := e.Stock.Settle(ctx, order.Sale, order.ID.Late()); err != nil {
		e.log.Warn("settling is left to the relay", "order_id", order.ID, "error", err)
	}
}

// Cancel gives an unpaid order's units back. An empty buyer means the operator.
// Repeat: the same answer. Errors: as Pay.
func (e *Engine) Cancel(ctx context.Context, id domain.OrderID, buyer domain.BuyerID) (domain.Order, error) {
	if _, err := e.decidable(ctx, id, buyer); err != nil {
		return domain.Order{}, fmt.Errorf("cancel: %w", err)
	}
	effect, err := e.Orders.Cancel(ctx, id)
	if err != nil {
		return domain.Order{}, fmt.Errorf("cancel: %w", err)
	}
	e.applyNow(ctx, effect)
	return effect.Order, nil
}

// decidable finds an order that the ledger can decide about.
func (e *Engine) decidable(ctx context.Context, id domain.OrderID, buyer domain.BuyerID) (domain.Order, error) {
	order, err := e.Order(ctx, id, buyer)
	if err != nil {
		return domain.Order{}, err
	}
	switch order.Status {
	case domain.Queued:
		return domain.Order{}, domain.ErrOrderQueued
	case domain.Rejected: // perhaps by a dead letter, of which Orders knows nothing
		return domain.Order{}, &domain.ClosedError{Order: order}
	}
	return order, nil
}
