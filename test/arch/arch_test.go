// Package arch checks the import rules of the architecture.
package arch

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// rule says what the production files of a folder may import, besides the
// standard library. A pattern is a whole import path, or a prefix ending in "/".
type rule struct {
	folder string // relative to the module; a "/..." covers what is below too
	allow  []string
}

var (
	domain      = "seckill/domain"
	application = "seckill/application"
)

var rules = []rule{
	{"domain", nil},
	{"application", []string{domain}},

	// Driven adapters: the domain and their own technology.
	{"adapters/memory", []string{domain}},
	{"adapters/system", []string{domain, "github.com/google/uuid"}},
	// The strategy "lock" puts bsm/redislock around a grab, in the sale's own slot.
	{"adapters/redisstock", []string{domain, "github.com/redis/go-redis/", "github.com/bsm/redislock", "github.com/sony/gobreaker/v2"}},
	{"adapters/redislock", []string{domain, "github.com/redis/go-redis/", "github.com/bsm/redislock"}},
	{"adapters/sqlstore", []string{
		domain, "seckill/ent", "seckill/ent/", "entgo.io/ent/", "github.com/pressly/goose/",
		"github.com/go-sql-driver/mysql", "github.com/jackc/pgx/", "modernc.org/sqlite", "modernc.org/sqlite/",
	}},

	// Driving adapters: the use cases.
	{"adapters/httpapi", []string{domain, application, "github.com/gin-gonic/gin"}},
	{"adapters/worker", []string{domain, application}},
	{"adapters/telemetry", []string{domain, application, "github.com/prometheus/client_golang/"}},

	// The only places that know everything.
	{"bootstrap", []string{domain, application, "seckill/adapters/", "go.uber.org/fx", "github.com/knadh/koanf/", "github.com/spf13/pflag", "github.com/redis/go-redis/v9"}},
	{"bootstrap/seckill", []string{
		domain, application, "seckill/bootstrap", "seckill/bootstrap/seckill/", "go.uber.org/fx", "go.uber.org/fx/", "go.uber.org/dig",
		"github.com/spf13/cobra", "github.com/spf13/pflag", "github.com/jedib0t/go-pretty/", "github.com/schollz/progressbar/",
	}},
	// The drill sees a service from outside; the bench compares the adapters themselves.
	{"bootstrap/seckill/load", []string{"github.com/HdrHistogram/hdrhistogram-go"}},
	{"bootstrap/seckill/drill", []string{"seckill/bootstrap/seckill/load"}},
	{"bootstrap/seckill/bench", []string{domain, "seckill/bootstrap/seckill/load", "seckill/adapters/", "github.com/redis/go-redis/"}},

	{"ent/schema", []string{"entgo.io/ent", "entgo.io/ent/"}},
	{"ent/migrate", []string{"entgo.io/ent/"}},
	{"ent/...", []string{"seckill/ent", "seckill/ent/", "entgo.io/ent", "entgo.io/ent/"}},
}

// The project's tests and their tools may use anything.
var unruled = []string{"test"}

func TestImports(t *testing.T) {
	files := productionFiles(t)
	seen := map[string]int{}
	for file, imports := range files {
		folder := path.Dir(file)
		if covered(unruled, folder) {
			continue
		}
		r, ok := ruleOf(folder)
		if !ok {
			t.Errorf("%s: no rule lists the folder %s", file, folder)
			continue
		}
		seen[r.folder]++
		for _, name := range imports {
			if !r.allows(name) {
				t.Errorf("%s may not import %s", file, name)
			}
		}
	}
	for _, r := range rules {
		if seen[r.folder] == 0 {
			t.Errorf("the rule for %s saw no file", r.folder)
		}
	}
}

// TestTopLevel keeps the top level as the architecture has it.
func TestTopLevel(t *testing.T) {
	want := map[string]bool{"domain": true, "application": true, "adapters": true, "bootstrap": true, "ent": true, "test": true}
	for file := range productionFiles(t) {
		if top, _, _ := strings.Cut(file, "/"); !want[top] {
			t.Errorf("%s lies outside the architecture's folders", file)
		}
	}
}

// TestRulesCatch breaks each kind of rule on purpose.
func TestRulesCatch(t *testing.T) {
	for _, bad := range []struct{ folder, name string }{
		{"domain", "seckill/application"},
		{"domain", "github.com/google/uuid"},
		{"application", "seckill/adapters/memory"},
		{"application", "entgo.io/ent"},
		{"adapters/redisstock", "seckill/adapters/redislock"},
		{"adapters/redisstock", "seckill/application"},
		{"adapters/httpapi", "seckill/adapters/sqlstore"},
		{"adapters/worker", "seckill/ent"},
		{"adapters/memory", "go.uber.org/fx"},
		{"bootstrap", "github.com/gin-gonic/gin"},
	} {
		r, ok := ruleOf(bad.folder)
		if !ok || r.allows(bad.name) {
			t.Errorf("%s may import %s", bad.folder, bad.name)
		}
	}
	if _, ok := ruleOf("adapters/somethingnew"); ok {
		t.Error("a folder that no rule lists is not noticed")
	}
}

func ruleOf(folder string) (rule, bool) {
	for _, r := range rules {
		if r.folder == folder || strings.HasSuffix(r.folder, "/...") && covered([]string{strings.TrimSuffix(r.folder, "/...")}, folder) {
			return r, true
		}
	}
	return rule{}, false
}

func (r rule) allows(name string) bool {
	first, _, _ := strings.Cut(name, "/")
	if first != "seckill" && !strings.Contains(first, ".") {
		return true // standard library
	}
	for _, pattern := range r.allow {
		if name == pattern || strings.HasSuffix(pattern, "/") && strings.HasPrefix(name, pattern) {
			return true
		}
	}
	return false
}

func covered(tops []string, folder string) bool {
	for _, top := range tops {
		if folder == top || strings.HasPrefix(folder, top+"/") {
			return true
		}
	}
	return false
}

// productionFiles maps each Go file that is not a test to its imports.
func productionFiles(t *testing.T) map[string][]string {
	t.Helper()
	root := filepath.Join("..", "..")
	files := map[string][]string{}
	err := filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && name != root && strings.HasPrefix(entry.Name(), ".") {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		list := []string{}
		for _, spec := range parsed.Imports {
			text, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			list = append(list, text)
		}
		files[filepath.ToSlash(rel)] = list
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(files) < 20 {
		t.Fatalf("only %d files found", len(files))
	}
	return files
}
