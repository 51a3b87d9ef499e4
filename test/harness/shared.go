package harness

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"
)

// shared holds one server for the whole test process, started on first use.
type shared[S interface{ discard() error }] struct {
	once   sync.Once
	server S
	err    error
}

func (s *shared[S]) get(t testing.TB, start func() (S, error)) S {
	t.Helper()
	s.once.Do(func() {
		if s.server, s.err = start(); s.err == nil {
			atEnd(s.server.discard)
		}
	})
	if s.err != nil {
		t.Fatal(s.err)
	}
	return s.server
}

var (
	sharedRedis    shared[*RedisServer]
	sharedMariaDB  shared[*SQLServer]
	sharedPostgres shared[*SQLServer]
)

// SharedRedis is the test process' common Redis. Tests keep apart by using
// different key prefixes, and must not stop it.
func SharedRedis(t testing.TB) *RedisServer {
	t.Helper()
	Need(t, "redis-server")
	return sharedRedis.get(t, func() (*RedisServer, error) { return startRedis() })
}

// SharedMariaDB is the test process' common MariaDB. Tests keep apart by using
// NewDatabase, and must not stop it.
func SharedMariaDB(t testing.TB) *SQLServer {
	t.Helper()
	Need(t, "mariadbd")
	Need(t, "mariadb-install-db")
	return sharedMariaDB.get(t, func() (*SQLServer, error) { return startMariaDB() })
}

// SharedPostgres is the test process' common PostgreSQL. Tests keep apart by
// using NewDatabase, and must not stop it.
func SharedPostgres(t testing.TB) *SQLServer {
	t.Helper()
	Need(t, "postgres")
	Need(t, "initdb")
	return sharedPostgres.get(t, startPostgres)
}

var (
	endMutex sync.Mutex
	endings  []func() error
)

// atEnd has something done when the test process ends.
func atEnd(ending func() error) {
	endMutex.Lock()
	defer endMutex.Unlock()
	endings = append(endings, ending)
}

func closeShared() {
	endMutex.Lock()
	defer endMutex.Unlock()
	var all []error
	for _, ending := range endings {
		all = append(all, ending())
	}
	endings = nil
	if err := errors.Join(all...); err != nil {
		fmt.Fprintln(os.Stderr, "end of tests:", err)
	}
}
