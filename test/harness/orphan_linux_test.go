package harness

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
	"time"
)

// TestHelperServers is the program that TestServersDieWithTheTest starts.
func TestHelperServers(t *testing.T) {
	if os.Getenv(helper) != "servers" {
		return // not started by a test
	}
	for _, server := range []*Server{&Redis(t).Server, &MariaDB(t).Server, &Postgres(t).Server} {
		fmt.Printf("server %d in %s\n", server.PID(), server.folder.path)
	}
	time.Sleep(time.Minute)
}

func TestServersDieWithTheTest(t *testing.T) {
	t.Parallel()
	for _, program := range []string{"redis-server", "mariadbd", "mariadb-install-db", "postgres", "initdb"} {
		Need(t, program)
	}
	p := startHelper(t, "TestHelperServers", "servers")
	line := regexp.MustCompile(`server (\d+) in (\S+)\n`)
	var servers [][]string
	eventually(t, time.Minute, "the servers run", func() bool {
		servers = line.FindAllStringSubmatch(p.Stdout.String(), -1)
		return len(servers) == 3
	})
	var pids []int
	for _, server := range servers {
		pid, _ := strconv.Atoi(server[1])
		pids = append(pids, pid)
		// What a killed test leaves would go away with a later one.
		t.Cleanup(func() {
			removeSharedMemory(filepath.Join(server[2], "data"))
			_ = os.RemoveAll(server[2])
		})
	}
	for _, pid := range pids {
		if !alive(pid) {
			t.Fatalf("server %d does not run", pid)
		}
		pids = append(pids, descendants(pid)...)
	}
	// Only the test process itself: Kill would end its servers as well.
	if err := p.child.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	p.Wait(t, 10*time.Second)
	for _, pid := range pids {
		eventually(t, 10*time.Second, fmt.Sprintf("server %d is gone", pid), func() bool { return !alive(pid) })
	}
}

func eventually(t *testing.T, timeout time.Duration, what string, condition func() bool) {
	t.Helper()
	deadline := time.Now().Add(timeout)
	for !condition() {
		if time.Now().After(deadline) {
			t.Fatalf("not within %v: %s", timeout, what)
		}
		time.Sleep(10 * time.Millisecond)
	}
}
