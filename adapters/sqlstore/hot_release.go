package sqlstore

import (
	"context"
	"fmt"
	"slices"

	"seckill/domain"
	"seckill/ent"
)

// Release implements domain.Admission.
func (s *Stock) Release(ctx context.Context, sale domain.SaleID, holds ...domain.OrderID) (int64, error) {
	return s.end(ctx, sale, holds, domain.Released)
}

// Settle implements domain.Admission.
func (s *Stock) Settle(ctx context.Context, sale domain.SaleID, holds ...domain.OrderID) (int64, error) {
	return s.end(ctx, sale, holds, domain.Sold)
}

// end brings held holds to another state and returns their units. The first
// read is without a lock: a repeat, which finds nothing to do, ends there.
func (s *Stock) end(ctx context.Context, sale domain.SaleID, ids []domain.OrderID, state domain.HoldState) (int64, error) {
	if err := checkHoldIDs(ids); err != nil {
		return 0, err
	}
	key := keyOf(sale)
	ids = slices.Compact(slices.Sorted(slices.Values(ids)))
	if len(ids) == 0 {
		_, _, err := s.ending(ctx, key, nil, state)
		return 0, fault(err)
	}
	var sum int64
	for chunk := range slices.Chunk(ids, maxRows) {
		seen, todo, err := s.ending(ctx, key, chunk, state)
		if err != nil {
			return sum, fault(err)
		}
		if len(todo) == 0 {
			continue
		}
		var units int64
		err = s.store.inTx(ctx, func(ctx context.Context, tx *ent.Tx) (err error) {
			units, err = s.endIn(ctx, tx, seen, todo, state)
			return err
		})
		if err != nil {
			return sum, err
		}
		sum += units
	}
	return sum, nil
}

// ending reads which of the holds may have to change. An unknown one gets a
// tombstone when it is released.
func (s *Stock) ending(ctx context.Context, key saleKey, ids []domain.OrderID, state domain.HoldState) (*book, []string, error) {
	var what asked
	for _, id := range ids {
		what.hold(key, id)
	}
	seen, err := s.store.open(ctx, s.store.read, key, what)
	if err != nil {
		return nil, nil, err
	}
	if !seen.ready {
		return nil, nil, domain.ErrNotReady
	}
	var todo []string
	for i, id := range ids {
		hold, there := seen.holds[id]
		if there && hold.state == domain.Held || !there && state == domain.Released {
			todo = append(todo, what.holds[i])
		}
	}
	return seen, todo, nil
}

// endIn changes those of the holds, given by their keys, that are held by now.
func (s *Stock) endIn(ctx context.Context, tx *ent.Tx, seen *book, todo []string, state domain.HoldState) (int64, error) {
	there, held, err := s.lockHolds(ctx, tx, seen.key, todo)
	if err != nil {
		return 0, err
	}
	units, sum := unitsOf(held)
	if len(held) > 0 {
		ids := make([]string, len(held))
		for i, hold := range held {
			ids[i] = seen.key.of(string(hold.Order))
		}
		condition, args := s.store.in("id", ids)
		_, err := s.store.change(ctx, tx.Client(), "UPDATE hot_holds SET state = ? WHERE "+condition, append([]any{string(state)}, args...)...)
		if err != nil {
			return 0, err
		}
	}
	set := "held = held - ?, sold = sold + ?"
	if state == domain.Released {
		set = "held = held - ?, available = available + ?"
		var tombstones []domain.Hold
		for _, id := range todo {
			if !there[id] {
				tombstones = append(tombstones, domain.Hold{
					Order: domain.OrderID(seen.key.name(id)), State: domain.Released, CreatedAt: seen.now,
				})
			}
		}
		if err := s.store.putHolds(ctx, tx, seen.key, tombstones); err != nil {
			return 0, stale(err)
		}
		if err := s.store.subtractUnits(ctx, tx, seen.key, units); err != nil {
			return 0, err
		}
	}
	// Also when there are no units: see Stock.
	found, err := s.store.change(ctx, tx.Client(), "UPDATE hot_sales SET "+set+" WHERE id = ? AND stage = ?", sum, sum, string(seen.key), ready)
	switch {
	case classify(err) == check:
		return 0, fmt.Errorf("%w: sale %s holds fewer units than its records", domain.ErrCorrupt, seen.key)
	case err != nil:
		return 0, err
	case found == 0:
		return 0, domain.ErrNotReady
	}
	return sum, nil
}

// lockHolds locks the records with these keys, and tells which are there and
// which of them are held.
func (s *Stock) lockHolds(ctx context.Context, tx *ent.Tx, key saleKey, ids []string) (there map[string]bool, held []domain.Hold, err error) {
	there = make(map[string]bool, len(ids))
	condition, args := s.store.in("id", ids)
	var (
		id   string
		hold domain.Hold
	)
	err = s.store.rows(ctx, tx.Client(), []any{&id, &hold.Buyer, &hold.Quantity, &hold.State}, func() error {
		there[id] = true
		if hold.State == domain.Held {
			hold.Order = domain.OrderID(key.name(id))
			held = append(held, hold)
		}
		return nil
	}, "SELECT id, buyer, quantity, state FROM hot_holds WHERE "+condition+" ORDER BY id"+lockSuffix[s.store.dialect], args...)
	return there, held, err
}
