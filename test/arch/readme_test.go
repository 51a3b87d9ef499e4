package arch

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestReadmeLinks: every file that the README points at is there.
func TestReadmeLinks(t *testing.T) {
	root := filepath.Join("..", "..")
	text, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	links := regexp.MustCompile(`\]\(([^)#]+)\)`).FindAllStringSubmatch(string(text), -1)
	if len(links) < 10 {
		t.Fatalf("only %d links found", len(links))
	}
	for _, link := range links {
		if strings.Contains(link[1], "://") {
			continue
		}
		if _, err := os.Stat(filepath.Join(root, filepath.FromSlash(link[1]))); err != nil {
			t.Errorf("the README points at %s, which is not there", link[1])
		}
	}
}
