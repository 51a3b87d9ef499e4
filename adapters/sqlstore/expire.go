package sqlstore

import (
	"context"

	"entgo.io/ent/dialect/sql"

	"seckill/domain"
	"seckill/ent"
	"seckill/ent/order"
)

// Due implements domain.Orders: the sales with the oldest deadline first.
func (s *Store) Due(ctx context.Context, max int) ([]domain.SaleID, error) {
	var rows []struct {
		ActivityID int64 `json:"activity_id"`
		SkuID      int64 `json:"sku_id"`
	}
	err := s.read.Order.Query().Where(s.due).
		Modify(func(q *sql.Selector) {
			q.Select(q.C(order.FieldActivityID), q.C(order.FieldSkuID)).
				GroupBy(q.C(order.FieldActivityID), q.C(order.FieldSkuID)).
				OrderBy(sql.Min(q.C(order.FieldExpiresAt))).Limit(max)
		}).Scan(ctx, &rows)
	if err != nil {
		return nil, fault(err)
	}
	sales := make([]domain.SaleID, len(rows))
	for i, row := range rows {
		sales[i] = domain.SaleID{Activity: domain.ActivityID(row.ActivityID), SKU: domain.SKUID(row.SkuID)}
	}
	return sales, nil
}

// Expire implements domain.Orders. At most maxRows orders go at a time.
func (s *Store) Expire(ctx context.Context, sale domain.SaleID, max int, fence domain.Fence) (effects []domain.Effect, err error) {
	err = s.inTx(ctx, func(ctx context.Context, tx *ent.Tx) error {
		effects = nil
		if err := s.guard(ctx, tx, fence); err != nil {
			return err
		}
		due, err := s.lockDue(ctx, tx, sale, min(max, maxRows))
		if err != nil || len(due) == 0 {
			return err
		}
		now, err := s.clock(ctx, tx)
		if err != nil {
			return err
		}
		ids, units := make([]string, len(due)), int64(0)
		for i := range due {
			due[i].Status, due[i].ClosedAt = domain.Expired, now
			ids[i] = string(due[i].ID)
			units += due[i].Quantity
		}
		err = tx.Order.Update().Where(order.IDIn(ids...)).
			SetStatus(string(domain.Expired)).SetClosedAt(millis(now)).Exec(ctx)
		if err != nil {
			return err
		}
		if err := s.giveQuotas(ctx, tx, due); err != nil {
			return err
		}
		if err := moveStock(ctx, tx, sale, -units, 0); err != nil {
			return err
		}
		effects, err = s.addEffects(ctx, tx, due)
		return err
	})
	if err != nil {
		return nil, err
	}
	return effects, nil
}

// lockDue picks the orders of a sale that are the longest due, then locks them
// by id and keeps those that nobody has decided in between.
func (s *Store) lockDue(ctx context.Context, tx *ent.Tx, sale domain.SaleID, max int) ([]domain.Order, error) {
	ids, err := tx.Order.Query().
		Where(s.due, order.ActivityID(int64(sale.Activity)), order.SkuID(int64(sale.SKU))).
		Order(ent.Asc(order.FieldExpiresAt, order.FieldID)).Limit(max).IDs(ctx)
	if err != nil || len(ids) == 0 {
		return nil, err
	}
	rows, err := tx.Order.Query().
		Where(order.IDIn(ids...), order.Status(string(domain.Pending)), s.forUpdate).
		Order(ent.Asc(order.FieldID)).All(ctx)
	if err != nil {
		return nil, err
	}
	due := make([]domain.Order, len(rows))
	for i, row := range rows {
		due[i] = toOrder(row)
	}
	return due, nil
}

// due is true of a pending order whose deadline has passed.
func (s *Store) due(q *sql.Selector) {
	q.Where(sql.EQ(q.C(order.FieldStatus), string(domain.Pending)))
	q.Where(sql.P(func(b *sql.Builder) {
		b.Ident(q.C(order.FieldExpiresAt)).WriteString(" <= ").Join(s.now())
	}))
}
