package e2e

import (
	"net/http"
	"sync"
	"testing"
)

// testSameRequest: a repeated grab is answered with the first one's order.
// covers T6 N5
func testSameRequest(t *testing.T, c *cell) {
	activity := c.sell(t, sale{total: 10, limit: 5})
	ann := grab{ActivityID: activity, UserID: "ann", Quantity: 2, RequestID: "r-1"}
	first := c.grab(c.here(), ann).want(t, http.StatusAccepted)
	if first.replayed() {
		t.Fatal("the first grab is said to be a replay")
	}
	same := func(what string, a answer) {
		t.Helper()
		a.want(t, http.StatusAccepted)
		if a.order.OrderID != first.order.OrderID || !a.replayed() {
			t.Fatalf("%s: order %s, replayed %t; the first was %s", what, a.order.OrderID, a.replayed(), first.order.OrderID)
		}
	}
	nameless := grab{ActivityID: activity, UserID: "ann", Quantity: 2}
	same("again", c.grab(c.here(), ann))
	same("on the other node", c.grab(c.there(), ann))
	same("by header", c.grab(c.there(), nameless, "Idempotency-Key", "r-1"))
	same("by both", c.grab(c.there(), ann, "Idempotency-Key", "r-1"))

	other := ann
	other.Quantity = 1
	if a := c.grab(c.there(), other).want(t, http.StatusUnprocessableEntity); a.problem.Reason != "request_id_reused" {
		t.Fatalf("another quantity: %s", a.body)
	}
	c.grab(c.here(), ann, "Idempotency-Key", "r-2").want(t, http.StatusBadRequest)

	// Another buyer's request ids are another matter.
	bob := ann
	bob.UserID = "bob"
	if a := c.grab(c.there(), bob).want(t, http.StatusAccepted); a.replayed() || a.order.OrderID == first.order.OrderID {
		t.Fatalf("another buyer: %s", a.body)
	}
	// Without one, every grab is a grab of its own.
	if a := c.grab(c.there(), nameless).want(t, http.StatusAccepted); a.replayed() || a.order.OrderID == first.order.OrderID {
		t.Fatalf("without a request id: %s", a.body)
	}
	c.becomes(t, activity, account{Total: 10, Available: 4, Held: 6, Ledger: ledger{Pending: 6}})

	c.command(c.here(), activity, "close").want(t, http.StatusOK)
	same("after the end", c.grab(c.there(), ann))
	c.cancel(c.here(), "ann", first.order.OrderID).want(t, http.StatusOK)
	same("after the cancel", c.grab(c.there(), ann))
	c.becomes(t, activity, account{Total: 10, Available: 6, Held: 4, Ledger: ledger{Pending: 4, Cancelled: 2}})
}

// testOneRequestAtOnce: fifty at the same moment are one.
// covers T6 N5 Q3
func testOneRequestAtOnce(t *testing.T, c *cell) {
	activity := c.sell(t, sale{total: 10, limit: 10})
	ids := map[string]int{}
	first := 0
	var mu sync.Mutex
	atOnce(t, 50, 50, func(int) {
		a := c.grab(c.any(), grab{ActivityID: activity, UserID: "ann", RequestID: "r-1"})
		if err := a.check(http.StatusAccepted); err != nil {
			t.Error(err)
			return
		}
		mu.Lock()
		defer mu.Unlock()
		ids[a.order.OrderID]++
		if !a.replayed() {
			first++
		}
	})
	if len(ids) != 1 || first != 1 {
		t.Fatalf("order ids %v, %d answers that are no replay", ids, first)
	}
	c.becomes(t, activity, account{Total: 10, Available: 9, Held: 1, Ledger: ledger{Pending: 1}})
}
