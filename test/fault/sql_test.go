package fault

import (
	"context"
	"database/sql"
	"fmt"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"

	"seckill/bootstrap"
	"seckill/test/harness"
	"seckill/test/history"
)

// TestDatabaseTrouble injects one fault of the database into the middle of a sale.
// Grabs go on without it; every accepted one is an order in the end, one.
// covers N2 Q3 Q4 Q5
func TestDatabaseTrouble(t *testing.T) {
	for _, fault := range []struct {
		name string
		harm func(t *testing.T, r *rig)
	}{
		{"frozen", func(_ *testing.T, r *rig) {
			r.database.Pause()
			time.Sleep(2 * time.Second)
			r.database.Resume()
		}},
		{"down for thirty seconds", func(t *testing.T, r *rig) {
			if testing.Short() || r.ledger != "mariadb" {
				t.Skip("takes half a minute, so with one database")
			}
			r.database.Stop()
			time.Sleep(30 * time.Second)
			r.database.Restart()
		}},
		{"killed in the middle of a batch", func(_ *testing.T, r *rig) {
			for range 2 {
				r.database.Kill()
				r.database.Restart()
			}
		}},
		{"cut around COMMIT", func(_ *testing.T, r *rig) {
			for range 40 {
				r.toSQL.Cut()
				r.toSQL.Mend()
				time.Sleep(harmTime / 40)
			}
		}},
		{"answers lost around COMMIT", func(_ *testing.T, r *rig) {
			for range 5 {
				heal := r.toSQL.Harm("timeout", "downstream", map[string]int64{"timeout": 10})
				time.Sleep(harmTime / 10)
				heal()
				time.Sleep(harmTime / 10)
			}
		}},
		{"100 ms slower", func(_ *testing.T, r *rig) {
			heal := r.toSQL.Harm("latency", "downstream", map[string]int64{"latency": 100})
			time.Sleep(2 * harmTime)
			heal()
		}},
		{"sessions ended by an operator", func(t *testing.T, r *rig) {
			for range 20 {
				endSessions(t, r)
				time.Sleep(harmTime / 20)
			}
		}},
		{"stock row locked by somebody else", lockStockRow},
	} {
		for _, ledger := range []string{"mariadb", "postgres"} {
			t.Run(fault.name+", "+ledger, func(t *testing.T) {
				t.Parallel()
				r := newRig(t, setup{ledger: ledger, own: true})
				crowd := r.storm(r.sell(5000, 1), "c", 3000, 30, 1, 20*time.Millisecond)
				crowd.reach(200)
				fault.harm(t, r)
				crowd.wait()
				v := r.settle(crowd)
				t.Logf("%d grabs had no answer at first; %d confirmed", r.history.Count(history.Grab, history.Unknown), v.Confirmed)
				if v.Confirmed != 3000 {
					t.Errorf("%+v, want 3000 orders", v)
				}
			})
		}
	}
}

// direct opens the database past the proxy.
func direct(t *testing.T, r *rig) *sql.DB {
	t.Helper()
	return harness.OpenSQL(t, r.directURL)
}

// endSessions ends the transactions that are under way.
func endSessions(t *testing.T, r *rig) {
	t.Helper()
	db := direct(t, r)
	if r.ledger == "postgres" {
		_, err := db.ExecContext(t.Context(), "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()")
		r.must(err)
		return
	}
	rows, err := db.QueryContext(t.Context(), "SELECT id FROM information_schema.processlist WHERE db = DATABASE() AND id <> CONNECTION_ID()")
	r.must(err)
	defer rows.Close()
	var ids []int64
	for rows.Next() {
		var id int64
		r.must(rows.Scan(&id))
		ids = append(ids, id)
	}
	r.must(rows.Err())
	for _, id := range ids {
		_, _ = db.ExecContext(t.Context(), fmt.Sprint("KILL ", id)) // it may have ended by itself
	}
}

