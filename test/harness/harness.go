// Package harness starts real servers (Redis, MariaDB, PostgreSQL) and the
// project's own program for tests, on free loopback ports and in temporary
// folders, and takes them away again.
//
// Every server belongs either to one test (Redis, MariaDB, Postgres: such a
// test may stop, kill or pause it) or to the whole test process (SharedRedis,
// SharedMariaDB, SharedPostgres: never stop these). A package that uses shared
// servers hands its TestMain to Main:
//
//	func TestMain(m *testing.M) { harness.Main(m) }
//
// A server whose program is not installed skips the test. With CI or
// SECKILL_TEST_SERVICES=required set it fails the test instead, because there
// a skipped test would look like a passed one.
package harness

import (
	"os"
	"testing"
)

// Main runs the tests of a package, stops everything the test process still
// shares, and exits with the tests' code.
func Main(m *testing.M) {
	code := m.Run()
	closeShared()
	os.Exit(code)
}
