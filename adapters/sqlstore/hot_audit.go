package sqlstore

import (
	"context"
	stdsql "database/sql"
	"errors"
	"fmt"
	"slices"

	"seckill/domain"
	"seckill/ent"
)

// Bounds of what one call lists.
const (
	maxDrifts = 100  // buyers named by an audit
	holdsPage = 1000 // holds of one page
)

// driftsSQL names the buyers whose units are not the sum of their holds, with
// both figures. Its parameters are those of driftArgs.
const driftsSQL = `SELECT buyer, SUM(recorded) AS recorded, SUM(counted) AS counted FROM (
		SELECT SUBSTR(id, ?) AS buyer, units AS recorded, 0 AS counted FROM hot_buyers WHERE id > ? AND id < ?
		UNION ALL
		SELECT buyer, 0, quantity FROM hot_holds WHERE id > ? AND id < ? AND state <> 'released'
	) AS both_sides GROUP BY buyer HAVING SUM(recorded) <> SUM(counted) ORDER BY buyer LIMIT ?`

func driftArgs(key saleKey, limit int64) []any {
	above, below := key.bounds()
	return []any{int64(len(above) + 1), above, below, above, below, limit}
}

// Audit implements domain.StockAudit.
func (s *Stock) Audit(ctx context.Context, sale domain.SaleID) (domain.Audit, error) {
	audit, err := s.audit(ctx, s.store.read, keyOf(sale))
	return audit, fault(err)
}

// audit counts a sale in one statement, which sees one state of it in every
// database and isolation level.
func (s *Stock) audit(ctx context.Context, db querier, key saleKey) (domain.Audit, error) {
	above, below := key.bounds()
	query := `SELECT 'level', state, epoch, total, available, held, sold FROM hot_sales WHERE id = ? AND stage = ?
		UNION ALL SELECT 'hold', state, SUM(quantity), 0, 0, 0, 0 FROM hot_holds WHERE id > ? AND id < ? GROUP BY state
		UNION ALL SELECT 'queue', '', COALESCE(SUM(units), 0), 0, 0, 0, 0 FROM hot_intents WHERE sale = ?
		UNION ALL SELECT 'drift', buyer, recorded, counted, 0, 0, 0 FROM (` + driftsSQL + `) AS drifts`
	args := append([]any{string(key), ready, above, below, string(key)}, driftArgs(key, maxDrifts)...)
	var (
		audit               domain.Audit
		what, text          string
		first, second       int64
		available, in, sold int64
		found               bool
	)
	err := s.store.rows(ctx, db, []any{&what, &text, &first, &second, &available, &in, &sold}, func() error {
		switch what {
		case "level":
			found = true
			audit.Level = domain.Level{
				State: domain.State(text), Epoch: first, Total: second, Available: available, Held: in, Sold: sold, Queued: audit.Level.Queued,
			}
		case "hold":
			switch domain.HoldState(text) {
			case domain.Held:
				audit.HeldUnits = first
			case domain.Sold:
				audit.SoldUnits = first
			case domain.Released:
			}
		case "queue":
			audit.Level.Queued, audit.QueuedUnits = first, first
		case "drift":
			audit.Buyers = append(audit.Buyers, domain.BuyerDrift{Buyer: domain.BuyerID(text), Recorded: first, Counted: second})
		}
		return nil
	}, query, args...)
	if err == nil && !found {
		err = domain.ErrNotReady
	}
	if err != nil {
		return domain.Audit{}, err
	}
	return audit, nil
}

