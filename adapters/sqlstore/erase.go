package sqlstore

import (
	"context"
	"fmt"
	"strings"

	"seckill/domain"
	"seckill/ent"
	"seckill/ent/activity"
	"seckill/ent/effect"
	"seckill/ent/order"
	"seckill/ent/quota"
	"seckill/ent/stock"
	"seckill/ent/stockedit"
)

// Erase removes a draft activity and everything that the ledger has on it: it is
// how a benchmark takes its scratch activity away. Orders go maxRows at a time,
// the activity last, so that a call that was interrupted is simply repeated.
// Repeat: does nothing. Errors: ErrState when the activity is more than a draft.
func (s *Store) Erase(ctx context.Context, id domain.ActivityID) error {
	number := int64(id)
	found, err := s.write.Activity.Get(ctx, number)
	if ent.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fault(err)
	}
	if found.State != string(domain.Draft) {
		return fmt.Errorf("erase activity %d: %w: it is %s", id, domain.ErrState, found.State)
	}
	for {
		ids, err := s.write.Order.Query().Where(order.ActivityID(number)).Limit(maxRows).IDs(ctx)
		if err != nil {
			return fault(err)
		}
		if len(ids) == 0 {
			break
		}
		if _, err := s.write.Order.Delete().Where(order.IDIn(ids...)).Exec(ctx); err != nil {
			return fault(err)
		}
	}
	return s.inTx(ctx, func(ctx context.Context, tx *ent.Tx) error {
		// The ids of an activity's sales and quotas lie between "id:" and "id;", byte-wise.
		first := fmt.Sprintf("%d:", number)
		if _, err := tx.StockEdit.Delete().Where(stockedit.SaleGTE(first), stockedit.SaleLT(strings.Replace(first, ":", ";", 1))).Exec(ctx); err != nil {
			return err
		}
		if _, err := tx.Quota.Delete().Where(quota.IDGTE(first), quota.IDLT(strings.Replace(first, ":", ";", 1))).Exec(ctx); err != nil {
			return err
		}
		if _, err := tx.Effect.Delete().Where(effect.ActivityID(number)).Exec(ctx); err != nil {
			return err
		}
		if _, err := tx.Stock.Delete().Where(stock.ActivityID(number)).Exec(ctx); err != nil {
			return err
		}
		_, err := tx.Activity.Delete().Where(activity.ID(number), activity.State(string(domain.Draft))).Exec(ctx)
		return err
	})
}
