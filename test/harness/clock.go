package harness

import (
	_ "embed"
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
	"time"
)

//go:embed testdata/falseclock.c
var falseClock []byte

// Files of a server that has a false clock, in its folder.
const (
	clockFile    = "clock"
	clockLibrary = "falseclock.so"
)

// clockEnv makes a program go by the false clock that its folder has, if any: the
// one it runs in, or the one above.
func clockEnv(dir string) []string {
	for _, place := range []string{dir, filepath.Dir(dir)} {
		library := filepath.Join(place, clockLibrary)
		if _, err := os.Stat(library); err == nil {
			return []string{"LD_PRELOAD=" + library, "FALSE_CLOCK=" + filepath.Join(place, clockFile)}
		}
	}
	return nil
}

// FalseClock starts the server again with a wall clock that ShiftClock sets. It
// needs Linux and a C compiler, as the race detector does.
func (s *Server) FalseClock(t testing.TB) {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("a false clock needs Linux")
	}
	s.ShiftClock(t, 0)
	source := filepath.Join(s.folder.path, "falseclock.c")
	if err := os.WriteFile(source, falseClock, 0o600); err != nil {
		t.Fatal(err)
	}
	library := filepath.Join(s.folder.path, clockLibrary)
	if out, err := exec.Command("cc", "-shared", "-fPIC", "-O2", "-o", library, source).CombinedOutput(); err != nil {
		t.Fatalf("cc: %v\n%s", err, out)
	}
	if err := os.Chmod(library, 0o755); err != nil { // whatever the mask says
		t.Fatal(err)
	}
	s.Restart()
}

// ShiftClock sets the wall clock of a server with a false one: to the machine's
// time plus an offset, in whole seconds.
func (s *Server) ShiftClock(t testing.TB, offset time.Duration) {
	t.Helper()
	file, err := os.OpenFile(filepath.Join(s.folder.path, clockFile), os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var seconds [8]byte
	binary.NativeEndian.PutUint64(seconds[:], uint64(int64(offset/time.Second)))
	if _, err := file.WriteAt(seconds[:], 0); err != nil {
		t.Fatal(err)
	}
	if err := file.Chmod(0o644); err != nil {
		t.Fatal(err)
	}
}
