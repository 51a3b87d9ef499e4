package sqlstore

import (
	"context"
	"slices"
	"time"

	"entgo.io/ent/dialect/sql"

	"seckill/domain"
	"seckill/ent"
	"seckill/ent/effect"
)

// Effects implements domain.Outbox.
func (s *Store) Effects(ctx context.Context, minAge time.Duration, after int64, max int) ([]domain.Effect, error) {
	rows, err := s.read.Effect.Query().Where(effect.IDGT(after), func(q *sql.Selector) {
		q.Where(sql.P(func(b *sql.Builder) {
			b.Ident(q.C(effect.FieldCreatedAt)).WriteString(" <= ").Join(s.now()).WriteString(" - ").Arg(minAge.Milliseconds())
		}))
	}).Order(ent.Asc(effect.FieldID)).Limit(max).All(ctx)
	if err != nil {
		return nil, fault(err)
	}
	effects := make([]domain.Effect, len(rows))
	for i, row := range rows {
		o, err := decodeOrder(row.Snapshot)
		if err != nil {
			return nil, fault(err)
		}
		effects[i] = domain.Effect{ID: row.ID, Hold: domain.OrderID(row.Hold), Order: o}
	}
	return effects, nil
}

// Applied implements domain.Outbox.
func (s *Store) Applied(ctx context.Context, ids ...int64) error {
	for chunk := range slices.Chunk(ids, maxRows) {
		err := s.inTx(ctx, func(ctx context.Context, tx *ent.Tx) error {
			_, err := tx.Effect.Delete().Where(effect.IDIn(chunk...)).Exec(ctx)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// addEffect writes the outbox row of one decision. The units are those of the
// order, unless given.
func (s *Store) addEffect(ctx context.Context, tx *ent.Tx, o domain.Order, units ...int64) (domain.Effect, error) {
	effects, err := s.addEffects(ctx, tx, []domain.Order{o}, units...)
	if err != nil {
		return domain.Effect{}, err
	}
	return effects[0], nil
}

// addEffects writes the outbox rows of decisions that came to the same status.
// A row that is there already stays: a hold comes to a status once. The ids are
// read back, because with MySQL a statement tells only the first of many.
func (s *Store) addEffects(ctx context.Context, tx *ent.Tx, orders []domain.Order, units ...int64) ([]domain.Effect, error) {
	effects := make([]domain.Effect, 0, len(orders))
	for chunk := range slices.Chunk(orders, maxRows) {
		rows := make([]*ent.EffectCreate, len(chunk))
		holds := make([]string, len(chunk))
		for i, o := range chunk {
			text, err := encodeOrder(o)
			if err != nil {
				return nil, err
			}
			quantity := o.Quantity
			if len(units) > 0 {
				quantity = units[0]
			}
			holds[i] = string(o.Hold)
			rows[i] = tx.Effect.Create().
				SetHold(holds[i]).
				SetStatus(string(o.Status)).
				SetActivityID(int64(o.Sale.Activity)).
				SetSkuID(int64(o.Sale.SKU)).
				SetUnits(quantity).
				SetSnapshot(text).
				SetCreatedAt(max(millis(o.PaidAt), millis(o.ClosedAt)))
		}
		err := tx.Effect.CreateBulk(rows...).OnConflictColumns(effect.FieldHold, effect.FieldStatus).Ignore().Exec(ctx)
		if err != nil {
			return nil, err
		}
		written, err := tx.Effect.Query().
			Where(effect.HoldIn(holds...), effect.Status(string(chunk[0].Status))).
			Select(effect.FieldID, effect.FieldHold).All(ctx)
		if err != nil {
			return nil, err
		}
		ids := make(map[string]int64, len(written))
		for _, row := range written {
			ids[row.Hold] = row.ID
		}
		for _, o := range chunk {
			effects = append(effects, domain.Effect{ID: ids[string(o.Hold)], Hold: o.Hold, Order: o})
		}
	}
	return effects, nil
}
