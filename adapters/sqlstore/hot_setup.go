package sqlstore

import (
	"context"
	stdsql "database/sql"
	"errors"
	"fmt"
	"time"

	"seckill/domain"
	"seckill/ent"
)

// Seal implements domain.StockSetup.
func (s *Stock) Seal(ctx context.Context, sale domain.SaleID, fence int64, force bool) error {
	if err := checkFenceNumber(fence); err != nil {
		return err
	}
	key := keyOf(sale)
	return s.store.inTx(ctx, func(ctx context.Context, tx *ent.Tx) error {
		a, err := s.lockSale(ctx, tx, key)
		if errors.Is(err, stdsql.ErrNoRows) {
			return stale(tx.HotSale.Create().SetID(string(key)).SetStage(sealed).SetState("").
				SetStartsAt(0).SetEndsAt(0).SetPerUserLimit(0).SetEpoch(0).
				SetTotal(0).SetAvailable(0).SetHeld(0).SetSold(0).
				SetFence(fence).SetRevision(0).Exec(ctx))
		}
		if err != nil {
			return err
		}
		if fence < a.fence {
			return domain.ErrFenced
		}
		if !force {
			if err := s.idle(ctx, tx, key, a); err != nil {
				return err
			}
		}
		_, err = s.store.change(ctx, tx.Client(),
			"UPDATE hot_sales SET stage = ?, fence = ?, revision = revision + 1 WHERE id = ?", sealed, fence, string(key))
		return err
	})
}

// idle refuses a locked sale that has holds or queued orders.
func (s *Stock) idle(ctx context.Context, tx *ent.Tx, key saleKey, a account) error {
	if a.held > 0 {
		return domain.ErrHasHolds
	}
	queued, err := s.queued(ctx, tx.Client(), key)
	if err == nil && queued > 0 {
		return domain.ErrHasHolds
	}
	return err
}

// queued is how many units of a sale the queue's entries have.
func (s *Stock) queued(ctx context.Context, db querier, key saleKey) (units int64, err error) {
	err = s.store.one(ctx, db, []any{&units}, "SELECT COALESCE(SUM(units), 0) FROM hot_intents WHERE sale = ?", string(key))
	return units, err
}

// Preheat implements domain.StockSetup. Here it is one step for any load.
// Entries of the sale that are still queued stay queued, under their old epoch.
func (s *Stock) Preheat(ctx context.Context, load domain.Load) error {
	if err := checkLoad(load); err != nil {
		return err
	}
	key := keyOf(load.Sale)
	return s.store.inTx(ctx, func(ctx context.Context, tx *ent.Tx) error {
		a, err := s.lockSale(ctx, tx, key)
		switch {
		case errors.Is(err, stdsql.ErrNoRows):
			return domain.ErrState
		case err != nil:
			return err
		case load.Fence < a.fence:
			return domain.ErrFenced
		case a.stage != sealed:
			return domain.ErrState
		}
		if err := s.forget(ctx, tx, key); err != nil {
			return err
		}
		held, sold, err := s.putLoad(ctx, tx, key, load.Holds)
		if err != nil {
			return err
		}
		_, err = s.store.change(ctx, tx.Client(), `UPDATE hot_sales
			SET stage = ?, state = ?, starts_at = ?, ends_at = ?, per_user_limit = ?, epoch = ?,
				total = ?, available = ?, held = ?, sold = ?, fence = ?, revision = revision + 1
			WHERE id = ?`,
			ready, string(load.Gate.State), load.Gate.StartsAt.UnixMilli(), load.Gate.EndsAt.UnixMilli(), load.Gate.PerUserLimit, load.Epoch,
			load.Total, load.Total-held-sold, held, sold, load.Fence, string(key))
		return err
	})
}

// putLoad writes the records of a load. The buyers' limit is not asked: the
// ledger has accepted the orders.
func (s *Stock) putLoad(ctx context.Context, tx *ent.Tx, key saleKey, holds []domain.Hold) (held, sold int64, err error) {
	if err := s.store.putHolds(ctx, tx, key, holds); err != nil {
		return 0, 0, err
	}
	if err := s.store.putRequests(ctx, tx, key, holds); err != nil {
		return 0, 0, err
	}
	units := map[domain.BuyerID]int64{}
	for _, hold := range holds {
		switch hold.State {
		case domain.Held:
			held += hold.Quantity
		case domain.Sold:
			sold += hold.Quantity
		case domain.Released:
			continue
		}
		units[hold.Buyer] += hold.Quantity
	}
	return held, sold, s.store.addUnits(ctx, tx, key, units, domain.MaxInteger)
}

