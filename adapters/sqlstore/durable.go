package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"entgo.io/ent/dialect"
)

// A setting can be asked for, and has values with which a commit that was
// answered survives a crash.
type setting struct {
	name string
	ask  string
	safe []string
}

var durable = map[string][]setting{
	// The store opens SQLite with synchronous = FULL itself.
	dialect.SQLite: nil,
	dialect.MySQL: {
		{"innodb_flush_log_at_trx_commit", "SELECT @@GLOBAL.innodb_flush_log_at_trx_commit", []string{"1", "3"}},
		// A commit that is missing in the binary log is rolled back after a crash.
		{"sync_binlog", "SELECT IF(@@GLOBAL.log_bin, @@GLOBAL.sync_binlog, 1)", []string{"1"}},
	},
	dialect.Postgres: {
		{"fsync", "SHOW fsync", []string{"on"}},
		{"full_page_writes", "SHOW full_page_writes", []string{"on"}},
		{"synchronous_commit", "SHOW synchronous_commit", []string{"on", "local", "remote_write", "remote_apply"}},
	},
}

// CheckDurable says whether a crash of the database could lose a commit that
// was answered: nil, or an error that names every setting to change.
func (s *Store) CheckDurable(ctx context.Context) error {
	var unsafe []error
	for _, setting := range durable[s.dialect] {
		var value string
		if err := s.pools[0].QueryRowContext(ctx, setting.ask).Scan(&value); err != nil {
			return fmt.Errorf("ask for %s: %w", setting.name, fault(err))
		}
		if !slices.Contains(setting.safe, value) {
			unsafe = append(unsafe, fmt.Errorf("%s is %s: a crash can lose commits, set it to %s", setting.name, value, strings.Join(setting.safe, " or ")))
		}
	}
	return errors.Join(unsafe...)
}
