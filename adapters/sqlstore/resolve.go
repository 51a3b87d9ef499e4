package sqlstore

import (
	"context"
	"fmt"

	"entgo.io/ent/dialect/sql"

	"seckill/domain"
	"seckill/ent"
	"seckill/ent/order"
	"seckill/ent/stock"
)

// Pay implements domain.Orders.
func (s *Store) Pay(ctx context.Context, id domain.OrderID, payment domain.PaymentID) (effect domain.Effect, err error) {
	err = s.inTx(ctx, func(ctx context.Context, tx *ent.Tx) error {
		o, won, err := s.decide(ctx, tx, id, domain.Pending, func(u *ent.OrderUpdate) {
			u.SetStatus(string(domain.Paid)).SetPayment(string(payment)).Modify(s.setNow(order.FieldPaidAt))
		})
		if err != nil {
			return err
		}
		if !won {
			effect, err = repeated(o, paidBy(o, payment))
			return err
		}
		if err := moveStock(ctx, tx, o.Sale, -o.Quantity, o.Quantity); err != nil {
			return err
		}
		effect, err = s.addEffect(ctx, tx, o)
		return err
	})
	return effect, err
}

// PayLate implements domain.Orders. Without the second hold there is nothing to
// release, but its effect still tells the subscribers, and releases a hold that
// was taken with nobody knowing.
func (s *Store) PayLate(ctx context.Context, id domain.OrderID, payment domain.PaymentID, reacquired bool) (effect domain.Effect, err error) {
	err = s.inTx(ctx, func(ctx context.Context, tx *ent.Tx) error {
		// Refund first: it locks the order, and is right unless the units are there.
		o, won, err := s.decide(ctx, tx, id, domain.Expired, func(u *ent.OrderUpdate) {
			u.SetStatus(string(domain.RefundDue)).SetPayment(string(payment)).SetHold(string(id.Late())).
				Modify(s.setNow(order.FieldPaidAt))
		})
		if err != nil {
			return err
		}
		if !won {
			effect, err = repeated(o, paidBy(o, payment))
			return err
		}
		units := int64(0)
		if reacquired {
			units = o.Quantity
			took, err := retake(ctx, tx, o)
			if err != nil {
				return err
			}
			if took {
				// Its units are not let go any more, so it is not closed.
				o.Status, o.ClosedAt = domain.Paid, moment(0)
				err := tx.Order.UpdateOneID(string(id)).SetStatus(string(domain.Paid)).SetClosedAt(0).Exec(ctx)
				if err != nil {
					return err
				}
			}
		}
		effect, err = s.addEffect(ctx, tx, o, units)
		return err
	})
	return effect, err
}

// retake takes the units of an expired order again, as sold.
func retake(ctx context.Context, tx *ent.Tx, o domain.Order) (bool, error) {
	took, err := retakeQuota(ctx, tx, o)
	if err != nil || !took {
		return false, err
	}
	n, err := tx.Stock.Update().Where(stock.ID(o.Sale.String()), hasFree(o.Quantity)).AddSold(o.Quantity).Save(ctx)
	if err != nil || n == 1 {
		return n == 1, err
	}
	return false, untakeQuota(ctx, tx, o)
}

// Cancel implements domain.Orders.
func (s *Store) Cancel(ctx context.Context, id domain.OrderID) (effect domain.Effect, err error) {
	err = s.inTx(ctx, func(ctx context.Context, tx *ent.Tx) error {
		o, won, err := s.decide(ctx, tx, id, domain.Pending, func(u *ent.OrderUpdate) {
			u.SetStatus(string(domain.Cancelled)).Modify(s.setNow(order.FieldClosedAt))
		})
		if err != nil {
			return err
		}
		if !won {
			effect, err = repeated(o, o.Status == domain.Cancelled)
			return err
		}
		if err := s.giveQuotas(ctx, tx, []domain.Order{o}); err != nil {
			return err
		}
		if err := moveStock(ctx, tx, o.Sale, -o.Quantity, 0); err != nil {
			return err
		}
		effect, err = s.addEffect(ctx, tx, o)
		return err
	})
	return effect, err
}

// decide is the compare-and-set: it changes an order that has the status, and
// returns the order as it is now and whether this call changed it.
func (s *Store) decide(ctx context.Context, tx *ent.Tx, id domain.OrderID, from domain.Status, change func(*ent.OrderUpdate)) (domain.Order, bool, error) {
	update := tx.Order.Update().Where(order.ID(string(id)), order.Status(string(from)))
	change(update)
	changed, err := update.Save(ctx)
	if err != nil {
		return domain.Order{}, false, err
	}
	row, err := tx.Order.Get(ctx, string(id))
	if ent.IsNotFound(err) {
		return domain.Order{}, false, fmt.Errorf("order: %w", domain.ErrNotFound)
	}
	if err != nil {
		return domain.Order{}, false, err
	}
	return toOrder(row), changed == 1, nil
}

// setNow sets a column to the database's clock.
func (s *Store) setNow(column string) func(*sql.UpdateBuilder) {
	return func(u *sql.UpdateBuilder) { u.Set(column, s.now()) }
}

// paidBy says whether the order has this very payment, taken or to be refunded.
func paidBy(o domain.Order, payment domain.PaymentID) bool {
	return (o.Status == domain.Paid || o.Status == domain.RefundDue) && o.Payment == payment
}

// repeated answers a call that came too late: for its own repeat the order
// again, for another outcome a ClosedError.
func repeated(o domain.Order, same bool) (domain.Effect, error) {
	if !same {
		return domain.Effect{}, &domain.ClosedError{Order: o}
	}
	return domain.Effect{Hold: o.Hold, Order: o}, nil
}
