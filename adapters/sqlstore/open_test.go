package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"seckill/domain"
	"seckill/test/harness"
)

func TestBadURLs(t *testing.T) {
	for _, url := range []string{
		"", "nonsense", "oracle://u:geheim@h/d", "sqlite://", "sqlite:///", "sqlite://host/file.db", "sqlite:///f.db?mode=ro",
		"sqlite:///folder/", "mysql://u:geheim@h:3306", "mysql://u:geheim@h/", "mysql:///d", "mysql://u:geheim@h/a/b",
		"mysql://u:geheim@h/d?tls=geheim-too", "postgres://u:geheim@h", "postgres:///d", "postgres://u:geheim@h/d?sslmode=geheim",
		"mysql://u:geheim@h:port/d", "postgres://u:geheim@[h/d", "://geheim",
	} {
		_, err := Open(t.Context(), Config{URL: url})
		var field *domain.FieldError
		if !errors.As(err, &field) || field.Field != "database" {
			t.Errorf("%s: error is %v, want a FieldError on database", url, err)
		}
		if err != nil && strings.Contains(err.Error(), "geheim") {
			t.Errorf("%s: the error shows a secret: %v", url, err)
		}
	}
	if _, err := Open(t.Context(), Config{URL: "sqlite:///x.db", MaxOpen: -1}); !errors.Is(err, domain.ErrInvalid) {
		t.Errorf("negative pool: %v", err)
	}
}

func TestNoServer(t *testing.T) {
	for _, scheme := range []string{"mysql", "postgres"} {
		url := fmt.Sprintf("%s://u:geheim@%s/d", scheme, harness.FreeAddr(t))
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		_, err := Open(ctx, Config{URL: url})
		if !errors.Is(err, domain.ErrUnavailable) {
			t.Errorf("%s: error is %v, want ErrUnavailable", scheme, err)
		}
		if err != nil && strings.Contains(err.Error(), "geheim") {
			t.Errorf("%s: the error shows the password: %v", scheme, err)
		}
	}
}

func TestSQLiteFileNames(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"plain.db", "with space.db", "per%cent.db", "ques?tion.db", "名.db", "a#b.db", "a&_pragma=x.db"} {
		path := filepath.Join(dir, name)
		s, err := Open(t.Context(), Config{URL: (&url.URL{Scheme: "sqlite", Path: path}).String()})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		_ = s.Close()
		if _, err := os.Stat(path); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestPoolSize(t *testing.T) {
	s, err := Open(t.Context(), Config{URL: "sqlite://" + filepath.Join(t.TempDir(), "x.db"), MaxOpen: 3})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	open := 0
	for _, pool := range s.pools {
		open += pool.Stats().MaxOpenConnections
	}
	if open != 3 {
		t.Errorf("the pools have %d connections, want 3", open)
	}
}

// covers O1: the same program on each of the databases, and its tables first.
func TestCheckSchema(t *testing.T) {
	for name, url := range databases {
		t.Run(name, func(t *testing.T) {
			config := Config{URL: url(t)}
			s, err := Open(t.Context(), config)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			if err := s.CheckSchema(t.Context()); err == nil || !strings.Contains(err.Error(), "seckill migrate") {
				t.Errorf("no tables: %v", err)
			}
			var lines []string
			for range 2 {
				err := Migrate(t.Context(), config, func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) })
				if err != nil {
					t.Fatal(err)
				}
			}
			if len(lines) < 2 || lines[len(lines)-1] != "no pending migrations" {
				t.Errorf("log of two runs: %q", lines)
			}
			if err := s.CheckSchema(t.Context()); err != nil {
				t.Errorf("after the migrations: %v", err)
			}
			if err := s.CheckDurable(t.Context()); err != nil {
				t.Errorf("durable settings: %v", err)
			}
			exec(t, s, "INSERT INTO goose_db_version (version_id, is_applied) VALUES (99999, "+yes[s.dialect]+")")
			if err := s.CheckSchema(t.Context()); err == nil || !strings.Contains(err.Error(), "newer than this program") {
				t.Errorf("newer tables: %v", err)
			}
		})
	}
}

var yes = map[string]string{"sqlite3": "1", "mysql": "1", "postgres": "true"}

func TestMigrateInParallel(t *testing.T) {
	for _, name := range []string{"mariadb", "postgres"} {
		t.Run(name, func(t *testing.T) {
			config := Config{URL: databases[name](t), MaxOpen: 1}
			start := make(chan struct{})
			var group sync.WaitGroup
			for range 8 {
				group.Go(func() {
					<-start
					if err := Migrate(t.Context(), config, nil); err != nil {
						t.Error(err)
					}
				})
			}
			close(start)
			group.Wait()
		})
	}
}

// A MySQL server commits a CREATE TABLE by itself, so a program can be cut off
// before the row that goose wants to see there.
func TestMigrateAfterACut(t *testing.T) {
	for name, open := range databases {
		t.Run(name, func(t *testing.T) {
			config := Config{URL: open(t)}
			s, err := Open(t.Context(), config)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			if err := s.CheckSchema(t.Context()); err == nil { // makes goose's table
				t.Fatal("no tables, and no complaint")
			}
			exec(t, s, "DELETE FROM goose_db_version")
			for range 2 {
				if err := Migrate(t.Context(), config, nil); err != nil {
					t.Fatal(err)
				}
			}
			if err := s.CheckSchema(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

// covers Q7: the limit is a CHECK, so a database that has none must not be used.
func TestMissingChecksAreFound(t *testing.T) {
	s := migrated(t, Config{URL: databases["postgres"](t)})
	exec(t, s, "ALTER TABLE quotas DROP CONSTRAINT quotas_within_cap")
	if err := s.CheckSchema(t.Context()); !errors.Is(err, errUngated) {
		t.Errorf("error is %v, want errUngated", err)
	}
	var rows int
	if err := s.pools[0].QueryRow("SELECT COUNT(*) FROM quotas").Scan(&rows); err != nil || rows != 0 {
		t.Errorf("%d rows left, %v", rows, err)
	}
}

// covers N8
func TestUnsafeSettingsAreNamed(t *testing.T) {
	t.Run("postgres", func(t *testing.T) {
		url := databases["postgres"](t)
		s, err := Open(t.Context(), Config{URL: url + "&synchronous_commit=off"})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		if err := s.CheckDurable(t.Context()); err == nil || !strings.Contains(err.Error(), "synchronous_commit is off") {
			t.Errorf("error is %v", err)
		}
	})
	t.Run("mariadb", func(t *testing.T) {
		server := harness.MariaDB(t)
		s, err := Open(t.Context(), Config{URL: server.URL})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		exec(t, s, "SET GLOBAL innodb_flush_log_at_trx_commit = 2")
		if err := s.CheckDurable(t.Context()); err == nil || !strings.Contains(err.Error(), "innodb_flush_log_at_trx_commit is 2") {
			t.Errorf("error is %v", err)
		}
	})
}

func exec(t testing.TB, s *Store, statement string) {
	t.Helper()
	if _, err := s.pools[0].Exec(statement); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}