// Holds implements domain.StockAudit. The cursor is the last order of a page.
func (s *Stock) Holds(ctx context.Context, sale domain.SaleID, cursor string) ([]domain.Hold, string, error) {
	if cursor != "" && checkHoldID(domain.OrderID(cursor)) != nil {
		return nil, "", domain.Invalid("cursor", "was not returned by an earlier page")
	}
	key := keyOf(sale)
	_, below := key.bounds()
	var (
		page    []domain.Hold
		hold    domain.Hold
		id      string
		created int64
	)
	err := s.store.rows(ctx, s.store.read, []any{&id, &hold.Buyer, &hold.Request, &hold.Quantity, &hold.State, &created}, func() error {
		hold.Order, hold.CreatedAt = domain.OrderID(key.name(id)), moment(created)
		page = append(page, hold)
		return nil
	}, `SELECT id, buyer, request, quantity, state, created_at FROM hot_holds
		WHERE id > ? AND id < ? AND state = ? AND EXISTS (SELECT 1 FROM hot_sales WHERE id = ? AND stage = ?)
		ORDER BY id LIMIT ?`, key.of(cursor), below, string(domain.Held), string(key), ready, int64(holdsPage))
	if err != nil {
		return nil, "", fault(err)
	}
	if len(page) < holdsPage {
		return page, "", nil
	}
	return page, string(page[len(page)-1].Order), nil
}

