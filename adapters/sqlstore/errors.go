package sqlstore

import (
	"errors"
	"fmt"
	"strings"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5/pgconn"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"seckill/domain"
)

// class is what an error of a database means for the caller, told by the
// driver's code and never by its text.
type class int

const (
	unavailable class = iota // anything that is none of the others
	unique                   // a key or an index has the value already
	check                    // a CHECK constraint
	foreign                  // a foreign key
	retryable                // deadlock, lock time-out, serialization failure, busy
	data                     // the value can never be stored
)

func classify(err error) class {
	if my := (*mysql.MySQLError)(nil); errors.As(err, &my) {
		return classifyMySQL(my)
	}
	if pg := (*pgconn.PgError)(nil); errors.As(err, &pg) {
		return classifyPostgres(pg)
	}
	if lite := (*sqlite.Error)(nil); errors.As(err, &lite) {
		return classifySQLite(lite.Code())
	}
	return unavailable
}

func classifyMySQL(err *mysql.MySQLError) class {
	switch err.Number {
	case 1022, 1062, 1586:
		return unique
	case 3819, 4025: // MySQL, MariaDB
		return check
	case 1216, 1217, 1451, 1452:
		return foreign
	case 1020, 1205, 1213: // MariaDB rolls back only the statement on 1205
		return retryable
	case 1048, 1264, 1366, 1406, 1690:
		return data
	}
	if strings.HasPrefix(string(err.SQLState[:]), "22") {
		return data
	}
	return unavailable
}

func classifyPostgres(err *pgconn.PgError) class {
	switch err.Code {
	case "23505":
		return unique
	case "23514":
		return check
	case "23503":
		return foreign
	case "40001", "40P01", "55P03":
		return retryable
	case "23502":
		return data
	}
	if strings.HasPrefix(err.Code, "22") {
		return data
	}
	return unavailable
}

func classifySQLite(code int) class {
	switch code {
	case sqlite3.SQLITE_CONSTRAINT_UNIQUE, sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY, sqlite3.SQLITE_CONSTRAINT_ROWID:
		return unique
	case sqlite3.SQLITE_CONSTRAINT_CHECK:
		return check
	case sqlite3.SQLITE_CONSTRAINT_FOREIGNKEY:
		return foreign
	case sqlite3.SQLITE_CONSTRAINT_NOTNULL, sqlite3.SQLITE_TOOBIG, sqlite3.SQLITE_MISMATCH:
		return data
	}
	switch code & 0xff {
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
		return retryable
	}
	return unavailable
}

// named are the errors that the ports promise; they pass as they are.
var named = []error{
	domain.ErrNotFound, domain.ErrUnbalanced, domain.ErrOrderClosed, domain.ErrConflict,
	domain.ErrFenced, domain.ErrInvalid, domain.ErrUnavailable,
	domain.ErrNotReady, domain.ErrHasHolds, domain.ErrState,
}

// fault makes an error of the ports out of any error: ErrInvalid for a value
// that no retry will store, ErrUnavailable for all that is not named.
func fault(err error) error {
	if err == nil {
		return nil
	}
	for _, name := range named {
		if errors.Is(err, name) {
			return err
		}
	}
	if classify(err) == data {
		return fmt.Errorf("%w: %w", domain.ErrInvalid, err)
	}
	return fmt.Errorf("%w: %w", domain.ErrUnavailable, err)
}
