package sqlstore

import (
	"context"
	stdsql "database/sql"
	"strings"

	"entgo.io/ent/dialect"
)

// Product is the database's name: sqlite, postgres, mysql or mariadb.
func (s *Store) Product(ctx context.Context) (string, error) {
	if s.dialect != dialect.MySQL {
		return map[string]string{dialect.SQLite: "sqlite", dialect.Postgres: "postgres"}[s.dialect], nil
	}
	rows, err := s.read.QueryContext(ctx, "SELECT VERSION()")
	if err != nil {
		return "", fault(err)
	}
	version, err := oneText(rows)
	if err != nil {
		return "", fault(err)
	}
	if strings.Contains(strings.ToLower(version), "mariadb") {
		return "mariadb", nil
	}
	return "mysql", nil
}

func oneText(rows *stdsql.Rows) (text string, err error) {
	defer rows.Close()
	for rows.Next() {
		if err := rows.Scan(&text); err != nil {
			return "", err
		}
	}
	return text, rows.Err()
}