// Requeue implements domain.StockAudit. A second hold (OrderID.Late) never had
// an intent, so it is left alone. More than 500 ids are several entries.
func (s *Stock) Requeue(ctx context.Context, sale domain.SaleID, holds ...domain.OrderID) (int, error) {
	if err := checkHoldIDs(holds); err != nil {
		return 0, err
	}
	key := keyOf(sale)
	first := slices.DeleteFunc(slices.Clone(holds), func(id domain.OrderID) bool { return id != id.Order() })
	n := 0
	err := s.store.inTx(ctx, func(ctx context.Context, tx *ent.Tx) error {
		n = 0
		a, err := s.lockReady(ctx, tx, key)
		if err != nil {
			return err
		}
		now, err := s.store.clock(ctx, tx)
		if err != nil {
			return err
		}
		for chunk := range slices.Chunk(first, maxRows) {
			found, err := s.heldOf(ctx, tx, key, chunk)
			if err != nil {
				return err
			}
			var again []domain.Hold
			for _, id := range chunk {
				if hold, held := found[id]; held {
					again = append(again, hold)
				}
			}
			if len(again) == 0 {
				continue
			}
			if err := s.queue.push(ctx, tx, key, &book{now: now, epoch: a.epoch}, again); err != nil {
				return err
			}
			n += len(again)
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	s.queue.wake(sale)
	return n, nil
}

// heldOf reads those of the holds that are held.
func (s *Stock) heldOf(ctx context.Context, tx *ent.Tx, key saleKey, orders []domain.OrderID) (map[domain.OrderID]domain.Hold, error) {
	var what asked
	for _, id := range orders {
		what.hold(key, id)
	}
	condition, args := s.store.in("id", what.holds)
	found := map[domain.OrderID]domain.Hold{}
	var (
		id   string
		hold = domain.Hold{State: domain.Held}
	)
	err := s.store.rows(ctx, tx.Client(), []any{&id, &hold.Buyer, &hold.Request, &hold.Quantity}, func() error {
		hold.Order = domain.OrderID(key.name(id))
		found[hold.Order] = hold
		return nil
	}, "SELECT id, buyer, request, quantity FROM hot_holds WHERE "+condition+" AND state = ?", append(args, string(domain.Held))...)
	return found, err
}

// Adopt implements domain.StockAudit. The buyer's limit is not asked: the
// ledger has accepted the order.
func (s *Stock) Adopt(ctx context.Context, sale domain.SaleID, hold domain.Hold, fence int64) (int64, error) {
	if hold.State == domain.Released {
		return 0, domain.Invalid("hold", "must be held or sold")
	}
	if err := checkHold(hold); err != nil {
		return 0, err
	}
	if err := checkFenceNumber(fence); err != nil {
		return 0, err
	}
	key := keyOf(sale)
	var adopted int64
	err := s.store.inTx(ctx, func(ctx context.Context, tx *ent.Tx) error {
		adopted = 0
		if err := s.lock(ctx, tx, key, []domain.Hold{hold}); err != nil {
			return err
		}
		a, err := s.lockReady(ctx, tx, key)
		if err != nil {
			return err
		}
		if fence < a.fence {
			return domain.ErrFenced
		}
		var state string
		err = s.store.one(ctx, tx.Client(), []any{&state}, "SELECT state FROM hot_holds WHERE id = ?", key.of(string(hold.Order)))
		switch {
		case err != nil && !errors.Is(err, stdsql.ErrNoRows):
			return err
		case err == nil && domain.HoldState(state) != domain.Released:
			return nil
		case a.available < hold.Quantity:
			return fmt.Errorf("%d units available, %d needed: %w", a.available, hold.Quantity, domain.ErrConflict)
		}
		if err := s.replace(ctx, tx, key, hold, domain.MaxInteger); err != nil {
			return err
		}
		set := "held = held + ?"
		if hold.State == domain.Sold {
			set = "sold = sold + ?"
		}
		adopted = hold.Quantity
		_, err = s.store.change(ctx, tx.Client(), "UPDATE hot_sales SET available = available - ?, "+set+", fence = ? WHERE id = ?",
			hold.Quantity, hold.Quantity, fence, string(key))
		return err
	})
	if err != nil {
		return 0, err
	}
	return adopted, nil
}

// Correct implements domain.StockAudit. State and queued units may differ from
// what was seen: they are no part of the account of units.
func (s *Stock) Correct(ctx context.Context, sale domain.SaleID, seen domain.Level, fence int64) (domain.Audit, error) {
	if err := checkFenceNumber(fence); err != nil {
		return domain.Audit{}, err
	}
	key := keyOf(sale)
	var audit domain.Audit
	err := s.store.inTx(ctx, func(ctx context.Context, tx *ent.Tx) error {
		if err := s.lockFenced(ctx, tx, key, fence); err != nil {
			return err
		}
		found, err := s.audit(ctx, tx.Client(), key)
		if err != nil {
			return err
		}
		level := found.Level
		seen.State, seen.Queued = level.State, level.Queued
		if level != seen {
			return domain.ErrConflict
		}
		if found.HeldUnits+found.SoldUnits > level.Total {
			return fmt.Errorf("%d units held and sold of %d: %w", found.HeldUnits+found.SoldUnits, level.Total, domain.ErrUnbalanced)
		}
		if err := s.correctBuyers(ctx, tx, key); err != nil {
			return err
		}
		_, err = s.store.change(ctx, tx.Client(), "UPDATE hot_sales SET held = ?, sold = ?, available = ?, fence = ? WHERE id = ?",
			found.HeldUnits, found.SoldUnits, level.Total-found.HeldUnits-found.SoldUnits, fence, string(key))
		if err != nil {
			return err
		}
		audit, err = s.audit(ctx, tx.Client(), key)
		return err
	})
	if err != nil {
		return domain.Audit{}, err
	}
	return audit, nil
}

// maxPasses bounds a correction: 500 buyers each.
const maxPasses = 10_000

// correctBuyers sets the units of the buyers that drifted to what was counted.
func (s *Stock) correctBuyers(ctx context.Context, tx *ent.Tx, key saleKey) error {
	for range maxPasses {
		change := map[domain.BuyerID]int64{}
		var (
			buyer             domain.BuyerID
			recorded, counted int64
		)
		err := s.store.rows(ctx, tx.Client(), []any{&buyer, &recorded, &counted}, func() error {
			change[buyer] = counted
			return nil
		}, driftsSQL, driftArgs(key, maxRows)...)
		if err != nil || len(change) == 0 {
			return err
		}
		ids := make([]string, 0, len(change))
		for buyer := range change {
			ids = append(ids, key.of(string(buyer)))
		}
		where, args := s.store.in("id", ids)
		if _, err := s.store.change(ctx, tx.Client(), "DELETE FROM hot_buyers WHERE "+where, args...); err != nil {
			return err
		}
		if err := s.store.addUnits(ctx, tx, key, change, domain.MaxInteger); err != nil {
			return err
		}
	}
	return fmt.Errorf("%w: more than %d buyers drifted", domain.ErrUnbalanced, maxPasses*maxRows)
}
