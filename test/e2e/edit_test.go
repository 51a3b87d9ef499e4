package e2e

import (
	"fmt"
	"net/http"
	"testing"
	"time"
)

// testEdit adds and withdraws units while the sale runs.
// covers S13
func testEdit(t *testing.T, c *cell) {
	activity := c.sell(t, sale{total: 2})
	c.take(t, c.any(), activity, "a")
	edit := func(delta int, key string) answer {
		path := fmt.Sprintf("activities/%d/skus/%d/stock", activity, sku)
		return c.operate(c.any(), http.MethodPost, path, map[string]any{"delta": delta, "reason": "counted again"}, "Idempotency-Key", key)
	}
	for range 3 {
		edit(-1, "k-1").want(t, http.StatusOK)
	}
	c.becomes(t, activity, account{Total: 1, Held: 1, Ledger: ledger{Pending: 1}})
	edit(-1, "k-2").want(t, http.StatusConflict)
	for range 3 {
		edit(3, "k-3").want(t, http.StatusOK)
	}
	c.take(t, c.any(), activity, "b")
	c.becomes(t, activity, account{Total: 4, Available: 2, Held: 2, Ledger: ledger{Pending: 2}})
}

// testSoldOutIsNoticed has all nodes remember that a sale is sold out. A unit
// that comes back by one of them is soon on sale on each.
// covers T2
func testSoldOutIsNoticed(t *testing.T, c *cell) {
	activity := c.sell(t, sale{total: 1})
	last := c.take(t, c.here(), activity, "a")
	turn := 0
	ask := func(n *node) answer {
		turn++
		return c.grab(n, grab{ActivityID: activity, SKUID: sku, UserID: fmt.Sprint("late", turn), Quantity: 1})
	}
	for _, n := range c.nodes {
		for range 50 {
			ask(n).refused(t, http.StatusConflict, 0, "sold_out")
		}
	}
	c.cancel(c.here(), "a", last.OrderID).want(t, http.StatusOK)
	begin := time.Now()
	eventually(t, settleBound, func() error { return ask(c.there()).check(http.StatusAccepted) })
	t.Logf("on sale again after %v", time.Since(begin))
}
