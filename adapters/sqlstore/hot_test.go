package sqlstore

import (
	"fmt"
	"testing"
	"time"

	"seckill/adapters/memory"
	"seckill/adapters/system"
	"seckill/domain"
	"seckill/test/conformance"
)

const reclaimAfter = 50 * time.Millisecond

// stockWorlds makes the worlds of one suite. They share a database, which is a
// harder test too: each sees only the sales it made. The depth of the queue is
// the database's, so a world begins with an empty queue.
func stockWorlds(t *testing.T, s *Store) func(t *testing.T) conformance.StockWorld {
	t.Helper()
	return func(t *testing.T) conformance.StockWorld {
		t.Helper()
		if _, err := s.change(t.Context(), s.write, "DELETE FROM hot_intents"); err != nil {
			t.Fatal(err)
		}
		stock, err := NewStock(s, StockConfig{Partitions: 3, ReclaimAfter: reclaimAfter})
		if err != nil {
			t.Fatal(err)
		}
		return conformance.StockWorld{Stock: stock, Queue: stock.Queue(), Now: databaseClock(t, s), Reclaim: reclaimAfter}
	}
}

func databaseClock(t testing.TB, s *Store) func() time.Time {
	return func() time.Time {
		var ms int64
		if err := s.one(t.Context(), s.read, []any{&ms}, "SELECT "+nowSQL[s.dialect]); err != nil {
			t.Fatal(err)
		}
		return moment(ms)
	}
}

// covers S12
func TestStock(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		t.Parallel() // mostly it waits for its database
		conformance.Stock(t, stockWorlds(t, s))
		conformance.StockAtEveryMoment(t, stockWorlds(t, s))
	})
}

func TestQueue(t *testing.T) {
	each(t, func(t *testing.T, s *Store) { conformance.Queue(t, stockWorlds(t, s)) })
}

// The answers of the database are those of memory, step by step.
// covers S5, S12, N1
func TestStockHistory(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		t.Parallel()
		world := stockWorlds(t, s)
		for seed := range int64(2) {
			t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
				clock := system.Clock{}
				yardstick := memory.NewStock(clock, memory.WithPartitions(3), memory.WithBackoff(reclaimAfter, reclaimAfter*16))
				conformance.History(t, seed, 150,
					conformance.StockWorld{Stock: yardstick, Queue: yardstick.Queue(), Now: clock.Now, Reclaim: reclaimAfter},
					world(t))
			})
		}
	})
}

var _ domain.Stock = (*Stock)(nil)
