package sqlstore

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"seckill/domain"
	"seckill/ent"
)

// Each page of Holds begins where the last one ended. MariaDB counts the rows
// it looked at, in a session, so there is only one connection.
func TestHoldsReadsEachOrderOnce(t *testing.T) {
	const orders, page = 4000, 100
	s := migrated(t, Config{URL: databases["mariadb"](t), MaxOpen: 1})
	var all []domain.Order
	for i := range orders {
		sale := domain.SaleID{Activity: 1001, SKU: domain.SKUID(2001 + i%2)}
		o := domain.Order{
			ID: domain.NewOrderID(sale, fmt.Sprintf("x%06d", i)), Sale: sale,
			Buyer: "b", Quantity: 1, Status: domain.Cancelled,
		}
		if i/2%2 == 0 {
			o.Status = domain.Pending
		}
		all = append(all, o)
	}
	for chunk := range slices.Chunk(all, maxRows) {
		err := s.inTx(t.Context(), func(ctx context.Context, tx *ent.Tx) error { return s.insertOrders(ctx, tx, chunk) })
		if err != nil {
			t.Fatal(err)
		}
	}
	before := looked(t, s)
	after, found := domain.OrderID(""), 0
	for range orders {
		holds, err := s.Holds(t.Context(), domain.SaleID{Activity: 1001, SKU: 2001}, after, page)
		if err != nil {
			t.Fatal(err)
		}
		if len(holds) == 0 {
			break
		}
		after, found = holds[len(holds)-1].ID, found+len(holds)
	}
	if found != orders/4 {
		t.Fatalf("found %d, want %d", found, orders/4)
	}
	// Half of the orders are of this sale. A row counts for the index and for
	// the table; a page may look at the next one's first row.
	pages := orders/4/page + 1
	if n := looked(t, s) - before; n > 2*(orders/2+2*pages) {
		t.Errorf("looked at %d rows of %d", n, orders/2)
	}
}

// looked is how many rows the session has looked at so far.
func looked(t *testing.T, s *Store) int {
	t.Helper()
	rows, err := s.pools[0].QueryContext(t.Context(),
		"SHOW SESSION STATUS WHERE Variable_name IN ('Handler_icp_attempts', 'Handler_read_next', 'Handler_read_rnd_next')")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	sum := 0
	for rows.Next() {
		var name string
		var n int
		if err := rows.Scan(&name, &n); err != nil {
			t.Fatal(err)
		}
		sum += n
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return sum
}
