package harness

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"testing"
)

// Package is what to install to have a program, by package manager.
type Package struct{ Apt, Brew string }

// Programs lists the programs that the harness starts.
var Programs = map[string]Package{
	"redis-server":       {"redis-server", "redis"},
	"mariadbd":           {"mariadb-server", "mariadb"},
	"mariadb-install-db": {"mariadb-server", "mariadb"},
	"postgres":           {"postgresql", "postgresql@15"},
	"initdb":             {"postgresql", "postgresql@15"},
}

// Need returns the path of a server's program. When it is not installed the
// test is skipped, or fails where skipping is not allowed.
func Need(t testing.TB, program string) string {
	t.Helper()
	path, err := Find(program)
	if err == nil {
		return path
	}
	if required() {
		t.Fatal(err)
	} else {
		t.Skip(err)
	}
	return ""
}

// required reports whether a missing server is a failure.
func required() bool {
	return os.Getenv("CI") != "" || os.Getenv("SECKILL_TEST_SERVICES") == "required"
}

// Find returns the path of a program, or an error that says how to install it.
func Find(program string) (string, error) {
	for _, dir := range folders(program) {
		path := filepath.Join(dir, program)
		if info, err := os.Stat(path); err == nil && !info.IsDir() && info.Mode()&0o111 != 0 {
			return path, nil
		}
	}
	if path, err := exec.LookPath(program); err == nil {
		return filepath.Abs(path)
	}
	how, known := Programs[program]
	if !known {
		return "", fmt.Errorf("%s is not installed", program)
	}
	return "", fmt.Errorf("%s is not installed: run `apt-get install %s` (Debian, Ubuntu) or `brew install %s` (macOS); `go run ./test/run` does it for you",
		program, how.Apt, how.Brew)
}

// folders lists where a program may be besides PATH. PostgreSQL's own folders
// come first, newest version first: Debian does not put them in PATH.
func folders(program string) []string {
	switch program {
	case "postgres", "initdb":
		return newestFirst(
			"/usr/lib/postgresql/*/bin",
			"/usr/pgsql-*/bin",
			"/opt/homebrew/opt/postgresql@*/bin",
			"/usr/local/opt/postgresql@*/bin",
		)
	case "mariadbd", "mariadb-install-db":
		return []string{"/usr/sbin", "/usr/bin", "/opt/homebrew/opt/mariadb/bin", "/usr/local/opt/mariadb/bin"}
	default:
		return []string{"/usr/bin", "/opt/homebrew/bin", "/usr/local/bin"}
	}
}

// newestFirst expands the patterns and sorts by the version number in a path.
func newestFirst(patterns ...string) []string {
	var found []string
	for _, pattern := range patterns {
		paths, _ := filepath.Glob(pattern)
		found = append(found, paths...)
	}
	sort.SliceStable(found, func(a, b int) bool { return version(found[a]) > version(found[b]) })
	return found
}

// version is the first number in a path, as a decimal ("9.6" sorts below "15").
func version(path string) float64 {
	start := strings.IndexAny(path, "0123456789")
	if start < 0 {
		return 0
	}
	digits := path[start:]
	if end := strings.IndexFunc(digits, func(r rune) bool { return r != '.' && (r < '0' || r > '9') }); end >= 0 {
		digits = digits[:end]
	}
	n, _ := strconv.ParseFloat(digits, 64)
	return n
}
