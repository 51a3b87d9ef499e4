package sqlstore

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"entgo.io/ent/dialect/sql"

	"seckill/domain"
	"seckill/ent"
	"seckill/ent/quota"
	"seckill/ent/stock"
)

func quotaID(o domain.Order) string { return o.Sale.String() + ":" + string(o.Buyer) }

// takeQuotas adds the units of pending orders to what their buyers have. The
// limit is the CHECK of the table, so one statement serves many buyers.
func (s *Store) takeQuotas(ctx context.Context, tx *ent.Tx, orders []domain.Order, sales saleRows) error {
	units, limits := map[string]int64{}, map[string]int64{}
	for _, o := range orders {
		id := quotaID(o)
		units[id] += o.Quantity
		limits[id] = sales.rows[o.Sale].limit
	}
	for ids := range slices.Chunk(slices.Sorted(maps.Keys(units)), maxRows) {
		insert := sql.Dialect(s.dialect).Insert(quota.Table).
			Columns(quota.FieldID, quota.FieldUsed, quota.FieldCap).
			OnConflict(sql.ConflictColumns(quota.FieldID), sql.ResolveWith(func(u *sql.UpdateSet) {
				u.Set(quota.FieldUsed, sql.Raw(addedSQL[s.dialect]))
				u.SetExcluded(quota.FieldCap)
			}))
		rows := make([][]any, len(ids))
		for i, id := range ids {
			rows[i] = []any{id, units[id], limits[id]}
		}
		s.addRows(insert, rows)
		if err := execute(ctx, tx, insert); err != nil {
			return err
		}
	}
	return nil
}

// retakeQuota adds an order's units to what its buyer has, if the limit allows.
func retakeQuota(ctx context.Context, tx *ent.Tx, o domain.Order) (bool, error) {
	sale, err := tx.Stock.Get(ctx, o.Sale.String())
	if err != nil {
		return false, err
	}
	took, err := tx.Quota.Update().
		Where(quota.ID(quotaID(o)), quota.UsedLTE(sale.PerUserLimit-o.Quantity)).
		AddUsed(o.Quantity).SetCap(sale.PerUserLimit).Save(ctx)
	return took == 1, err
}

// untakeQuota undoes retakeQuota in the same transaction.
func untakeQuota(ctx context.Context, tx *ent.Tx, o domain.Order) error {
	return tx.Quota.UpdateOneID(quotaID(o)).AddUsed(-o.Quantity).Exec(ctx)
}

// giveQuotas takes the units of closed orders off what their buyers have.
func (s *Store) giveQuotas(ctx context.Context, tx *ent.Tx, orders []domain.Order) error {
	units := map[string]int64{}
	for _, o := range orders {
		units[quotaID(o)] += o.Quantity
	}
	ids := slices.Sorted(maps.Keys(units))
	if len(ids) > 1 {
		// The updates below go by quantity, not by id. This keeps the one order of locks.
		_, err := tx.Quota.Query().Where(quota.IDIn(ids...), s.forUpdate).Order(ent.Asc(quota.FieldID)).All(ctx)
		if err != nil {
			return err
		}
	}
	same := map[int64][]string{}
	for _, id := range ids {
		same[units[id]] = append(same[units[id]], id)
	}
	for _, quantity := range slices.Sorted(maps.Keys(same)) {
		gave, err := tx.Quota.Update().
			Where(quota.IDIn(same[quantity]...), quota.UsedGTE(quantity)).
			AddUsed(-quantity).Save(ctx)
		if err != nil {
			return err
		}
		if gave != len(same[quantity]) {
			return fmt.Errorf("%w: a buyer's quota is below the buyer's orders", domain.ErrUnbalanced)
		}
	}
	return nil
}

// moveStock changes the counters of a sale by what closed orders held.
func moveStock(ctx context.Context, tx *ent.Tx, sale domain.SaleID, reserved, sold int64) error {
	moved, err := tx.Stock.Update().Where(stock.ID(sale.String())).AddReserved(reserved).AddSold(sold).Save(ctx)
	if classify(err) == check || err == nil && moved != 1 {
		return fmt.Errorf("%w: the stock row of sale %s is below its orders", domain.ErrUnbalanced, sale)
	}
	return err
}

func sortedSales(units map[domain.SaleID]int64) []domain.SaleID {
	// As the keys of the stock rows sort, so that locks have one order.
	return slices.SortedFunc(maps.Keys(units), func(a, b domain.SaleID) int { return cmp.Compare(a.String(), b.String()) })
}
