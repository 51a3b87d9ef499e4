package sqlstore

import (
	"context"
	stdsql "database/sql"
	"errors"

	"entgo.io/ent/dialect"
	"entgo.io/ent/dialect/sql"

	"seckill/domain"
	"seckill/ent"
)

// looseTries is how often a call tries to take units without locking the sale
// before it reads.
const looseTries = 2

// errDecided ends a transaction that has nothing to write.
var errDecided = errors.New("nothing to write")

// Reserve implements domain.Admission. At most 1000 claims.
func (s *Stock) Reserve(ctx context.Context, sale domain.SaleID, claims []domain.Claim) ([]domain.Outcome, error) {
	if err := checkClaims(claims); err != nil || len(claims) == 0 {
		return nil, err
	}
	key := keyOf(sale)
	var what asked
	for _, claim := range claims {
		what.claim(key, claim)
	}
	var outcomes []domain.Outcome
	err := repeat(ctx, func(try int) error {
		seen, err := s.store.open(ctx, s.store.read, key, what)
		if err != nil {
			return err
		}
		var holds []domain.Hold
		outcomes, holds = seen.reserve(claims)
		if len(holds) == 0 {
			return nil
		}
		err = s.store.once(ctx, func(ctx context.Context, tx *ent.Tx) error {
			if try > looseTries {
				if err := s.lock(ctx, tx, key, holds); err != nil {
					return err
				}
				if seen, err = s.store.open(ctx, tx.Client(), key, what); err != nil {
					return err
				}
				if outcomes, holds = seen.reserve(claims); len(holds) == 0 {
					return errDecided
				}
			}
			before, err := s.take(ctx, tx, seen, holds)
			if err != nil {
				return stale(err)
			}
			if !restate(outcomes, claims, before) {
				return errAgain
			}
			return s.queue.push(ctx, tx, key, seen, holds)
		})
		if errors.Is(err, errDecided) {
			return nil
		}
		if err == nil {
			s.queue.wake(sale)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return outcomes, nil
}

// take writes holds and takes their units, if the gate still is as it was seen.
func (s *Stock) take(ctx context.Context, tx *ent.Tx, seen *book, holds []domain.Hold) (before int64, err error) {
	if err := s.store.putHolds(ctx, tx, seen.key, holds); err != nil {
		return 0, err
	}
	if err := s.store.putRequests(ctx, tx, seen.key, holds); err != nil {
		return 0, err
	}
	units, sum := unitsOf(holds)
	if err := s.store.addUnits(ctx, tx, seen.key, units, seen.gate.PerUserLimit); err != nil {
		return 0, err
	}
	return s.store.takeUnits(ctx, tx, seen.key, sum, "epoch = ? AND revision = ? AND ends_at > "+nowSQL[s.store.dialect],
		seen.epoch, seen.revision)
}

func unitsOf(holds []domain.Hold) (units map[domain.BuyerID]int64, sum int64) {
	units = make(map[domain.BuyerID]int64, len(holds))
	for _, hold := range holds {
		units[hold.Buyer] += hold.Quantity
		sum += hold.Quantity
	}
	return units, sum
}

// lock locks the sale, so that its records stand still, after the buyers of the
// holds, so that nobody who has one of them waits for the sale.
func (s *Stock) lock(ctx context.Context, tx *ent.Tx, key saleKey, holds []domain.Hold) error {
	if s.store.dialect == dialect.SQLite {
		return nil
	}
	none := make(map[domain.BuyerID]int64, len(holds))
	for _, hold := range holds {
		none[hold.Buyer] = 0
	}
	if err := s.store.addUnits(ctx, tx, key, none, domain.MaxInteger); err != nil {
		return err
	}
	_, err := s.lockSale(ctx, tx, key)
	if errors.Is(err, stdsql.ErrNoRows) {
		return nil // the book will say so
	}
	return err
}

// account is the row of a sale, locked.
type account struct {
	stage     string
	epoch     int64
	total     int64
	available int64
	held      int64
	sold      int64
	fence     int64
}

// lockSale reads and locks the row of a sale, or returns stdsql.ErrNoRows.
func (s *Stock) lockSale(ctx context.Context, tx *ent.Tx, key saleKey) (account, error) {
	var a account
	err := s.store.one(ctx, tx.Client(), []any{&a.stage, &a.epoch, &a.total, &a.available, &a.held, &a.sold, &a.fence},
		"SELECT stage, epoch, total, available, held, sold, fence FROM hot_sales WHERE id = ?"+lockSuffix[s.store.dialect], string(key))
	return a, err
}

// lockReady is lockSale of a sale that is ready, or domain.ErrNotReady.
func (s *Stock) lockReady(ctx context.Context, tx *ent.Tx, key saleKey) (account, error) {
	a, err := s.lockSale(ctx, tx, key)
	if errors.Is(err, stdsql.ErrNoRows) || err == nil && a.stage != ready {
		return a, domain.ErrNotReady
	}
	return a, err
}

// Reacquire implements domain.Admission. While the first hold still has its
// units, a second one would count them twice: LimitReached.
func (s *Stock) Reacquire(ctx context.Context, sale domain.SaleID, claim domain.Claim) (domain.Outcome, error) {
	if err := checkClaims([]domain.Claim{claim}); err != nil {
		return domain.Outcome{}, err
	}
	key := keyOf(sale)
	var what asked
	what.claim(key, claim)
	what.hold(key, claim.Order.Late())
	seen, err := s.store.open(ctx, s.store.read, key, what)
	if err != nil {
		return domain.Outcome{}, fault(err)
	}
	outcome := seen.reacquire(claim)
	if !fresh(outcome) {
		return outcome, nil
	}
	hold := domain.Hold{
		Order: claim.Order.Late(), Buyer: claim.Buyer, Request: claim.Request, Quantity: claim.Quantity, State: domain.Held,
	}
	err = s.store.inTx(ctx, func(ctx context.Context, tx *ent.Tx) error {
		// What it depends on cannot all be conditions of the updates.
		if err := s.lock(ctx, tx, key, []domain.Hold{hold}); err != nil {
			return err
		}
		seen, err := s.store.open(ctx, tx.Client(), key, what)
		if err != nil {
			return err
		}
		if outcome = seen.reacquire(claim); !fresh(outcome) {
			return errDecided
		}
		hold.CreatedAt = seen.now
		if err := s.replace(ctx, tx, key, hold, seen.gate.PerUserLimit); err != nil {
			return stale(err)
		}
		_, err = s.store.takeUnits(ctx, tx, key, claim.Quantity, "epoch = ?", seen.epoch)
		return err
	})
	if err != nil && !errors.Is(err, errDecided) {
		return domain.Outcome{}, err
	}
	return outcome, nil
}

// replace writes a hold, in the place of a released one if there is one, and
// adds its units to the buyer's. A request that has a hold keeps it.
func (s *Stock) replace(ctx context.Context, tx *ent.Tx, key saleKey, hold domain.Hold, limit int64) error {
	holds := []domain.Hold{hold}
	if err := s.store.putHolds(ctx, tx, key, holds, sql.ConflictColumns("id"), sql.ResolveWithNewValues()); err != nil {
		return err
	}
	if err := s.store.putRequests(ctx, tx, key, holds, sql.ConflictColumns("id"), sql.ResolveWithIgnore()); err != nil {
		return err
	}
	units, _ := unitsOf(holds)
	return s.store.addUnits(ctx, tx, key, units, limit)
}
