package sqlstore

import (
	"context"
	stdsql "database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"entgo.io/ent/dialect"

	"seckill/ent"
)

// Bounds of a transaction's repetition.
const (
	maxTries   = 10
	firstPause = 2 * time.Millisecond // doubled with every try, with jitter
	maxPause   = 100 * time.Millisecond
)

// errAgain asks for the whole transaction once more.
var errAgain = errors.New("another transaction came in between")

// errUnknown says that nobody knows whether a commit took place.
var errUnknown = errors.New("outcome of the commit is unknown")

// inTx runs fn in one transaction, and again after a deadlock or when the
// outcome of the commit is unknown. So fn must bear to run after it has been
// committed already. Its error rolls everything back.
func (s *Store) inTx(ctx context.Context, fn func(ctx context.Context, tx *ent.Tx) error) error {
	return repeat(ctx, func(int) error { return s.once(ctx, fn) })
}

// repeat runs fn, which is told the number of the try, until it ends with
// success or with an error that another try would not mend.
func repeat(ctx context.Context, fn func(try int) error) error {
	for try := 1; ; try++ {
		err := fn(try)
		if err == nil || !again(err) || try == maxTries {
			return fault(err)
		}
		if err := pause(ctx, try); err != nil {
			return fault(err)
		}
	}
}

// again says whether repeating the transaction may help.
func again(err error) bool {
	return errors.Is(err, errAgain) || errors.Is(err, errUnknown) || classify(err) == retryable
}

// once runs fn in one transaction: READ COMMITTED, or the whole database for
// itself in SQLite. With MySQL the level is the connection's.
func (s *Store) once(ctx context.Context, fn func(ctx context.Context, tx *ent.Tx) error) (err error) {
	var options *stdsql.TxOptions
	if s.dialect == dialect.Postgres {
		options = &stdsql.TxOptions{Isolation: stdsql.LevelReadCommitted}
	}
	tx, err := s.write.BeginTx(ctx, options)
	if err != nil {
		return err
	}
	committing := false
	defer func() {
		if !committing {
			// After a failed statement the database may have rolled back already,
			// wholly or in part; this makes it whole. Its own error adds nothing.
			_ = tx.Rollback()
		}
	}()
	if err := fn(ctx, tx); err != nil {
		return err
	}
	committing = true
	if err := tx.Commit(); err != nil {
		if classify(err) == retryable {
			return err
		}
		return fmt.Errorf("%w: %w", errUnknown, err)
	}
	return nil
}

func pause(ctx context.Context, try int) error {
	longest := min(firstPause<<try, maxPause)
	timer := time.NewTimer(rand.N(longest))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