// lockStockRow holds the row that every order of the sale needs, for longer than
// the database lets a statement wait.
func lockStockRow(t *testing.T, r *rig) {
	db := direct(t, r)
	if r.ledger == "mariadb" {
		_, err := db.ExecContext(t.Context(), "SET GLOBAL innodb_lock_wait_timeout = 1")
		r.must(err)
	} else {
		_, err := db.ExecContext(t.Context(), "ALTER SYSTEM SET lock_timeout = '500ms'")
		r.must(err)
		_, err = db.ExecContext(t.Context(), "SELECT pg_reload_conf()")
		r.must(err)
	}
	endSessions(t, r) // new ones have the new bound
	tx, err := direct(t, r).BeginTx(t.Context(), nil)
	r.must(err)
	_, err = tx.ExecContext(t.Context(), "UPDATE stocks SET name = 'locked' WHERE id = '"+r.sales[0].String()+"'")
	r.must(err)
	time.Sleep(3 * time.Second)
	r.must(tx.Rollback())
}

// Two sales are placed in the same transactions, while somebody locks their rows
// the other way round: the database ends one of the two.
// covers Q4
func TestDeadlock(t *testing.T) {
	for _, ledger := range []string{"mariadb", "postgres"} {
		t.Run(ledger, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, setup{ledger: ledger, own: true, change: func(c *bootstrap.Config) { c.Redis.Partitions = 1 }})
			one, two := r.sell(5000, 1), r.sell(5000, 1)
			db := direct(t, r)
			a, b := r.storm(one, "a", 1500, 15, 1, 10*time.Millisecond), r.storm(two, "b", 1500, 15, 1, 10*time.Millisecond)
			a.reach(50)
			for range 200 {
				if deadlocks(t, r, db) > 0 || a.done.Load() == 1500 {
					break
				}
				swapped(t.Context(), db, two, one)
				swapped(t.Context(), db, one, two)
			}
			a.wait()
			b.wait()
			v := r.settle(a, b)
			if n := deadlocks(t, r, db); n == 0 || v.Confirmed != 3000 {
				t.Errorf("%d deadlocks, %+v", n, v)
			}
		})
	}
}

// swapped locks the row of one sale and then the row of another. It may be the one
// that is ended.
func swapped(ctx context.Context, db *sql.DB, first, second history.Sale) {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return
	}
	defer func() { _ = tx.Rollback() }()
	for _, sale := range []history.Sale{first, second} {
		if _, err := tx.ExecContext(ctx, "UPDATE stocks SET name = 'locked' WHERE id = '"+sale.String()+"'"); err != nil {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func deadlocks(t *testing.T, r *rig, db *sql.DB) (n int) {
	t.Helper()
	if r.ledger == "postgres" {
		r.must(db.QueryRowContext(t.Context(), "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()").Scan(&n))
		return n
	}
	r.must(db.QueryRowContext(t.Context(), "SELECT variable_value FROM information_schema.global_status WHERE variable_name = 'INNODB_DEADLOCKS'").Scan(&n))
	return n
}

// A database that is set to serialize, and ends transactions that it cannot, gets
// them again.
// covers Q4
func TestSerializationFailures(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{ledger: "postgres", own: true})
	r.stop()
	db := direct(t, r)
	var name string
	r.must(db.QueryRowContext(t.Context(), "SELECT current_database()").Scan(&name))
	_, err := db.ExecContext(t.Context(), `ALTER DATABASE "`+name+`" SET default_transaction_isolation = 'serializable'`)
	r.must(err)
	r.start()
	one, two := r.sell(3000, 1), r.sell(3000, 1)
	a, b := r.storm(one, "a", 1000, 15, 1, 2*time.Millisecond), r.storm(two, "b", 1000, 15, 1, 2*time.Millisecond)
	if v := r.settle(a, b); v.Confirmed != 2000 {
		t.Errorf("%+v", v)
	}
}
