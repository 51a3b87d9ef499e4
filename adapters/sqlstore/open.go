package sqlstore

import (
	"context"
	stdsql "database/sql"
	"database/sql/driver"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"entgo.io/ent/dialect"
	"entgo.io/ent/dialect/sql"
	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"modernc.org/sqlite"

	"seckill/domain"
	"seckill/ent"
)

// Config says where the ledger is and how many connections it may use.
type Config struct {
	// URL is sqlite:///path/file.db, mysql://user:password@host:port/database
	// (MySQL 8.0.16, MariaDB 10.6 or newer) or postgres://user:password@host:port/database
	// (PostgreSQL 12 or newer). Parameters after "?" go to the driver, except
	// with SQLite, which takes none.
	URL string
	// MaxOpen is the largest number of connections. Default: 20; with SQLite,
	// where one of them writes and the others read, 9.
	MaxOpen int
	// IdleTime is how long an unused connection is kept. Default: 5 minutes.
	IdleTime time.Duration
}

// Defaults of Config.
const (
	defaultMaxOpen  = 20
	defaultReaders  = 8
	defaultIdleTime = 5 * time.Minute
)

// Store is the ledger in a database. It is safe for concurrent use.
type Store struct {
	dialect string
	write   *ent.Client // for transactions and everything that writes
	read    *ent.Client // the same as write, except with SQLite
	pools   []*stdsql.DB
}

// Open connects to the ledger. It does not look at the tables, see CheckSchema.
// Errors: a FieldError on "database" for a bad URL, which never shows the
// password; ErrUnavailable when the database does not answer.
func Open(ctx context.Context, config Config) (*Store, error) {
	s, err := connect(config)
	if err != nil {
		return nil, err
	}
	if err := s.Ping(ctx); err != nil {
		_ = s.Close()
		return nil, err
	}
	return s, nil
}

// Close gives the connections back.
func (s *Store) Close() error {
	var first error
	for _, pool := range s.pools {
		if err := pool.Close(); err != nil && first == nil {
			first = err
		}
	}
	return first
}

// Ping asks whether the database answers. Errors: ErrUnavailable.
func (s *Store) Ping(ctx context.Context) error {
	for _, pool := range s.pools {
		if err := pool.PingContext(ctx); err != nil {
			return fault(err)
		}
	}
	return nil
}

func connect(config Config) (*Store, error) {
	parsed, err := url.Parse(config.URL)
	if err != nil {
		// The error would quote the URL, password and all.
		return nil, domain.Invalid("database", "is not a URL")
	}
	if config.IdleTime == 0 {
		config.IdleTime = defaultIdleTime
	}
	if config.MaxOpen < 0 {
		return nil, domain.Invalid("database", "cannot have %d connections", config.MaxOpen)
	}
	switch parsed.Scheme {
	case "sqlite":
		return connectSQLite(config, parsed)
	case "mysql":
		connector, err := mysqlConnector(parsed)
		if err != nil {
			return nil, err
		}
		return onePool(config, dialect.MySQL, connector), nil
	case "postgres", "postgresql":
		connector, err := postgresConnector(config.URL, parsed)
		if err != nil {
			return nil, err
		}
		return onePool(config, dialect.Postgres, connector), nil
	}
	return nil, domain.Invalid("database", "must start with sqlite://, mysql:// or postgres://")
}

func onePool(config Config, name string, connector driver.Connector) *Store {
	if config.MaxOpen == 0 {
		config.MaxOpen = defaultMaxOpen
	}
	pool := stdsql.OpenDB(connector)
	limit(pool, config.MaxOpen, config.IdleTime)
	client := ent.NewClient(ent.Driver(sql.OpenDB(name, pool)))
	return &Store{dialect: name, write: client, read: client, pools: []*stdsql.DB{pool}}
}

// limit bounds a pool. All its connections may idle: closing and opening them
// under a changing load costs more than keeping them.
func limit(pool *stdsql.DB, open int, idle time.Duration) {
	pool.SetMaxOpenConns(open)
	pool.SetMaxIdleConns(open)
	pool.SetConnMaxIdleTime(idle)
}

