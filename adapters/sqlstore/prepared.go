package sqlstore

import (
	"context"
	"database/sql/driver"
	"errors"
)

// Bounds of the statements that a connection keeps. Lists make long texts, in
// every length, which do not come again soon.
const (
	maxKept     = 128
	maxKeptText = 2000 // bytes
)

// keepStatements has the connections of SQLite keep the statements that they
// have compiled. That was half of the time of a refused grab, where it is little
// next to a round trip to a server. PostgreSQL, with statements kept, also chose
// plans for lists that were several times slower.
type keepStatements struct{ driver.Connector }

// Connect implements driver.Connector.
func (k keepStatements) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := k.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &keepingConn{sqliteConn: conn.(sqliteConn), kept: map[string]*keptStatement{}}, nil
}

// sqliteConn is what the driver's connections can do.
type sqliteConn interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.QueryerContext
	driver.Pinger
	driver.SessionResetter
	driver.Validator
}

type sqliteStatement interface {
	driver.Stmt
	driver.StmtExecContext
	driver.StmtQueryContext
}

// keepingConn is used by one goroutine at a time, as every driver.Conn.
type keepingConn struct {
	sqliteConn
	kept map[string]*keptStatement
}

type keptStatement struct {
	sqliteStatement
	busy bool // its rows are being read
}

// statement is a kept one that is free, or nil: then the text is compiled and
// thrown away.
func (c *keepingConn) statement(ctx context.Context, text string) (*keptStatement, error) {
	if found := c.kept[text]; found != nil {
		if found.busy {
			return nil, nil
		}
		return found, nil
	}
	if len(c.kept) >= maxKept || len(text) > maxKeptText {
		return nil, nil
	}
	made, err := c.PrepareContext(ctx, text)
	if err != nil {
		return nil, err
	}
	found := &keptStatement{sqliteStatement: made.(sqliteStatement)}
	c.kept[text] = found
	return found, nil
}

// ExecContext implements driver.ExecerContext.
func (c *keepingConn) ExecContext(ctx context.Context, text string, args []driver.NamedValue) (driver.Result, error) {
	found, err := c.statement(ctx, text)
	if err != nil {
		return nil, err
	}
	if found == nil {
		return c.sqliteConn.ExecContext(ctx, text, args)
	}
	return found.ExecContext(ctx, args)
}

// QueryContext implements driver.QueryerContext.
func (c *keepingConn) QueryContext(ctx context.Context, text string, args []driver.NamedValue) (driver.Rows, error) {
	found, err := c.statement(ctx, text)
	if err != nil {
		return nil, err
	}
	if found == nil {
		return c.sqliteConn.QueryContext(ctx, text, args)
	}
	rows, err := found.QueryContext(ctx, args)
	if err != nil {
		return nil, err
	}
	found.busy = true
	return &keptRows{rows, found}, nil
}

// keptRows give their statement back when they are closed.
type keptRows struct {
	driver.Rows
	of *keptStatement
}

// Close implements driver.Rows.
func (r *keptRows) Close() error {
	err := r.Rows.Close()
	r.of.busy = false
	return err
}

// Close implements driver.Conn.
func (c *keepingConn) Close() error {
	var all []error
	for _, statement := range c.kept {
		all = append(all, statement.Close())
	}
	return errors.Join(append(all, c.sqliteConn.Close())...)
}
