package sqlstore

import (
	"context"
	stdsql "database/sql"
	"strconv"
	"strings"

	"entgo.io/ent/dialect"
)

// querier is a client or a transaction of ent.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*stdsql.Rows, error)
	ExecContext(ctx context.Context, query string, args ...any) (stdsql.Result, error)
}

// bind writes the parameters of a statement as the database wants them.
func (s *Store) bind(query string) string {
	if s.dialect != dialect.Postgres {
		return query
	}
	var text strings.Builder
	n := 0
	for {
		before, after, found := strings.Cut(query, "?")
		text.WriteString(before)
		if !found {
			return text.String()
		}
		n++
		text.WriteString("$" + strconv.Itoa(n))
		query = after
	}
}

// in is the condition that a column of text has one of the values, and its parameters.
func (s *Store) in(column string, values []string) (string, []any) {
	if s.dialect == dialect.Postgres {
		return column + " = ANY(?)", []any{values}
	}
	args := make([]any, len(values))
	for i, value := range values {
		args[i] = value
	}
	return column + " IN (?" + strings.Repeat(", ?", len(values)-1) + ")", args
}

// inNumbers is in for a column of numbers.
func (s *Store) inNumbers(column string, values []int64) (string, []any) {
	if s.dialect == dialect.Postgres {
		return column + " = ANY(?)", []any{values}
	}
	args := make([]any, len(values))
	for i, value := range values {
		args[i] = value
	}
	return column + " IN (?" + strings.Repeat(", ?", len(values)-1) + ")", args
}

// one reads the only row of a query, or stdsql.ErrNoRows.
func (s *Store) one(ctx context.Context, db querier, into []any, query string, args ...any) error {
	found := false
	err := s.rows(ctx, db, into, func() error { found = true; return nil }, query, args...)
	if err == nil && !found {
		return stdsql.ErrNoRows
	}
	return err
}

// rows calls each after every row that it has read into the given places.
func (s *Store) rows(ctx context.Context, db querier, into []any, each func() error, query string, args ...any) error {
	rows, err := db.QueryContext(ctx, s.bind(query), args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := rows.Scan(into...); err != nil {
			return err
		}
		if err := each(); err != nil {
			return err
		}
	}
	return rows.Err()
}

// change runs a statement and returns how many rows it found.
func (s *Store) change(ctx context.Context, db querier, query string, args ...any) (int64, error) {
	result, err := db.ExecContext(ctx, s.bind(query), args...)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

// lockSuffix ends a query that locks its rows. SQLite has no such clause and
// needs none: its one writer has the whole database.
var lockSuffix = map[string]string{
	dialect.SQLite:   "",
	dialect.MySQL:    " FOR UPDATE",
	dialect.Postgres: " FOR UPDATE",
}

// freeSuffix is the same for rows that nobody else has locked.
var freeSuffix = map[string]string{
	dialect.SQLite:   "",
	dialect.MySQL:    " FOR UPDATE SKIP LOCKED",
	dialect.Postgres: " FOR UPDATE SKIP LOCKED",
}
