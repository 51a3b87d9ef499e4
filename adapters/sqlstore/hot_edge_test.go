package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"seckill/domain"
	"seckill/ent"
)

// patience bounds every wait; only a failing test waits that long.
const patience = 10 * time.Second

// hotSale opens a sale with a limit of 5 on a Stock of its own.
func hotSale(t *testing.T, s *Store, sale domain.SaleID, total int64) *Stock {
	t.Helper()
	stock, err := NewStock(s, StockConfig{Partitions: 3, ReclaimAfter: reclaimAfter})
	if err != nil {
		t.Fatal(err)
	}
	now := databaseClock(t, s)()
	gate := domain.Gate{State: domain.Open, StartsAt: now.Add(-time.Hour), EndsAt: now.Add(time.Hour), PerUserLimit: 5}
	err = errors.Join(
		stock.Seal(t.Context(), sale, 1, true),
		stock.Preheat(t.Context(), domain.Load{Sale: sale, Epoch: 1, Gate: gate, Total: total, Fence: 1}),
	)
	if err != nil {
		t.Fatal(err)
	}
	return stock
}

func hotGrab(t *testing.T, stock *Stock, sale domain.SaleID, order, buyer string, quantity int64) domain.Outcome {
	t.Helper()
	outcomes, err := stock.Reserve(t.Context(), sale, []domain.Claim{
		{Order: domain.NewOrderID(sale, order), Buyer: domain.BuyerID(buyer), Quantity: quantity},
	})
	if err != nil {
		t.Fatal(err)
	}
	return outcomes[0]
}

// run is a statement that no adapter would run.
func run(t *testing.T, s *Store, statement string, args ...any) {
	t.Helper()
	if n, err := s.change(t.Context(), s.write, statement, args...); err != nil || n == 0 {
		t.Fatalf("%s: %d rows, %v", statement, n, err)
	}
}

// Figures that somebody changed by hand are named by the audit and repaired.
// covers N1, N3
func TestStockDamage(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		sale := domain.SaleID{Activity: 7, SKU: 1}
		stock := hotSale(t, s, sale, 20)
		hotGrab(t, stock, sale, "a", "alice", 3)
		hotGrab(t, stock, sale, "b", "bob", 2)
		hotGrab(t, stock, sale, "c", "carol", 1)
		if _, err := stock.Settle(t.Context(), sale, domain.NewOrderID(sale, "b")); err != nil {
			t.Fatal(err)
		}
		run(t, s, "UPDATE hot_sales SET held = held + 2, available = available - 2 WHERE id = ?", "7:1")
		run(t, s, "UPDATE hot_buyers SET units = units - 1 WHERE id = ?", "7:1:alice")
		run(t, s, "DELETE FROM hot_buyers WHERE id = ?", "7:1:bob")
		run(t, s, "INSERT INTO hot_buyers (id, units, cap) VALUES (?, 4, 5)", "7:1:dave")

		audit, err := stock.Audit(t.Context(), sale)
		if err != nil {
			t.Fatal(err)
		}
		want := []domain.BuyerDrift{
			{Buyer: "alice", Recorded: 2, Counted: 3}, {Buyer: "bob", Recorded: 0, Counted: 2}, {Buyer: "dave", Recorded: 4, Counted: 0},
		}
		if audit.Balanced() || audit.Level.Held != 6 || audit.HeldUnits != 4 || audit.SoldUnits != 2 ||
			fmt.Sprint(audit.Buyers) != fmt.Sprint(want) {
			t.Fatalf("audit is %+v, want the buyers %v", audit, want)
		}
		audit, err = stock.Correct(t.Context(), sale, audit.Level, 2)
		level := domain.Level{Epoch: 1, State: domain.Open, Total: 20, Available: 14, Held: 4, Sold: 2, Queued: 6}
		if err != nil || !audit.Balanced() || audit.Level != level {
			t.Fatalf("corrected to %+v, %v, want the level %+v", audit, err, level)
		}
		if o := hotGrab(t, stock, sale, "d", "alice", 3); o.Verdict != domain.LimitReached {
			t.Errorf("alice with 3 of 5 units gets 3 more: %v", o.Verdict)
		}
		if o := hotGrab(t, stock, sale, "e", "dave", 5); o.Verdict != domain.Accepted {
			t.Errorf("dave with none gets %v", o.Verdict)
		}
	})
}

