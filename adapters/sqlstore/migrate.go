package sqlstore

import (
	"context"
	stdsql "database/sql"
	"errors"
	"fmt"

	"entgo.io/ent/dialect"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"

	"seckill/ent"
	"seckill/ent/migrate"
)

// migrations names the folder of migrations and goose's word for each database.
var migrations = map[string]struct {
	folder string
	goose  goose.Dialect
}{
	dialect.SQLite:   {"sqlite", goose.DialectSQLite3},
	dialect.MySQL:    {"mysql", goose.DialectMySQL},
	dialect.Postgres: {"postgres", goose.DialectPostgres},
}

// Migrate brings the tables to what this program needs, and tells logf about
// each step; logf may be nil. Repeat: does nothing. With MySQL and PostgreSQL
// several may run at a time and one of them works. MySQL cannot make a table in
// a transaction: there, a migration that was cut off is simply run again.
func Migrate(ctx context.Context, config Config, logf func(format string, args ...any)) error {
	s, err := Open(ctx, config)
	if err != nil {
		return err
	}
	defer s.Close()
	provider, err := s.provider()
	if err != nil {
		return err
	}
	results, err := provider.Up(ctx)
	for _, result := range results {
		if logf != nil && result.Error == nil {
			logf("applied migration %s in %s", result.Source.Path, result.Duration)
		}
	}
	if err != nil {
		return fmt.Errorf("migrate: %w", fault(err))
	}
	if logf != nil && len(results) == 0 {
		logf("no pending migrations")
	}
	return nil
}

// CheckSchema says whether the tables are what this program needs, and whether
// the database enforces their checks: nil, or an error that tells what to do.
func (s *Store) CheckSchema(ctx context.Context) error {
	provider, err := s.provider()
	if err != nil {
		return err
	}
	current, target, err := provider.GetVersions(ctx)
	switch {
	case err != nil:
		return fmt.Errorf("check schema: %w", fault(err))
	case current < target:
		return fmt.Errorf("pending migrations: the database is at version %d, this program needs %d: run seckill migrate", current, target)
	case current > target:
		return fmt.Errorf("database schema is newer than this program: version %d, and this program knows %d", current, target)
	}
	return s.checkGates(ctx)
}

// errUngated says that a buyer could exceed the limit: MySQL before 8.0.16 reads
// a CHECK and forgets it, MariaDB has a setting that turns them off.
var errUngated = errors.New("the database does not enforce CHECK constraints: MySQL 8.0.16, MariaDB 10.6 or newer is needed, with check_constraint_checks on")

// errGated rolls back after the check has done its work.
var errGated = errors.New("the check constraint works")

// checkGates tries to write a quota above its limit. Nothing of it stays.
func (s *Store) checkGates(ctx context.Context) error {
	err := s.once(ctx, func(ctx context.Context, tx *ent.Tx) error {
		err := tx.Quota.Create().SetID("check of the gates").SetUsed(2).SetCap(1).Exec(ctx)
		switch {
		case err == nil:
			return errUngated
		case classify(err) == check:
			return errGated
		}
		return err
	})
	switch {
	case errors.Is(err, errGated):
		return nil
	case errors.Is(err, errUngated):
		return err
	}
	return fmt.Errorf("check schema: %w", fault(err))
}

func (s *Store) provider() (*goose.Provider, error) {
	kind := migrations[s.dialect]
	options := []goose.ProviderOption{goose.WithDisableGlobalRegistry(true)}
	switch s.dialect {
	case dialect.MySQL:
		options = append(options, goose.WithSessionLocker(mysqlLocker{}))
	case dialect.Postgres:
		locker, err := lock.NewPostgresSessionLocker()
		if err != nil {
			return nil, fmt.Errorf("lock for migrations: %w", err)
		}
		options = append(options, goose.WithSessionLocker(locker))
	}
	provider, err := goose.NewProvider(kind.goose, s.pools[0], migrate.Migrations(kind.folder), options...)
	if err != nil {
		return nil, fmt.Errorf("read migrations: %w", err)
	}
	return provider, nil
}

// mysqlLocker lets one program at a time migrate a database. The server drops
// the lock with its connection.
type mysqlLocker struct{}

const mysqlLockWait = 300 // seconds

func (mysqlLocker) SessionLock(ctx context.Context, conn *stdsql.Conn) error {
	var got stdsql.NullInt64
	err := conn.QueryRowContext(ctx, "SELECT GET_LOCK(CONCAT('seckill:', MD5(DATABASE())), ?)", mysqlLockWait).Scan(&got)
	if err == nil && got.Int64 != 1 {
		return fmt.Errorf("another migration has run for %d seconds", mysqlLockWait)
	}
	return err
}

func (mysqlLocker) SessionUnlock(ctx context.Context, conn *stdsql.Conn) error {
	_, err := conn.ExecContext(ctx, "DO RELEASE_LOCK(CONCAT('seckill:', MD5(DATABASE())))")
	return err
}
