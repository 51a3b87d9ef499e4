package sqlstore

import (
	"context"
	"fmt"
	"slices"
	"time"

	"entgo.io/ent/dialect/sql"

	"seckill/domain"
	"seckill/ent"
	"seckill/ent/activity"
	"seckill/ent/order"
	"seckill/ent/stock"
)

// Save implements domain.Activities. A SKU that is no longer listed goes, unless
// it has orders or units out: that is an ErrConflict.
func (s *Store) Save(ctx context.Context, a domain.Activity) error {
	state := a.State
	return s.inTx(ctx, func(ctx context.Context, tx *ent.Tx) error {
		if err := saveActivity(ctx, tx, a, state); err != nil {
			return err
		}
		if err := s.saveStocks(ctx, tx, a); err != nil {
			return err
		}
		if state == "" {
			// If this runs again because nobody knows whether it was committed, the
			// draft that it finds is its own.
			state = domain.Draft
		}
		return nil
	})
}

// saveActivity changes the row if it is in the state, or makes it if it is new.
// Either way the row is locked, so the state stays until this is committed.
func saveActivity(ctx context.Context, tx *ent.Tx, a domain.Activity, state domain.State) error {
	if state != "" {
		changed, err := tx.Activity.Update().Where(activity.ID(int64(a.ID)), activity.State(string(state))).
			SetName(a.Name).SetStartsAt(millis(a.StartsAt)).SetEndsAt(millis(a.EndsAt)).
			SetPaymentWindowMs(a.PaymentWindow.Milliseconds()).Save(ctx)
		if err != nil || changed == 1 {
			return err
		}
	}
	if a.State != "" {
		return fmt.Errorf("%w: activity %d is not %s", domain.ErrConflict, a.ID, a.State)
	}
	err := tx.Activity.Create().SetID(int64(a.ID)).SetState(string(domain.Draft)).
		SetName(a.Name).SetStartsAt(millis(a.StartsAt)).SetEndsAt(millis(a.EndsAt)).
		SetPaymentWindowMs(a.PaymentWindow.Milliseconds()).Exec(ctx)
	if classify(err) == unique {
		return fmt.Errorf("%w: activity %d is there already", domain.ErrConflict, a.ID)
	}
	return err
}

// saveStocks makes the stock rows what the activity lists. The row of the
// activity is locked, so nobody else adds one or takes one away.
func (s *Store) saveStocks(ctx context.Context, tx *ent.Tx, a domain.Activity) error {
	rows, err := tx.Stock.Query().Where(stock.ActivityID(int64(a.ID)), s.forUpdate).
		Order(ent.Asc(stock.FieldID)).All(ctx)
	if err != nil {
		return err
	}
	have := map[domain.SKUID]bool{}
	for _, row := range rows {
		have[domain.SKUID(row.SkuID)] = true
		if sku, listed := a.SKU(domain.SKUID(row.SkuID)); listed {
			err = changeStock(ctx, tx, row, sku, a.State)
		} else {
			err = dropStock(ctx, tx, row)
		}
		if err != nil {
			return err
		}
	}
	for _, sku := range a.SKUs {
		if have[sku.ID] {
			continue
		}
		err := tx.Stock.Create().
			SetID(a.Sale(sku.ID).String()).
			SetActivityID(int64(a.ID)).SetSkuID(int64(sku.ID)).SetName(sku.Name).SetPrice(sku.Price).
			SetTotal(sku.Total).SetPerUserLimit(sku.PerUserLimit).SetSegments(sku.Segments).Exec(ctx)
		if err != nil {
			return err
		}
	}
	return nil
}

func changeStock(ctx context.Context, tx *ent.Tx, row *ent.Stock, sku domain.SKU, state domain.State) error {
	switch {
	case sku.Total < row.Reserved+row.Sold:
		return fmt.Errorf("%w: SKU %d has %d units out, total would be %d", domain.ErrUnbalanced, sku.ID, row.Reserved+row.Sold, sku.Total)
	case sku.Total != row.Total && state != domain.Draft && state != "":
		return fmt.Errorf("%w: the total of SKU %d is %d by now", domain.ErrConflict, sku.ID, row.Total)
	}
	return tx.Stock.UpdateOneID(row.ID).
		SetName(sku.Name).SetPrice(sku.Price).SetTotal(sku.Total).
		SetPerUserLimit(sku.PerUserLimit).SetSegments(sku.Segments).Exec(ctx)
}

func dropStock(ctx context.Context, tx *ent.Tx, row *ent.Stock) error {
	used, err := tx.Order.Query().Where(order.ActivityID(row.ActivityID), order.SkuID(row.SkuID)).Exist(ctx)
	if err != nil {
		return err
	}
	if used || row.Reserved+row.Sold > 0 {
		return fmt.Errorf("%w: SKU %d has orders and cannot be removed", domain.ErrConflict, row.SkuID)
	}
	return tx.Stock.DeleteOneID(row.ID).Exec(ctx)
}