// forget removes the records of a locked sale.
func (s *Stock) forget(ctx context.Context, tx *ent.Tx, key saleKey) error {
	above, below := key.bounds()
	for _, table := range []string{"hot_holds", "hot_requests", "hot_buyers"} {
		if _, err := s.store.change(ctx, tx.Client(), "DELETE FROM "+table+" WHERE id > ? AND id < ?", above, below); err != nil {
			return err
		}
	}
	return nil
}

// Gate implements domain.StockSetup.
func (s *Stock) Gate(ctx context.Context, sale domain.SaleID) (domain.Gate, error) {
	var (
		gate         domain.Gate
		starts, ends int64
	)
	err := s.store.one(ctx, s.store.read, []any{&gate.State, &starts, &ends, &gate.PerUserLimit},
		"SELECT state, starts_at, ends_at, per_user_limit FROM hot_sales WHERE id = ? AND stage = ?", string(keyOf(sale)), ready)
	if errors.Is(err, stdsql.ErrNoRows) {
		return domain.Gate{}, domain.ErrNotReady
	}
	if err != nil {
		return domain.Gate{}, fault(err)
	}
	gate.StartsAt, gate.EndsAt = time.UnixMilli(starts), time.UnixMilli(ends)
	return gate, nil
}

// SetGate implements domain.StockSetup.
func (s *Stock) SetGate(ctx context.Context, sale domain.SaleID, gate domain.Gate, fence int64) error {
	if err := checkGate(gate); err != nil {
		return err
	}
	if err := checkFenceNumber(fence); err != nil {
		return err
	}
	key := keyOf(sale)
	return s.store.inTx(ctx, func(ctx context.Context, tx *ent.Tx) error {
		if err := s.lockFenced(ctx, tx, key, fence); err != nil {
			return err
		}
		_, err := s.store.change(ctx, tx.Client(), `UPDATE hot_sales
			SET state = ?, starts_at = ?, ends_at = ?, per_user_limit = ?, fence = ?, revision = revision + 1
			WHERE id = ?`,
			string(gate.State), gate.StartsAt.UnixMilli(), gate.EndsAt.UnixMilli(), gate.PerUserLimit, fence, string(key))
		return err
	})
}

// lockFenced locks a sale that must be ready, for a write with a fence.
func (s *Stock) lockFenced(ctx context.Context, tx *ent.Tx, key saleKey, fence int64) error {
	a, err := s.lockReady(ctx, tx, key)
	if err == nil && fence < a.fence {
		return domain.ErrFenced
	}
	return err
}

// SetTotal changes the total of a sale from seen to total, and available by as
// much. Repeat: does nothing when the total is already as wanted.
// Errors: ErrNotReady, ErrFenced, ErrConflict when the total is neither,
// ErrUnbalanced when fewer units are available than are withdrawn.
func (s *Stock) SetTotal(ctx context.Context, sale domain.SaleID, seen, total int64, fence int64) error {
	if err := checkTotal(total); err != nil {
		return err
	}
	if err := checkFenceNumber(fence); err != nil {
		return err
	}
	key := keyOf(sale)
	return s.store.inTx(ctx, func(ctx context.Context, tx *ent.Tx) error {
		a, err := s.lockReady(ctx, tx, key)
		switch {
		case err != nil:
			return err
		case fence < a.fence:
			return domain.ErrFenced
		case a.total == total:
			return nil
		case a.total != seen:
			return fmt.Errorf("total is %d, seen was %d: %w", a.total, seen, domain.ErrConflict)
		case a.available < seen-total:
			return fmt.Errorf("%d units available, %d to withdraw: %w", a.available, seen-total, domain.ErrUnbalanced)
		}
		_, err = s.store.change(ctx, tx.Client(), "UPDATE hot_sales SET total = ?, available = available + ?, fence = ? WHERE id = ?",
			total, total-seen, fence, string(key))
		return err
	})
}

// Archive implements domain.StockSetup. The sale's fence is forgotten with it.
func (s *Stock) Archive(ctx context.Context, sale domain.SaleID, fence int64) error {
	if err := checkFenceNumber(fence); err != nil {
		return err
	}
	key := keyOf(sale)
	return s.store.inTx(ctx, func(ctx context.Context, tx *ent.Tx) error {
		a, err := s.lockSale(ctx, tx, key)
		switch {
		case errors.Is(err, stdsql.ErrNoRows):
			return nil
		case err != nil:
			return err
		case fence < a.fence:
			return domain.ErrFenced
		}
		if err := s.idle(ctx, tx, key, a); err != nil {
			return err
		}
		if err := s.forget(ctx, tx, key); err != nil {
			return err
		}
		_, err = s.store.change(ctx, tx.Client(), "DELETE FROM hot_sales WHERE id = ?", string(key))
		return err
	})
}