// The database itself refuses an account that does not add up, and a buyer
// above the limit.
// covers N1
func TestStockChecks(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		sale := domain.SaleID{Activity: 7, SKU: 2}
		hotGrab(t, hotSale(t, s, sale, 20), sale, "a", "alice", 3)
		for _, statement := range []string{
			"UPDATE hot_sales SET available = available + 1 WHERE id = '7:2'",
			"UPDATE hot_sales SET available = -1, held = 21 WHERE id = '7:2'",
			"UPDATE hot_buyers SET units = 6 WHERE id = '7:2:alice'",
			"UPDATE hot_buyers SET units = -1 WHERE id = '7:2:alice'",
		} {
			if _, err := s.change(t.Context(), s.write, statement); classify(err) != check {
				t.Errorf("%s: %v, want a failed check", statement, err)
			}
		}
	})
}

// Sales whose names begin alike share no record.
func TestStockNeighbours(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		middle := domain.SaleID{Activity: 1, SKU: 2}
		others := []domain.SaleID{{Activity: 1, SKU: 20}, {Activity: 1, SKU: 1}, {Activity: 1, SKU: 3}, {Activity: 11, SKU: 2}, {Activity: 12, SKU: 2}}
		for _, sale := range others {
			hotGrab(t, hotSale(t, s, sale, 9), sale, "a", "alice", 2)
		}
		stock := hotSale(t, s, middle, 9)
		if holds, _, err := stock.Holds(t.Context(), middle, ""); err != nil || len(holds) > 0 {
			t.Errorf("the empty sale lists %+v, %v", holds, err)
		}
		if err := stock.Archive(t.Context(), middle, 1); err != nil {
			t.Fatal(err)
		}
		for _, sale := range others {
			audit, err := stock.Audit(t.Context(), sale)
			if err != nil || !audit.Balanced() || audit.HeldUnits != 2 {
				t.Errorf("sale %s is %+v, %v", sale, audit, err)
			}
		}
	})
}

// A refusal and a replay need no lock: they are answered while somebody else
// has the sale's row locked, with SQLite the whole database.
func TestStockRefusesWithoutALock(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		sale := domain.SaleID{Activity: 7, SKU: 3}
		stock := hotSale(t, s, sale, 5)
		hotGrab(t, stock, sale, "a", "alice", 5)
		blocked(t, s, "7:3", func() {
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			outcomes, err := stock.Reserve(ctx, sale, []domain.Claim{
				{Order: domain.NewOrderID(sale, "a"), Buyer: "alice", Quantity: 5},
				{Order: domain.NewOrderID(sale, "b"), Buyer: "alice", Quantity: 1},
				{Order: domain.NewOrderID(sale, "c"), Buyer: "bob", Quantity: 1},
			})
			if err != nil {
				t.Fatal(err)
			}
			if !outcomes[0].Replayed || outcomes[1].Verdict != domain.LimitReached || outcomes[2].Verdict != domain.SoldOut {
				t.Errorf("outcomes are %+v", outcomes)
			}
		})
	})
}

// covers L7
func TestStockOfAnotherSaleIsNotHeldUp(t *testing.T) {
	eachServer(t, func(t *testing.T, s *Store) {
		busy, free := domain.SaleID{Activity: 7, SKU: 4}, domain.SaleID{Activity: 7, SKU: 5}
		hotSale(t, s, busy, 5)
		stock := hotSale(t, s, free, 5)
		blocked(t, s, "7:4", func() {
			if o := hotGrab(t, stock, free, "a", "alice", 1); o.Verdict != domain.Accepted {
				t.Errorf("the verdict is %v", o.Verdict)
			}
		})
	})
}

