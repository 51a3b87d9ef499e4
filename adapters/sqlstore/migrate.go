package sqlstore

import (
	"context"
	stdsql "database/sql"
	"errors"
	"fmt"

	"entgo.io/ent/dialect"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/database"

	"seckill/ent"
	"seckill/ent/migrate"
)

// migrations names, for each database, the folder of migrations, goose's word
// for it, and the statements by which one program at a time migrates: lock
// answers 1 when it has the lock, and the server drops it with its connection.
var migrations = map[string]struct {
	folder       string
	goose        goose.Dialect
	lock, unlock string
}{
	dialect.SQLite: {folder: "sqlite", goose: goose.DialectSQLite3},
	dialect.MySQL: {
		folder: "mysql",
		goose:  goose.DialectMySQL,
		lock:   "SELECT GET_LOCK(CONCAT('seckill:', MD5(DATABASE())), 300)",
		unlock: "DO RELEASE_LOCK(CONCAT('seckill:', MD5(DATABASE())))",
	},
	dialect.Postgres: {
		folder: "postgres",
		goose:  goose.DialectPostgres,
		lock:   "SELECT 1 FROM (SELECT pg_advisory_lock(hashtext('seckill'))) AS locked",
		unlock: "SELECT pg_advisory_unlock(hashtext('seckill'))",
	},
}

// Migrate brings the tables to what this program needs, and tells logf about
// each step; logf may be nil. Repeat: does nothing. With MySQL and PostgreSQL
// several may run at a time and one of them works. MySQL cannot make a table in
// a transaction: there, a migration that was cut off is simply run again.
func Migrate(ctx context.Context, config Config, logf func(format string, args ...any)) error {
	if config.MaxOpen == 1 {
		config.MaxOpen = 2 // the lock has a connection of its own
	}
	s, err := Open(ctx, config)
	if err != nil {
		return err
	}
	defer s.Close()
	results, err := s.up(ctx)
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

// up applies what is pending, one program at a time. The lock is taken here and
// not left to goose, which looks for its table of versions, and makes it, before
// it locks: with MySQL another program could then see the table without its row.
func (s *Store) up(ctx context.Context) ([]*goose.MigrationResult, error) {
	if kind := migrations[s.dialect]; kind.lock != "" {
		conn, err := s.pools[0].Conn(ctx)
		if err != nil {
			return nil, err
		}
		defer conn.Close()
		var got stdsql.NullInt64
		if err := conn.QueryRowContext(ctx, kind.lock).Scan(&got); err != nil {
			return nil, fmt.Errorf("lock for migrations: %w", err)
		}
		if got.Int64 != 1 {
			return nil, errors.New("lock for migrations: another migration has run for 300 seconds")
		}
		// If this fails, the lock ends with the connection.
		defer func() { _, _ = conn.ExecContext(context.WithoutCancel(ctx), kind.unlock) }()
	}
	if err := s.mendVersions(ctx); err != nil {
		return nil, err
	}
	provider, err := s.provider()
	if err != nil {
		return nil, err
	}
	return provider.Up(ctx)
}

// mendVersions writes the first row of goose's table of versions if a program
// was cut off between making the table and writing it. goose refuses to work then.
func (s *Store) mendVersions(ctx context.Context) error {
	versions, err := database.NewStore(migrations[s.dialect].goose, goose.DefaultTablename)
	if err != nil {
		return fmt.Errorf("read migrations: %w", err)
	}
	rows, err := versions.ListMigrations(ctx, s.pools[0])
	if err != nil || len(rows) > 0 {
		return nil //nolint:nilerr // no table yet, or a sound one
	}
	return versions.Insert(ctx, s.pools[0], database.InsertRequest{Version: 0})
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
	provider, err := goose.NewProvider(kind.goose, s.pools[0], migrate.Migrations(kind.folder), goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return nil, fmt.Errorf("read migrations: %w", err)
	}
	return provider, nil
}
