package application

import (
	"context"
	"fmt"

	"seckill/domain"
)

// ListDeadLetters lists up to max letters with an id above after, oldest first.
func (e *Engine) ListDeadLetters(ctx context.Context, after int64, max int) ([]domain.DeadLetter, error) {
	letters, err := e.DeadLetters.Letters(ctx, after, max)
	if err != nil {
		return nil, fmt.Errorf("list dead letters: %w", err)
	}
	return letters, nil
}

// Replay tries to place a dead letter's order again. Its units were given back
// when it was buried, so they are taken again first, whatever the gate says.
//
// Errors: ErrNotFound; ErrState when the letter holds no order, when no units
// are left or the buyer has others by now, or when the ledger rejects the
// order: then the letter stays. ErrUnavailable.
func (e *Engine) Replay(ctx context.Context, id int64) (domain.Order, error) {
	letter, err := e.DeadLetters.Letter(ctx, id)
	if err != nil {
		return domain.Order{}, fmt.Errorf("replay dead letter %d: %w", id, err)
	}
	order, err := e.replay(ctx, letter)
	if err != nil {
		return domain.Order{}, fmt.Errorf("replay dead letter %d: %w", id, err)
	}
	if err := e.DeadLetters.Revive(ctx, id); err != nil {
		return domain.Order{}, fmt.Errorf("replay dead letter %d: %w", id, err)
	}
	if err := e.publish(ctx, order); err != nil {
		e.log.Warn("a subscriber did not take an event", "order_id", order.ID, "error", err)
	}
	return order, nil
}

func (e *Engine) replay(ctx context.Context, letter domain.DeadLetter) (domain.Order, error) {
	intent := letter.Intent
	if intent.Order == "" {
		return domain.Order{}, fmt.Errorf("%w: the entry could not be decoded, so it can only be discarded", domain.ErrState)
	}
	// The release of the buried hold may still be on its way.
	if _, err := e.giveBack(ctx, intent.Sale, intent.Order); err != nil {
		return domain.Order{}, err
	}
	outcome, err := e.Stock.Reacquire(ctx, intent.Sale, domain.Claim{
		Order: intent.Order, Buyer: intent.Buyer, Quantity: intent.Quantity,
	})
	if err != nil {
		return domain.Order{}, err
	}
	if outcome.Verdict != domain.Accepted {
		return domain.Order{}, fmt.Errorf("%w: %s", domain.ErrState, outcome.Verdict)
	}
	level, err := e.Stock.Level(ctx, intent.Sale)
	if err != nil {
		return domain.Order{}, err
	}
	order := orderOf(intent)
	order.Hold = intent.Order.Late()
	order.Epoch = level.Epoch
	placed, err := e.place(ctx, []domain.Order{order})
	if err != nil {
		return domain.Order{}, err
	}
	p := placed[0]
	if p.Err != nil {
		e.release(ctx, intent.Sale, order.Hold)
		return domain.Order{}, fmt.Errorf("%w: the ledger does not take the order: %s", domain.ErrState, p.Err.Error())
	}
	if p.Order.Status == domain.Rejected {
		e.release(ctx, intent.Sale, order.Hold)
		return domain.Order{}, fmt.Errorf("%w: the ledger rejects the order: %s", domain.ErrState, p.Order.Reason)
	}
	return p.Order, nil
}

// Discard gives a dead letter up: its order is recorded as rejected.
// Errors: ErrNotFound, ErrUnavailable.
func (e *Engine) Discard(ctx context.Context, id int64) error {
	if err := e.DeadLetters.Discard(ctx, id); err != nil {
		return fmt.Errorf("discard dead letter %d: %w", id, err)
	}
	return nil
}
