package harness

import (
	"context"
	"crypto/rand"
	"database/sql"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5"
)

const (
	sqlUser     = "seckill"
	sqlPassword = "seckill-test"
	sqlDatabase = "seckill"
)

// SQLServer is a running MariaDB or PostgreSQL with durable settings.
type SQLServer struct {
	Server
	URL     string // of its database "seckill", with user and password
	dialect dialect
}

// dialect is what differs between the two kinds.
type dialect struct {
	url      string // with a place for the port and the database
	dataPath string // asks the server where its data is
	create   string // with a place for the database
	drop     string
}

// OpenSQL opens the database of a URL as SQLServer gives it. It is closed when
// the test ends. For PostgreSQL the test, or what it tests, has to import the
// driver github.com/jackc/pgx/v5/stdlib.
func OpenSQL(t testing.TB, databaseURL string) *sql.DB {
	t.Helper()
	db, err := openSQL(databaseURL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// NewDatabase creates an empty database with a random name and returns its
// URL. It is dropped when the test ends.
func (s *SQLServer) NewDatabase(t testing.TB) string {
	t.Helper()
	name := "t_" + strings.ToLower(rand.Text()[:16])
	if err := s.exec(60*time.Second, fmt.Sprintf(s.dialect.create, name)); err != nil {
		t.Fatalf("create database in %s: %v", s.name, err)
	}
	t.Cleanup(func() {
		// The test may have stopped the server, and a database left behind
		// goes away with the server.
		_ = s.exec(10*time.Second, fmt.Sprintf(s.dialect.drop, name))
	})
	return fmt.Sprintf(s.dialect.url, s.port, name)
}

func (s *SQLServer) exec(timeout time.Duration, statement string) error {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	if isPostgres(s.URL) {
		conn, err := pgx.Connect(ctx, s.URL)
		if err != nil {
			return err
		}
		defer conn.Close(ctx)
		_, err = conn.Exec(ctx, statement)
		return err
	}
	db, err := openSQL(s.URL)
	if err != nil {
		return err
	}
	defer db.Close()
	_, err = db.ExecContext(ctx, statement)
	return err
}

// askDataPath asks a server for its data folder, over a connection of its own.
func askDataPath(ctx context.Context, databaseURL, query string) (path string, err error) {
	if isPostgres(databaseURL) {
		conn, err := pgx.Connect(ctx, databaseURL)
		if err != nil {
			return "", err
		}
		defer conn.Close(ctx)
		err = conn.QueryRow(ctx, query).Scan(&path)
		return path, err
	}
	db, err := openSQL(databaseURL)
	if err != nil {
		return "", err
	}
	defer db.Close()
	err = db.QueryRowContext(ctx, query).Scan(&path)
	return path, err
}

func isPostgres(databaseURL string) bool { return strings.HasPrefix(databaseURL, "postgres:") }

// pingSQL asks the server for its data folder, to know that it is this one.
func (s *SQLServer) pingSQL(ctx context.Context) error {
	path, err := askDataPath(ctx, fmt.Sprintf(s.dialect.url, s.port, sqlDatabase), s.dialect.dataPath)
	if err != nil {
		return err
	}
	theirs, err := os.Stat(path)
	if err != nil {
		return err
	}
	ours, err := os.Stat(s.data())
	if err != nil {
		return err
	}
	if !os.SameFile(theirs, ours) {
		return fmt.Errorf("another server answers on port %d", s.port)
	}
	return nil
}

func (s *SQLServer) data() string { return filepath.Join(s.folder.path, "data") }

func openSQL(databaseURL string) (*sql.DB, error) {
	parsed, err := url.Parse(databaseURL)
	if err != nil {
		return nil, err
	}
	if parsed.Scheme == "postgres" {
		return sql.Open("pgx", databaseURL)
	}
	config := mysql.NewConfig()
	config.Net, config.Addr = "tcp", parsed.Host
	config.User = parsed.User.Username()
	config.Passwd, _ = parsed.User.Password()
	config.DBName = strings.TrimPrefix(parsed.Path, "/")
	config.ParseTime = true
	// A server that is just starting breaks connections; that is no news.
	config.Logger = &mysql.NopLogger{}
	connector, err := mysql.NewConnector(config)
	if err != nil {
		return nil, err
	}
	return sql.OpenDB(connector), nil
}

// account is the user a server runs as.
type account struct{ credential *syscall.Credential }

// serverAccount finds one of the named users when the tests run as root, which
// database servers refuse or advise against. Otherwise they run as we do.
//
// The servers are started as that user, and do not change to it themselves:
// such a change would undo the tie to the test process' life.
func serverAccount(names ...string) (account, error) {
	if os.Geteuid() != 0 {
		return account{}, nil
	}
	for _, name := range names {
		found, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err1 := strconv.ParseUint(found.Uid, 10, 32)
		gid, err2 := strconv.ParseUint(found.Gid, 10, 32)
		if err1 == nil && err2 == nil {
			return account{&syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}, nil
		}
	}
	return account{}, fmt.Errorf("running as root, and none of the users %v exists", names)
}

// command prepares a program that runs as the account, in a folder it can enter.
func (a account) command(dir, program string, args ...string) *exec.Cmd {
	cmd := exec.Command(program, args...)
	cmd.Dir, cmd.Env = dir, serverEnv(dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: a.credential}
	return cmd
}

// own hands a file or folder to the account.
func (a account) own(path string) error {
	if a.credential == nil {
		return nil
	}
	return os.Lchown(path, int(a.credential.Uid), int(a.credential.Gid))
}

// mkdir makes a folder that belongs to the account.
func (a account) mkdir(path string) error {
	if err := os.Mkdir(path, 0o700); err != nil {
		return err
	}
	return a.own(path)
}
