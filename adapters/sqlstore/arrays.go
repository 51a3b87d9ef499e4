package sqlstore

import (
	"entgo.io/ent/dialect"
	"entgo.io/ent/dialect/sql"
)

// PostgreSQL is slow with thousands of parameters, so there a list of values is
// one parameter, an array.

// addRows gives an insert its rows, of int64, string and nil. In PostgreSQL
// they are one row of arrays, which the server takes apart side by side.
func (s *Store) addRows(insert *sql.InsertBuilder, rows [][]any) {
	if s.dialect != dialect.Postgres {
		for _, row := range rows {
			insert.Values(row...)
		}
		return
	}
	arrays := make([]any, len(rows[0]))
	for i := range arrays {
		arrays[i] = array(rows, i)
	}
	insert.Values(arrays...)
}

// array is one column of the rows.
func array(rows [][]any, column int) sql.Querier {
	numbers, texts := make([]int64, len(rows)), make([]*string, len(rows))
	isText := false
	for i, row := range rows {
		switch value := row[column].(type) {
		case int64:
			numbers[i] = value
		case string:
			texts[i], isText = &value, true
		case nil: // stays NULL; only columns of text have any
			isText = true
		}
	}
	return sql.ExprFunc(func(b *sql.Builder) {
		if isText {
			b.WriteString("unnest(").Arg(texts).WriteString("::text[])")
		} else {
			b.WriteString("unnest(").Arg(numbers).WriteString("::bigint[])")
		}
	})
}

// among is true of a column of text that has one of the values.
func (s *Store) among(column string, values []string) *sql.Predicate {
	if s.dialect != dialect.Postgres {
		list := make([]any, len(values))
		for i, value := range values {
			list[i] = value
		}
		return sql.In(column, list...)
	}
	return sql.P(func(b *sql.Builder) {
		b.Ident(column).WriteString(" = ANY(").Arg(values).WriteString(")")
	})
}