// blocked runs f while another transaction has a sale's row locked, after
// changing it with the statements.
func blocked(t *testing.T, s *Store, id string, f func(), statements ...string) {
	t.Helper()
	err := s.once(t.Context(), func(ctx context.Context, tx *ent.Tx) error {
		for _, statement := range append(statements, "UPDATE hot_sales SET revision = revision WHERE id = ?") {
			if _, err := s.change(ctx, tx.Client(), statement, id); err != nil {
				return err
			}
		}
		f()
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// A grab that decided by an account that has changed since decides again: the
// first transaction waits for the sale's row while the units go.
func TestStockDecidesAgain(t *testing.T) {
	eachServer(t, func(t *testing.T, s *Store) {
		sale := domain.SaleID{Activity: 7, SKU: 6}
		stock := hotSale(t, s, sale, 10)
		claims := []domain.Claim{
			{Order: domain.NewOrderID(sale, "a"), Buyer: "alice", Quantity: 4},
			{Order: domain.NewOrderID(sale, "b"), Buyer: "bob", Quantity: 5},
			{Order: domain.NewOrderID(sale, "c"), Buyer: "carol", Quantity: 3},
		}
		for _, change := range []struct {
			what string
			by   string
			want []domain.Verdict
		}{
			{
				"units go", "UPDATE hot_sales SET available = available - 6, sold = sold + 6 WHERE id = ?",
				[]domain.Verdict{domain.Accepted, domain.SoldOut, domain.SoldOut},
			},
			{
				"units come", "UPDATE hot_sales SET available = available + 2, total = total + 2 WHERE id = ?",
				[]domain.Verdict{domain.Accepted, domain.Accepted, domain.Accepted},
			},
			{
				"the gate closes", "UPDATE hot_sales SET state = 'closed', revision = revision + 1 WHERE id = ?",
				[]domain.Verdict{domain.SaleEnded, domain.SaleEnded, domain.SaleEnded},
			},
			{
				"it is sealed", "UPDATE hot_sales SET stage = 'sealed', revision = revision + 1 WHERE id = ?",
				[]domain.Verdict{domain.NotReady, domain.NotReady, domain.NotReady},
			},
		} {
			hotSale(t, s, sale, 10)
			answer := make(chan []domain.Outcome, 1)
			blocked(t, s, "7:6", func() {
				go func() {
					outcomes, err := stock.Reserve(context.WithoutCancel(t.Context()), sale, claims)
					if err != nil {
						t.Error(err)
					}
					answer <- outcomes
				}()
				// It may wait for the row by the time this commits, or come too
				// late for that: the answer is the same.
				select {
				case outcomes := <-answer:
					t.Errorf("%s: answered %+v past the lock", change.what, outcomes)
				case <-time.After(100 * time.Millisecond):
				}
			}, change.by)
			select {
			case outcomes := <-answer:
				if len(outcomes) != len(claims) {
					t.Fatalf("%s: outcomes are %+v", change.what, outcomes)
				}
				for i, outcome := range outcomes {
					if outcome.Verdict != change.want[i] {
						t.Errorf("%s: outcome %d is %+v, want %v", change.what, i, outcome, change.want[i])
					}
				}
			case <-time.After(patience):
				t.Fatalf("%s: no answer", change.what)
			}
		}
	})
}

// A release that saw the sale ready and then waits for its row, while the sale
// is sealed, changes nothing.
func TestStockReleaseMeetsASeal(t *testing.T) {
	eachServer(t, func(t *testing.T, s *Store) {
		sale := domain.SaleID{Activity: 7, SKU: 9}
		stock := hotSale(t, s, sale, 10)
		held, unknown := domain.NewOrderID(sale, "a"), domain.NewOrderID(sale, "b")
		hotGrab(t, stock, sale, "a", "alice", 4)
		answer := make(chan error, 1)
		blocked(t, s, "7:9", func() {
			go func() {
				_, err := stock.Release(context.WithoutCancel(t.Context()), sale, held, unknown)
				answer <- err
			}()
			select {
			case err := <-answer:
				t.Errorf("answered %v past the lock", err)
			case <-time.After(100 * time.Millisecond):
			}
		}, "UPDATE hot_sales SET stage = 'sealed' WHERE id = ?")
		select {
		case err := <-answer:
			if !errors.Is(err, domain.ErrNotReady) {
				t.Errorf("the answer is %v, want %v", err, domain.ErrNotReady)
			}
		case <-time.After(patience):
			t.Fatal("no answer")
		}
		if hold, err := stock.Hold(t.Context(), sale, held); err != nil || hold.State != domain.Held {
			t.Errorf("the hold is %+v, %v", hold, err)
		}
		if _, err := stock.Hold(t.Context(), sale, unknown); !errors.Is(err, domain.ErrNotFound) {
			t.Errorf("the tombstone stayed: %v", err)
		}
	})
}

// An entry that cannot be read is delivered as it is, so that it can be buried.
// covers Q6
func TestQueueShowsWhatItCannotRead(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		sale := domain.SaleID{Activity: 7, SKU: 7}
		stock := hotSale(t, s, sale, 10)
		hotGrab(t, stock, sale, "a", "alice", 1)
		run(t, s, "UPDATE hot_intents SET payload = ?", []byte("{torn"))
		got, err := stock.Queue().Receive(t.Context(), stock.Queue().home("7:7"), 10)
		if err != nil || len(got) != 1 || got[0].Problem == "" || got[0].Raw != "{torn" || len(got[0].Intents) > 0 {
			t.Fatalf("received %+v, %v", got, err)
		}
		if err := stock.Queue().Ack(t.Context(), got...); err != nil {
			t.Fatal(err)
		}
		if level, err := stock.Level(t.Context(), sale); err != nil || level.Queued != 0 {
			t.Errorf("after the acknowledgement the level is %+v, %v", level, err)
		}
	})
}

// What another process queues is found too, and its sale is in the same partition.
// covers Q10
func TestQueueOfAnotherProcess(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		sale := domain.SaleID{Activity: 7, SKU: 8}
		stock := hotSale(t, s, sale, 10)
		other, err := NewStock(s, StockConfig{Partitions: 3, ReclaimAfter: reclaimAfter})
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			time.Sleep(20 * time.Millisecond) // mostly Receive waits by then; if not, it must find the entry as well
			_, err := stock.Reserve(context.WithoutCancel(t.Context()), sale, []domain.Claim{{Order: domain.NewOrderID(sale, "a"), Buyer: "alice", Quantity: 1}})
			if err != nil {
				t.Error(err)
			}
		}()
		end := time.Now().Add(patience)
		for time.Now().Before(end) {
			got, err := other.Queue().Receive(t.Context(), stock.Queue().home("7:8"), 10)
			if err != nil {
				t.Fatal(err)
			}
			if len(got) == 1 {
				return
			}
		}
		t.Fatal("the entry was not received")
	})
}

