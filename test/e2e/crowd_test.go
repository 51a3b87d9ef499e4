package e2e

import (
	"net/http"
	"strconv"
	"sync/atomic"
	"testing"
)

// testCrowd has 2,000 buyers want 100 units, 200 at a time, on every node. With the
// strategies that take turns it is 40 at a time: the others would wait for theirs
// longer than a grab may.
// covers O4 S4 S5 N1 N2 Q1
func testCrowd(t *testing.T, c *cell) {
	const stock, crowd = 100, 2000
	activity := c.sell(t, sale{total: stock})
	list := attempts("", crowd)
	var accepted, soldOut atomic.Int64
	callers := 200
	if c.hot == "lock" || c.hot == "watch" || c.hot == "incr" {
		callers = 40
	}
	atOnce(t, crowd, callers, func(i int) {
		// As the load line does it: a number, and no request id.
		number, _ := strconv.Atoi(list[i].buyer)
		a := c.grab(c.any(), grab{ActivityID: activity, UserID: number})
		switch {
		case a.check(http.StatusAccepted) == nil:
			list[i].id = a.order.OrderID
			accepted.Add(1)
		case a.isRefusal(http.StatusConflict, 0, "sold_out") == nil:
			soldOut.Add(1)
		default:
			t.Errorf("status %d: %s (%v)", a.status, a.body, a.err)
		}
	})
	if accepted.Load() != stock || soldOut.Load() != crowd-stock {
		t.Fatalf("%d accepted, %d sold out", accepted.Load(), soldOut.Load())
	}
	if orders, rejected := c.kept(t, list); orders != stock || rejected != 0 {
		t.Fatalf("%d orders, %d rejected", orders, rejected)
	}
	c.becomes(t, activity, account{Total: stock, Held: stock, Ledger: ledger{Pending: stock}})
}
