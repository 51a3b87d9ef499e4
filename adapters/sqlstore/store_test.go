package sqlstore

import (
	"context"
	"path/filepath"
	"testing"

	"seckill/test/conformance"
	"seckill/test/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }

// databases makes an empty ledger in each kind of database.
var databases = map[string]func(t testing.TB) string{
	"sqlite":   func(t testing.TB) string { return "sqlite://" + filepath.Join(t.TempDir(), "ledger.db") },
	"mariadb":  func(t testing.TB) string { return harness.SharedMariaDB(t).NewDatabase(t) },
	"postgres": func(t testing.TB) string { return harness.SharedPostgres(t).NewDatabase(t) },
}

// each runs a test on every database.
func each(t *testing.T, test func(t *testing.T, s *Store)) {
	for name, url := range databases {
		t.Run(name, func(t *testing.T) { test(t, migrated(t, Config{URL: url(t)})) })
	}
}

// eachServer is each without SQLite, which has one writer at a time.
func eachServer(t *testing.T, test func(t *testing.T, s *Store)) {
	for name, url := range databases {
		if name != "sqlite" {
			t.Run(name, func(t *testing.T) { test(t, migrated(t, Config{URL: url(t)})) })
		}
	}
}

func migrated(t testing.TB, config Config) *Store {
	t.Helper()
	ctx := context.Background()
	if err := Migrate(ctx, config, t.Logf); err != nil {
		t.Fatal(err)
	}
	s, err := Open(ctx, config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func TestLedger(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		conformance.Ledger(t, func(*testing.T) conformance.LedgerPorts { return s })
	})
}
