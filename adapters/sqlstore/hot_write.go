package sqlstore

import (
	"context"
	stdsql "database/sql"
	"errors"
	"maps"
	"slices"

	"entgo.io/ent/dialect"
	"entgo.io/ent/dialect/sql"

	"seckill/domain"
	"seckill/ent"
)

// putHolds writes the records of holds, in the order of their ids. Without
// options an id that is there is an error.
func (s *Store) putHolds(ctx context.Context, tx *ent.Tx, key saleKey, holds []domain.Hold, options ...sql.ConflictOption) error {
	rows := make([][]any, len(holds))
	for i, hold := range holds {
		rows[i] = []any{
			key.of(string(hold.Order)), string(hold.Buyer), string(hold.Request), hold.Quantity, string(hold.State), millis(hold.CreatedAt),
		}
	}
	return s.insert(ctx, tx, "hot_holds", []string{"id", "buyer", "request", "quantity", "state", "created_at"}, rows, options)
}

// putRequests notes which holds the buyers' requests made; the first of a load
// counts.
func (s *Store) putRequests(ctx context.Context, tx *ent.Tx, key saleKey, holds []domain.Hold, options ...sql.ConflictOption) error {
	var rows [][]any
	seen := map[string]bool{}
	for _, hold := range holds {
		if hold.Request == "" {
			continue
		}
		id := key.request(hold.Buyer, hold.Request)
		if !seen[id] {
			seen[id] = true
			rows = append(rows, []any{id, key.of(string(hold.Order))})
		}
	}
	return s.insert(ctx, tx, "hot_requests", []string{"id", "hold"}, rows, options)
}

// addedUnitsSQL is, in an upsert of buyers, the sum of what the row has and
// what the insert wanted to write.
var addedUnitsSQL = map[string]string{
	dialect.SQLite:   "`hot_buyers`.`units` + `excluded`.`units`",
	dialect.MySQL:    "`units` + VALUES(`units`)",
	dialect.Postgres: `"hot_buyers"."units" + "excluded"."units"`,
}

// addUnits adds to what buyers have. The limit is the CHECK of the table, so
// one statement serves many buyers. Adding nothing under the largest limit locks
// their rows.
func (s *Store) addUnits(ctx context.Context, tx *ent.Tx, key saleKey, units map[domain.BuyerID]int64, limit int64) error {
	rows := make([][]any, 0, len(units))
	for buyer, n := range units {
		rows = append(rows, []any{key.of(string(buyer)), n, limit})
	}
	return s.insert(ctx, tx, "hot_buyers", []string{"id", "units", "cap"}, rows, []sql.ConflictOption{
		sql.ConflictColumns("id"),
		sql.ResolveWith(func(u *sql.UpdateSet) {
			u.Set("units", sql.Raw(addedUnitsSQL[s.dialect]))
			u.SetExcluded("cap")
		}),
	})
}

// insert writes rows in the order of their ids, so that two transactions do
// not wait for each other.
func (s *Store) insert(ctx context.Context, tx *ent.Tx, table string, columns []string, rows [][]any, options []sql.ConflictOption) error {
	slices.SortFunc(rows, func(a, b []any) int {
		left, right := a[0].(string), b[0].(string)
		switch {
		case left < right:
			return -1
		case left > right:
			return 1
		}
		return 0
	})
	for chunk := range slices.Chunk(rows, maxRows) {
		insert := sql.Dialect(s.dialect).Insert(table).Columns(columns...)
		if len(options) > 0 {
			insert.OnConflict(options...)
		}
		s.addRows(insert, chunk)
		if err := execute(ctx, tx, insert); err != nil {
			return err
		}
	}
	return nil
}

// subtractUnits takes released holds off what their buyers have.
func (s *Store) subtractUnits(ctx context.Context, tx *ent.Tx, key saleKey, units map[domain.BuyerID]int64) error {
	ids := make([]string, 0, len(units))
	for buyer := range units {
		ids = append(ids, key.of(string(buyer)))
	}
	slices.Sort(ids)
	if len(ids) > 1 && s.dialect != dialect.SQLite {
		// The updates below go by quantity. This keeps the one order of locks.
		condition, args := s.in("id", ids)
		var id string
		err := s.rows(ctx, tx.Client(), []any{&id}, func() error { return nil },
			"SELECT id FROM hot_buyers WHERE "+condition+" ORDER BY id FOR UPDATE", args...)
		if err != nil {
			return err
		}
	}
	same := map[int64][]string{}
	for _, id := range ids {
		n := units[domain.BuyerID(key.name(id))]
		same[n] = append(same[n], id)
	}
	for _, n := range slices.Sorted(maps.Keys(same)) {
		condition, args := s.in("id", same[n])
		// A figure that was damaged before stops at 0; the audit names it.
		_, err := s.change(ctx, tx.Client(), "UPDATE hot_buyers SET units = CASE WHEN units > ? THEN units - ? ELSE 0 END WHERE "+condition,
			append([]any{n, n}, args...)...)
		if err != nil {
			return err
		}
	}
	return nil
}

// takeUnits turns available units of a sale into held ones, if it is ready and
// the further condition holds, and returns what was available before. errAgain:
// it is not so any more. It locks the row that all grabs of the sale compete for.
func (s *Store) takeUnits(ctx context.Context, tx *ent.Tx, key saleKey, units int64, condition string, args ...any) (before int64, err error) {
	set, returning := "available = available - ?", " RETURNING available"
	if s.dialect == dialect.MySQL {
		// The answer to the update itself brings the figure, without another query.
		set, returning = "available = LAST_INSERT_ID(available - ?)", ""
	}
	query := "UPDATE hot_sales SET " + set + ", held = held + ? WHERE id = ? AND stage = ? AND available >= ? AND " + condition + returning
	args = append([]any{units, units, string(key), ready, units}, args...)
	if s.dialect != dialect.MySQL {
		err = s.one(ctx, tx.Client(), []any{&before}, query, args...)
		if errors.Is(err, stdsql.ErrNoRows) {
			return 0, errAgain
		}
		return before + units, err
	}
	result, err := tx.Client().ExecContext(ctx, query, args...)
	if err != nil {
		return 0, err
	}
	found, err := result.RowsAffected()
	if err == nil && found == 0 {
		return 0, errAgain
	}
	if err != nil {
		return 0, err
	}
	before, err = result.LastInsertId()
	return before + units, err
}

// stale makes a request for another try of the errors by which keys and checks
// say that the book was out of date.
func stale(err error) error {
	if kind := classify(err); kind == unique || kind == check {
		return errors.Join(errAgain, err)
	}
	return err
}
