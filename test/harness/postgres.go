package harness

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

var postgresDialect = dialect{
	url:      "postgres://" + sqlUser + ":" + sqlPassword + "@127.0.0.1:%d/%s?sslmode=disable",
	dataPath: "SHOW data_directory",
	create:   "CREATE DATABASE %s",
	drop:     "DROP DATABASE IF EXISTS %s WITH (FORCE)",
}

// Postgres starts a PostgreSQL of the test's own. Its URL has the form
// postgres://user:password@127.0.0.1:port/seckill?sslmode=disable.
func Postgres(t testing.TB) *SQLServer {
	t.Helper()
	Need(t, "postgres")
	Need(t, "initdb")
	server, err := startPostgres()
	if err != nil {
		t.Fatal(err)
	}
	server.adopt(t)
	return server
}

func startPostgres() (*SQLServer, error) {
	program, err := Find("postgres")
	if err != nil {
		return nil, err
	}
	as, err := serverAccount("postgres", "nobody")
	if err != nil {
		return nil, err
	}
	place, err := newFolder()
	if err != nil {
		return nil, err
	}
	data := filepath.Join(place.path, "data")
	err = fromTemplate("postgres", program, data, as, func(data string) error {
		return makePostgres(program, data, as)
	})
	if err != nil {
		_ = place.remove()
		return nil, err
	}
	server := &SQLServer{dialect: postgresDialect, Server: Server{
		name:       "PostgreSQL",
		folder:     place,
		stopSignal: syscall.SIGINT, // SIGTERM would wait for the clients to leave
		endSignal:  syscall.SIGQUIT,
		command: func(port int) *exec.Cmd {
			return as.command(data, program,
				"-D", data,
				"-p", strconv.Itoa(port),
				"-c", "listen_addresses=127.0.0.1",
				"-c", "unix_socket_directories=",
				"-c", "max_connections=300",
				"-c", "shared_buffers=64MB",
				// Durable: a commit that was answered survives a crash.
				"-c", "fsync=on",
				"-c", "synchronous_commit=on",
				// In files of the data folder, which is removed in the end.
				"-c", "dynamic_shared_memory_type=mmap",
			)
		},
		afterKill: func() { removeSharedMemory(data) },
	}}
	server.ping = server.pingSQL
	if err := server.boot(); err != nil {
		_ = place.remove()
		return nil, err
	}
	server.URL = fmt.Sprintf(server.dialect.url, server.port, sqlDatabase)
	return server, nil
}

// makePostgres makes the files of a new server. The server need not run for
// that: its single-user mode creates the database.
func makePostgres(program, data string, as account) error {
	maker, err := Find("initdb")
	if err != nil {
		return err
	}
	password := filepath.Join(filepath.Dir(data), "password")
	if err := os.WriteFile(password, []byte(sqlPassword+"\n"), 0o600); err != nil {
		return err
	}
	if err := as.own(password); err != nil {
		return err
	}
	initdb := as.command(data, maker, "-D", data, "--username="+sqlUser, "--pwfile="+password,
		"--auth=scram-sha-256", "--encoding=UTF8", "--locale=C", "--no-sync")
	if err := run(initdb, 3*time.Minute); err != nil {
		return err
	}
	single := as.command(data, program, "--single", "-D", data, "postgres")
	single.Stdin = strings.NewReader("CREATE DATABASE " + sqlDatabase + "\n")
	return run(single, time.Minute)
}

// removeSharedMemory takes away the small piece of shared memory that a killed
// PostgreSQL leaves in the system. It is named in the file that an orderly end
// removes.
func removeSharedMemory(data string) {
	text, err := os.ReadFile(filepath.Join(data, "postmaster.pid"))
	if err != nil {
		return
	}
	lines := strings.Split(string(text), "\n")
	if len(lines) < 7 {
		return
	}
	if fields := strings.Fields(lines[6]); len(fields) == 2 {
		_ = run(exec.Command("ipcrm", "-m", fields[1]), 10*time.Second)
	}
}