func TestStockConfig(t *testing.T) {
	for _, config := range []StockConfig{
		{Partitions: -1}, {Partitions: 1025}, {ReclaimAfter: -1}, {ReclaimAfter: 2 * time.Hour},
		{ReclaimAfter: time.Second, ReclaimMax: time.Millisecond}, {ReclaimMax: 48 * time.Hour},
	} {
		if _, err := NewStock(nil, config); !errors.Is(err, domain.ErrInvalid) {
			t.Errorf("%+v: %v, want an invalid value", config, err)
		}
	}
	stock, err := NewStock(nil, StockConfig{})
	if err != nil || stock.Queue().Partitions() != DefaultPartitions {
		t.Errorf("defaults: %+v, %v", stock, err)
	}
}

// A statement that is kept can be used again while its rows are read, after an
// error, and with other values.
func TestKeptStatements(t *testing.T) {
	s := migrated(t, Config{URL: databases["sqlite"](t), MaxOpen: 2})
	err := s.once(t.Context(), func(ctx context.Context, tx *ent.Tx) error {
		const numbers = "SELECT value FROM json_each(?) ORDER BY value"
		var outer, inner int64
		sum := int64(0)
		return errors.Join(s.rows(ctx, tx.Client(), []any{&outer}, func() error {
			return s.rows(ctx, tx.Client(), []any{&inner}, func() error { sum += outer * inner; return nil }, numbers, "[10, 20]")
		}, numbers, "[1, 2, 3]"), func() error {
			if sum != 180 {
				return fmt.Errorf("sum is %d, want 180", sum)
			}
			return nil
		}())
	})
	if err != nil {
		t.Error(err)
	}
	const insert = "INSERT INTO fences (name, number) VALUES (?, ?)"
	for i, want := range []class{unavailable, unique, unavailable} {
		_, err := s.change(t.Context(), s.write, insert, []string{"a", "a", "b"}[i], int64(1))
		if (err == nil) != (want == unavailable) || err != nil && classify(err) != want {
			t.Errorf("insert %d: %v", i, err)
		}
	}
	for i := range maxKept + 10 {
		if err := s.one(t.Context(), s.read, []any{new(int64)}, fmt.Sprintf("SELECT %d", i)); err != nil {
			t.Fatal(err)
		}
	}
}
