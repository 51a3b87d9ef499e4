// Package schema describes the tables of the ledger.
//
// Times are UTC Unix milliseconds in 64-bit integers, 0 when unset, and are
// always written by the database's own clock. So a time means the same in all
// three databases: no zones, no truncation, no driver in between.
//
// Ids compare byte-wise. The collations that see to it stand in the migrations,
// as one name does not fit all databases.
package schema

import (
	"strconv"

	"entgo.io/ent"
	"entgo.io/ent/dialect"
	"entgo.io/ent/dialect/entsql"
	"entgo.io/ent/schema"
	"entgo.io/ent/schema/field"
)

// Lengths of ids, in bytes. An order id has at most 96, its second hold five
// more; sale keys are two integers of at most 16 digits.
const (
	orderLen = 96
	holdLen  = 104
	saleLen  = 40
	nameLen  = 64
	quotaLen = saleLen + nameLen + 2
	fenceLen = 191
	wordLen  = 32
)

// varchar is one column type in all three databases.
func varchar(n int) map[string]string {
	text := "varchar(" + strconv.Itoa(n) + ")"
	return map[string]string{dialect.MySQL: text, dialect.Postgres: text}
}

func text(name string, n int) ent.Field {
	return field.String(name).MaxLen(n).SchemaType(varchar(n))
}

// title is a text for people: its length is counted in characters, as the
// domain does.
func title(name string, n int) ent.Field {
	return field.String(name).MaxRuneLen(n).SchemaType(varchar(n))
}

// table names a table. The checks are gates that transactions count on, not
// only guards, so the migrations have them too.
func table(name string, checks map[string]string) []schema.Annotation {
	return []schema.Annotation{entsql.Annotation{Table: name, Checks: checks}}
}
