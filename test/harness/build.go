package harness

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

const module = "seckill"

var buildSeckill = sync.OnceValues(func() (string, error) {
	root, err := Root()
	if err != nil {
		return "", err
	}
	place, err := newFolder()
	if err != nil {
		return "", err
	}
	atEnd(place.remove)
	path := filepath.Join(place.path, "seckill")
	// Without the version control's stamp, which fails in a checkout that belongs
	// to another user.
	args := []string{"build", "-buildvcs=false", "-o", path}
	env := os.Environ()
	if Race {
		args = append(args, "-race")
		env = append(env, "CGO_ENABLED=1")
	}
	cmd := exec.Command("go", append(args, "./bootstrap/seckill")...)
	cmd.Dir, cmd.Env = root, env
	return path, run(cmd, 10*time.Minute)
})

// Seckill builds the project's program, once per test process, and returns its
// path. It has the race detector in it if the test has.
func Seckill(t testing.TB) string {
	t.Helper()
	path, err := buildSeckill()
	if err != nil {
		t.Fatalf("build seckill: %v", err)
	}
	return path
}

// Root finds the project's folder above the current one. Modules nested
// in the project are passed by.
func Root() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		text, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && strings.HasPrefix(string(text), "module "+module+"\n") {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", errors.New("not inside the module " + module)
		}
		dir = filepath.Dir(dir)
	}
}
