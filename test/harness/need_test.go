package harness

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// verdict records how a test would have ended.
type verdict struct {
	testing.TB
	skipped, failed bool
}

func (v *verdict) Helper()      {}
func (v *verdict) Skip(...any)  { v.skipped = true }
func (v *verdict) Fatal(...any) { v.failed = true }

func TestNeed(t *testing.T) {
	for _, c := range []struct {
		ci, services string
		fails        bool
	}{
		{"", "", false},
		{"true", "", true},
		{"", "required", true},
		{"", "optional", false},
	} {
		t.Setenv("CI", c.ci)
		t.Setenv("SECKILL_TEST_SERVICES", c.services)
		v := &verdict{TB: t}
		Need(v, "no-such-server")
		if v.failed != c.fails || v.skipped == c.fails {
			t.Errorf("CI=%q SECKILL_TEST_SERVICES=%q: skipped %v, failed %v", c.ci, c.services, v.skipped, v.failed)
		}
	}
}

func TestMissingServerSaysHowToInstall(t *testing.T) {
	Programs["no-such-server"] = Package{Apt: "apt-name", Brew: "brew-name"}
	defer delete(Programs, "no-such-server")
	_, err := Find("no-such-server")
	for _, want := range []string{"apt-get install apt-name", "brew install brew-name", "go run ./test/run"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v lacks %q", err, want)
		}
	}
}

func TestNewestFirst(t *testing.T) {
	root := t.TempDir()
	t.Chdir(root)
	for _, dir := range []string{"pg/9.6/bin", "pg/15/bin", "pg/9/bin", "pg/10/bin"} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	got := newestFirst("pg/*/bin")
	if want := []string{"pg/15/bin", "pg/10/bin", "pg/9.6/bin", "pg/9/bin"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
