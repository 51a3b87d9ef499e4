package sqlstore

import (
	"context"
	stdsql "database/sql"
	"errors"
	"time"

	"seckill/domain"
)

// Stock is the hot store in the database, strategy "sql": conditional updates,
// one transaction per Reserve call.
//
// How a call decides. One statement reads all that the claims depend on, in one
// view and without a lock. Refusals and replays are answered from that. For the
// claims that may be accepted a transaction writes the holds and requests, whose
// keys refuse a second one, the buyers' units, which a CHECK holds at the limit,
// and only then updates the sale's row, on the condition that the gate is as it
// was seen and that many units are available. The queue entry and the commit
// follow. So the row that all compete for is locked for two statements. When the
// condition fails the call reads again; after two such tries it locks first.
//
// What every transaction that changes records of a sale must do: change or lock
// the row in hot_sales before it commits. So whoever has that row locked sees
// records that stand still. Locks are taken in one order: holds, requests,
// buyers, sale, entries.
//
// What it costs and cannot promise:
//
//   - All grabs of a sale queue up for one row, and each holds it until its
//     commit is on disk. A sale therefore sells as many calls per second as the
//     database can commit one after the other, however many connections there
//     are: in BenchmarkReserve sixteen callers sell 1 (SQLite) to 2 (MariaDB)
//     times what one caller sells, but a call of a hundred claims 20 to 30 times
//     what a hundred calls do. Other sales are not held up, except with SQLite,
//     where the whole database has one writer. Segments of a load are ignored.
//   - It shares connections, log and disk with the ledger: a rush slows down
//     orders and payments too, and no memory store takes the load off.
//   - What was accepted survives as durably as the database keeps its commits,
//     see Store.CheckDurable. Nothing is lost with a process.
//   - The time is the database's. A grab that waited for the row is judged by
//     when its statement began (MySQL) or got the row (PostgreSQL).
//   - In a call with several claims, replays and reached limits are as of its
//     first read, which is a moment before the acceptances.
//   - Released holds stay until the sale is preheated again or archived. Entries
//     come and go in one table: PostgreSQL needs its autovacuum.
//
// Exceptions to "every method is one atomic step": Release and Settle of more
// than 500 ids are one step per 500. Preheat is one transaction for any load;
// with SQLite nothing else is written meanwhile.
type Stock struct {
	store *Store
	queue *Queue
}

var _ domain.Stock = (*Stock)(nil)

// StockConfig says how the queue of a Stock behaves.
type StockConfig struct {
	// Partitions is the number of queues that sales are spread over, 1 … 1024.
	// All nodes must agree, and it must not change while anything is queued.
	// Default DefaultPartitions.
	Partitions int

	// ReclaimAfter is how long a delivered entry stays with its consumer before
	// it may be reclaimed. It doubles with every delivery, up to ReclaimMax.
	// Default DefaultReclaimAfter.
	ReclaimAfter time.Duration

	// ReclaimMax bounds the doubling. Default 16 × ReclaimAfter.
	ReclaimMax time.Duration
}

// Defaults of StockConfig.
const (
	DefaultPartitions   = 16
	DefaultReclaimAfter = 5 * time.Second // longer than a batch takes to commit
)

const (
	maxPartitions    = 1024
	reclaimMaxFactor = 16
)

// NewStock makes a hot store of the ledger's database. It does not talk to the
// database yet.
func NewStock(store *Store, config StockConfig) (*Stock, error) {
	if config.Partitions == 0 {
		config.Partitions = DefaultPartitions
	}
	if config.ReclaimAfter == 0 {
		config.ReclaimAfter = DefaultReclaimAfter
	}
	if config.ReclaimMax == 0 {
		config.ReclaimMax = reclaimMaxFactor * config.ReclaimAfter
	}
	switch {
	case config.Partitions < 1 || config.Partitions > maxPartitions:
		return nil, domain.Invalid("partitions", "must be from 1 to %d", maxPartitions)
	case config.ReclaimAfter < time.Millisecond || config.ReclaimAfter > time.Hour:
		return nil, domain.Invalid("reclaimAfter", "must be from 1ms to 1h")
	case config.ReclaimMax < config.ReclaimAfter || config.ReclaimMax > 24*time.Hour:
		return nil, domain.Invalid("reclaimMax", "must be from reclaimAfter to 24h")
	}
	return &Stock{store: store, queue: newQueue(store, config)}, nil
}

// Queue is where Reserve and Requeue put their order intents.
func (s *Stock) Queue() *Queue { return s.queue }

// Level implements domain.Admission. What is queued is summed up from the
// entries, so that Ack does not compete for the sale's row.
func (s *Stock) Level(ctx context.Context, sale domain.SaleID) (domain.Level, error) {
	level, err := s.level(ctx, s.store.read, keyOf(sale))
	return level, fault(err)
}

func (s *Stock) level(ctx context.Context, db querier, key saleKey) (domain.Level, error) {
	var level domain.Level
	err := s.store.one(ctx, db, []any{
		&level.State, &level.Epoch, &level.Total, &level.Available, &level.Held, &level.Sold, &level.Queued,
	}, `SELECT state, epoch, total, available, held, sold,
			(SELECT COALESCE(SUM(units), 0) FROM hot_intents WHERE sale = ?)
		FROM hot_sales WHERE id = ? AND stage = ?`, string(key), string(key), ready)
	if errors.Is(err, stdsql.ErrNoRows) {
		return level, domain.ErrNotReady
	}
	return level, err
}

// Hold implements domain.Admission. A sealed sale still shows its holds.
func (s *Stock) Hold(ctx context.Context, sale domain.SaleID, id domain.OrderID) (domain.Hold, error) {
	hold := domain.Hold{Order: id}
	var created int64
	err := s.store.one(ctx, s.store.read, []any{&hold.Buyer, &hold.Request, &hold.Quantity, &hold.State, &created},
		"SELECT buyer, request, quantity, state, created_at FROM hot_holds WHERE id = ?", keyOf(sale).of(string(id)))
	if errors.Is(err, stdsql.ErrNoRows) {
		return domain.Hold{}, domain.ErrNotFound
	}
	if err != nil {
		return domain.Hold{}, fault(err)
	}
	hold.CreatedAt = moment(created)
	return hold, nil
}
