package sqlstore

import (
	"entgo.io/ent/dialect"
	"entgo.io/ent/dialect/sql"
)

// The ledger keeps times as UTC Unix milliseconds and takes them from the
// database's clock. nowSQL is that clock in each database. The session's time
// zone is UTC in MySQL (see open.go), as its NOW is in local time and would
// repeat an hour in autumn.
var nowSQL = map[string]string{
	dialect.SQLite:   "CAST(ROUND(unixepoch('subsec') * 1000) AS INTEGER)",
	dialect.MySQL:    "CAST(UNIX_TIMESTAMP(NOW(3)) * 1000 AS SIGNED)",
	dialect.Postgres: "CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT)",
}

// bySaleSQL is the table of orders, read by sale and id. MariaDB has to be told
// the index: it would begin each page at the sale's first order, because the
// bound of the page fits the primary key as well.
var bySaleSQL = map[string]string{
	dialect.SQLite:   "`orders`",
	dialect.MySQL:    "`orders` FORCE INDEX (`order_activity_id_sku_id_id_status_quantity`)",
	dialect.Postgres: `"orders"`,
}

// addedSQL is, in an upsert of quotas, the sum of what the row has and what
// the insert wanted to write.
var addedSQL = map[string]string{
	dialect.SQLite:   "`quotas`.`used` + `excluded`.`used`",
	dialect.MySQL:    "`used` + VALUES(`used`)",
	dialect.Postgres: `"quotas"."used" + "excluded"."used"`,
}

// now is the database's clock as an expression.
func (s *Store) now() sql.Querier { return sql.Raw(nowSQL[s.dialect]) }

// forUpdate locks the rows a query returns. SQLite has no such clause and needs
// none: its one writer has the whole database.
func (s *Store) forUpdate(q *sql.Selector) {
	if s.dialect != dialect.SQLite {
		q.ForUpdate()
	}
}