// connectSQLite opens one connection that writes and several that read. SQLite
// lets one writer in at a time; waiting for it in the pool is fair and ends with
// the context, unlike waiting for the file's lock.
func connectSQLite(config Config, parsed *url.URL) (*Store, error) {
	path := parsed.Path
	if parsed.Opaque != "" {
		path = parsed.Opaque
	}
	switch {
	case parsed.Host != "" || path == "" || strings.HasSuffix(path, "/"):
		return nil, domain.Invalid("database", "must be sqlite:///path/of/file")
	case parsed.RawQuery != "":
		return nil, domain.Invalid("database", "takes no parameters with sqlite")
	case !isFolder(filepath.Dir(path)):
		return nil, domain.Invalid("database", "names a file in %s, which is no folder", filepath.Dir(path))
	}
	if config.MaxOpen == 0 {
		config.MaxOpen = 1 + defaultReaders
	}
	readers := max(config.MaxOpen-1, 1)
	const shared = "_pragma=busy_timeout(5000)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)" +
		"&_pragma=foreign_keys(1)&_dqs=0&_time_format=sqlite&_timezone=UTC"
	file := (&url.URL{Path: path}).EscapedPath()
	writing, err := sqlite.NewConnector("file:" + file + "?" + shared + "&_txlock=immediate")
	if err != nil {
		return nil, domain.Invalid("database", "cannot be opened")
	}
	reading, err := sqlite.NewConnector("file:" + file + "?" + shared + "&_pragma=query_only(1)")
	if err != nil {
		return nil, domain.Invalid("database", "cannot be opened")
	}
	writer, reader := stdsql.OpenDB(keepStatements{writing}), stdsql.OpenDB(keepStatements{reading})
	limit(writer, 1, 0)
	limit(reader, readers, config.IdleTime)
	return &Store{
		dialect: dialect.SQLite,
		write:   ent.NewClient(ent.Driver(sql.OpenDB(dialect.SQLite, writer))),
		read:    ent.NewClient(ent.Driver(sql.OpenDB(dialect.SQLite, reader))),
		// The writer first: it makes the file.
		pools: []*stdsql.DB{writer, reader},
	}, nil
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

func mysqlConnector(parsed *url.URL) (driver.Connector, error) {
	base := mysql.NewConfig()
	base.Net, base.Addr = "tcp", parsed.Host
	if parsed.Port() == "" {
		base.Addr = net.JoinHostPort(parsed.Hostname(), "3306")
	}
	base.User = parsed.User.Username()
	base.Passwd, _ = parsed.User.Password()
	base.DBName = strings.TrimPrefix(parsed.Path, "/")
	if parsed.Hostname() == "" || base.DBName == "" || strings.Contains(base.DBName, "/") {
		return nil, domain.Invalid("database", "must be mysql://user:password@host:port/database")
	}
	text := base.FormatDSN()
	if parsed.RawQuery != "" {
		separator := "?"
		if strings.Contains(text, "?") {
			separator = "&"
		}
		text += separator + parsed.RawQuery
	}
	config, err := mysql.ParseDSN(text)
	if err != nil {
		return nil, domain.Invalid("database", "has parameters that the MySQL driver does not take")
	}
	// The store counts on these: rows matched instead of rows changed; one
	// round trip per statement; errors instead of silent truncation; and a
	// NOW in UTC.
	config.ClientFoundRows = true
	config.InterpolateParams = true
	config.MultiStatements = false
	config.AllowAllFiles = false
	config.Loc = time.UTC
	if config.Params == nil {
		config.Params = map[string]string{}
	}
	config.Params["sql_mode"] = "'TRADITIONAL'"
	config.Params["time_zone"] = "'+00:00'"
	config.Logger = &mysql.NopLogger{} // every error is returned as well
	connector, err := mysql.NewConnector(config)
	if err != nil {
		return nil, domain.Invalid("database", "has parameters that the MySQL driver does not take")
	}
	return readCommitted{connector}, nil
}

// readCommitted makes it the isolation level of every connection, which saves
// a round trip in each transaction. The variable has different names in MySQL
// and MariaDB, so it cannot be one of the driver's parameters.
type readCommitted struct{ driver.Connector }

// Connect implements driver.Connector.
func (c readCommitted) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	_, err = conn.(driver.ExecerContext).ExecContext(ctx, "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED", nil)
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	return conn, nil
}

func postgresConnector(text string, parsed *url.URL) (driver.Connector, error) {
	if parsed.Hostname() == "" || strings.Trim(parsed.Path, "/") == "" {
		return nil, domain.Invalid("database", "must be postgres://user:password@host:port/database")
	}
	config, err := pgx.ParseConfig(text)
	if err != nil {
		return nil, domain.Invalid("database", "has parameters that the PostgreSQL driver does not take")
	}
	if config.RuntimeParams["application_name"] == "" {
		config.RuntimeParams["application_name"] = "seckill"
	}
	if !parsed.Query().Has("default_query_exec_mode") {
		// Batches come in every size, and a prepared statement for each would
		// fill the server's memory. This also suits a pooler in between.
		config.DefaultQueryExecMode = pgx.QueryExecModeExec
	}
	return stdlib.GetConnector(*config), nil
}
