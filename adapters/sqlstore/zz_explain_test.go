package sqlstore

import (
	"context"
	"fmt"
	"testing"

	"seckill/domain"
	"seckill/test/harness"
)

func TestZZExplain(t *testing.T) {
	for _, name := range []string{"mariadb", "postgres", "sqlite"} {
		t.Run(name, func(t *testing.T) {
			url := databases[name](t)
			s := migrated(t, Config{URL: url})
			db := s.pools[0]
			ctx := context.Background()
			n := 0
			for range 120 {
				var all []domain.Order
				for range 500 {
					n++
					sale := domain.SaleID{Activity: 1001, SKU: domain.SKUID(2001 + n%4)}
					st, req := domain.Cancelled, domain.RequestID("")
					if n%10 == 0 {
						st = domain.Pending
					}
					if n%7 == 0 {
						req = "r"
					}
					all = append(all, domain.Order{ID: domain.NewOrderID(sale, fmt.Sprintf("01j%09dabcdefghijkl", n)), Sale: sale, Buyer: domain.BuyerID(fmt.Sprint("b", n)), Request: req, Quantity: 1, Status: st})
				}
				tx, err := s.write.Tx(ctx)
				if err != nil {
					t.Fatal(err)
				}
				if err := s.insertOrders(ctx, tx, all); err != nil {
					t.Fatal(err)
				}
				tx.Commit()
			}
			_ = harness.Need
			ex := map[string]string{"mariadb": "ANALYZE ", "postgres": "EXPLAIN (ANALYZE, BUFFERS) ", "sqlite": "EXPLAIN QUERY PLAN "}[name]
			db.Exec("ALTER TABLE orders ADD INDEX x4 (activity_id, sku_id, id, status, quantity)")
			db.Exec("ALTER TABLE orders DROP INDEX order_activity_id_sku_id_id")
			for _, fresh := range []bool{true, false} {
				if !fresh {
					db.Exec(map[string]string{"mariadb": "ANALYZE TABLE orders", "postgres": "ANALYZE orders", "sqlite": "ANALYZE"}[name])
				}
				w := " AND (status IN ('pending_payment','paid') OR request IS NOT NULL) ORDER BY id LIMIT 1000"
				for _, q := range []string{
					"SELECT * FROM orders FORCE INDEX (x4) WHERE activity_id = 1001 AND sku_id = 2002 AND id > 'SK1001-2002-01j000030000'" + w,
					"SELECT * FROM orders FORCE INDEX (x4) WHERE activity_id = 1001 AND sku_id = 2002 AND id > ''" + w,
					"SELECT * FROM orders IGNORE INDEX (PRIMARY) WHERE activity_id = 1001 AND sku_id = 2002 AND id > 'SK1001-2002-01j000030000'" + w,
					"SELECT id FROM orders WHERE activity_id = 1001 AND sku_id = 2002 AND id > 'SK1001-2002-01j000030000' ORDER BY id LIMIT 1000",
					"SELECT id,status FROM orders WHERE activity_id = 1001 AND sku_id = 2002 AND id > 'SK1001-2002-01j000030000' AND status IN ('pending_payment','paid') ORDER BY id LIMIT 1000",
				} {
					if name == "mariadb" {
						c, _ := db.Conn(ctx)
						c.ExecContext(ctx, "FLUSH STATUS")
						r, err := c.QueryContext(ctx, q)
						if err != nil {
							t.Fatal(err)
						}
						for r.Next() {
						}
						r.Close()
						r, _ = c.QueryContext(ctx, "SHOW STATUS WHERE Variable_name LIKE 'Handler%' AND Value > 0")
						for r.Next() {
							var a, b string
							r.Scan(&a, &b)
							t.Log("STAT", a, b)
						}
						r.Close()
						c.Close()
					}
					rows, err := db.Query(ex + q)
					if err != nil {
						t.Fatal(err)
					}
					cols, _ := rows.Columns()
					t.Log(cols)
					for rows.Next() {
						v := make([]any, len(cols))
						for i := range v {
							v[i] = new([]byte)
						}
						rows.Scan(v...)
						line := ""
						for _, x := range v {
							line += string(*x.(*[]byte)) + " | "
						}
						t.Log(line)
					}
					rows.Close()
				}
			}
		})
	}
}
