package harness

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"
)

var mariaDialect = dialect{
	url:      "mysql://" + sqlUser + ":" + sqlPassword + "@127.0.0.1:%d/%s",
	dataPath: "SELECT @@datadir",
	create:   "CREATE DATABASE %s CHARACTER SET utf8mb4",
	drop:     "DROP DATABASE IF EXISTS %s",
}

// MariaDB starts a MariaDB of the test's own. Its URL has the form
// mysql://user:password@127.0.0.1:port/seckill.
func MariaDB(t testing.TB) *SQLServer {
	t.Helper()
	Need(t, "mariadbd")
	Need(t, "mariadb-install-db")
	server, err := startMariaDB()
	if err != nil {
		t.Fatal(err)
	}
	server.adopt(t)
	return server
}

func startMariaDB(options ...string) (*SQLServer, error) {
	program, err := Find("mariadbd")
	if err != nil {
		return nil, err
	}
	as, err := serverAccount("mysql", "nobody")
	if err != nil {
		return nil, err
	}
	place, err := newFolder()
	if err != nil {
		return nil, err
	}
	data := filepath.Join(place.path, "data")
	err = fromTemplate("mariadb", program, data, as, func(data string) error {
		return makeMariaDB(program, data, as)
	})
	if err != nil {
		_ = place.remove()
		return nil, err
	}
	server, err := bootMariaDB(program, place, as, options...)
	if err != nil {
		_ = place.remove()
		return nil, err
	}
	return server, nil
}

// makeMariaDB makes the files of a new server. The first start creates the
// user and the database through the server itself.
func makeMariaDB(program, data string, as account) error {
	installer, err := Find("mariadb-install-db")
	if err != nil {
		return err
	}
	place := &folder{path: filepath.Dir(data)}
	scratch := filepath.Join(place.path, "scratch")
	if err := as.mkdir(scratch); err != nil {
		return err
	}
	install := as.command(scratch, installer, "--no-defaults", "--datadir="+data, "--tmpdir="+scratch,
		"--skip-test-db", "--skip-name-resolve", "--innodb-log-file-size=32M")
	if err := run(install, 3*time.Minute); err != nil {
		return err
	}
	if err := os.Remove(scratch); err != nil {
		return err
	}
	script := filepath.Join(place.path, "init.sql")
	statements := fmt.Sprintf("CREATE DATABASE %[3]s CHARACTER SET utf8mb4;\n"+
		"CREATE USER '%[1]s'@'127.0.0.1' IDENTIFIED BY '%[2]s';\n"+
		"GRANT ALL ON *.* TO '%[1]s'@'127.0.0.1';\n", sqlUser, sqlPassword, sqlDatabase)
	if err := os.WriteFile(script, []byte(statements), 0o644); err != nil {
		return err
	}
	server, err := bootMariaDB(program, place, as, "--init-file="+script)
	if err != nil {
		return err
	}
	defer server.release()
	return server.stop()
}

func bootMariaDB(program string, place *folder, as account, extra ...string) (*SQLServer, error) {
	// The server writes its socket and temporary files here.
	scratch := filepath.Join(place.path, "tmp")
	if err := as.mkdir(scratch); err != nil {
		return nil, err
	}
	server := &SQLServer{dialect: mariaDialect, Server: Server{
		name:       "MariaDB",
		folder:     place,
		stopSignal: syscall.SIGTERM,
		endSignal:  syscall.SIGKILL,
		command: func(port int) *exec.Cmd {
			return as.command(scratch, program, append([]string{
				"--no-defaults",
				"--datadir=" + filepath.Join(place.path, "data"),
				"--tmpdir=" + scratch,
				"--socket=" + filepath.Join(scratch, "s"),
				"--pid-file=" + filepath.Join(scratch, "pid"),
				"--bind-address=127.0.0.1",
				"--port=" + strconv.Itoa(port),
				"--skip-name-resolve",
				"--character-set-server=utf8mb4",
				"--max-connections=500",
				// Durable: a commit that was answered survives a crash.
				"--innodb-flush-log-at-trx-commit=1",
				// Small and quick to start, for many side by side.
				"--innodb-log-file-size=32M",
				"--innodb-buffer-pool-size=64M",
				"--innodb-buffer-pool-dump-at-shutdown=OFF",
				"--innodb-buffer-pool-load-at-startup=OFF",
				"--innodb-use-native-aio=OFF",
				"--performance-schema=OFF",
			}, extra...)...)
		},
	}}
	server.ping = server.pingSQL
	if err := server.boot(); err != nil {
		return nil, err
	}
	server.URL = fmt.Sprintf(server.dialect.url, server.port, sqlDatabase)
	return server, nil
}