// Activity implements domain.Activities.
func (s *Store) Activity(ctx context.Context, id domain.ActivityID) (domain.Activity, error) {
	row, err := s.read.Activity.Get(ctx, int64(id))
	if ent.IsNotFound(err) {
		return domain.Activity{}, fmt.Errorf("activity: %w", domain.ErrNotFound)
	}
	if err != nil {
		return domain.Activity{}, fault(err)
	}
	all, err := s.withSKUs(ctx, []*ent.Activity{row})
	if err != nil {
		return domain.Activity{}, fault(err)
	}
	return all[0], nil
}

// Activities implements domain.Activities.
func (s *Store) Activities(ctx context.Context, after domain.ActivityID, max int) ([]domain.Activity, error) {
	rows, err := s.read.Activity.Query().Where(activity.IDGT(int64(after))).
		Order(ent.Asc(activity.FieldID)).Limit(max).All(ctx)
	if err != nil {
		return nil, fault(err)
	}
	all, err := s.withSKUs(ctx, rows)
	return all, fault(err)
}

func (s *Store) withSKUs(ctx context.Context, rows []*ent.Activity) ([]domain.Activity, error) {
	all := make([]domain.Activity, 0, len(rows))
	for chunk := range slices.Chunk(rows, maxRows) {
		ids := make([]int64, len(chunk))
		for i, row := range chunk {
			ids[i] = row.ID
		}
		stocks, err := s.read.Stock.Query().Where(stock.ActivityIDIn(ids...)).Order(ent.Asc(stock.FieldActivityID, stock.FieldSkuID)).All(ctx)
		if err != nil {
			return nil, err
		}
		skus := map[int64][]domain.SKU{}
		for _, row := range stocks {
			skus[row.ActivityID] = append(skus[row.ActivityID], domain.SKU{
				ID: domain.SKUID(row.SkuID), Name: row.Name, Price: row.Price,
				Total: row.Total, PerUserLimit: row.PerUserLimit, Segments: row.Segments,
			})
		}
		for _, row := range chunk {
			all = append(all, domain.Activity{
				ID: domain.ActivityID(row.ID), Name: row.Name, State: domain.State(row.State),
				StartsAt: moment(row.StartsAt), EndsAt: moment(row.EndsAt),
				PaymentWindow: time.Duration(row.PaymentWindowMs) * time.Millisecond,
				SKUs:          skus[row.ID],
			})
		}
	}
	return all, nil
}

// SetState implements domain.Activities. It does not repeat itself when the
// outcome is unknown: a second run could not tell its own change from another's.
func (s *Store) SetState(ctx context.Context, id domain.ActivityID, from, to domain.State) error {
	changed, err := s.write.Activity.Update().
		Where(activity.ID(int64(id)), activity.State(string(from))).
		SetState(string(to)).Save(ctx)
	if err != nil || changed == 1 {
		return fault(err)
	}
	found, err := s.write.Activity.Query().Where(activity.ID(int64(id))).Exist(ctx)
	if err != nil {
		return fault(err)
	}
	if !found {
		return fmt.Errorf("activity: %w", domain.ErrNotFound)
	}
	return fmt.Errorf("%w: activity %d is not %s", domain.ErrConflict, id, from)
}

// BeginEpoch implements domain.Activities.
func (s *Store) BeginEpoch(ctx context.Context, sale domain.SaleID, fence domain.Fence) (epoch int64, err error) {
	err = s.inTx(ctx, func(ctx context.Context, tx *ent.Tx) error {
		if err := s.guard(ctx, tx, fence); err != nil {
			return err
		}
		// With the row locked, no order of the sale is half decided.
		row, err := tx.Stock.Query().Where(stock.ID(sale.String()), s.forUpdate).Only(ctx)
		if ent.IsNotFound(err) {
			return fmt.Errorf("sale: %w", domain.ErrNotFound)
		}
		if err != nil {
			return err
		}
		account, err := s.tally(ctx, tx.Client(), sale)
		if err != nil {
			return err
		}
		if !account.Balanced() {
			return fmt.Errorf("%w: sale %s has %d reserved and %d sold, its orders %d pending and %d paid", domain.ErrUnbalanced,
				sale, account.Reserved, account.Sold, account.Pending, account.Paid)
		}
		epoch = row.Epoch + 1
		return tx.Stock.UpdateOneID(row.ID).SetEpoch(epoch).Modify(func(u *sql.UpdateBuilder) {
			u.Set(stock.FieldEpochAt, s.now())
		}).Exec(ctx)
	})
	return epoch, err
}

// Epoch implements domain.Activities.
func (s *Store) Epoch(ctx context.Context, sale domain.SaleID) (epoch int64, since time.Time, err error) {
	row, err := s.read.Stock.Query().Where(stock.ID(sale.String())).Select(stock.FieldEpoch, stock.FieldEpochAt).Only(ctx)
	if ent.IsNotFound(err) {
		return 0, time.Time{}, fmt.Errorf("sale: %w", domain.ErrNotFound)
	}
	if err != nil {
		return 0, time.Time{}, fault(err)
	}
	return row.Epoch, moment(row.EpochAt), nil
}
