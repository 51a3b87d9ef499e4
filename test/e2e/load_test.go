package e2e

import (
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// loadBound is how long a load may take as a whole.
const loadBound = 90 * time.Second

// atOnce does n things, at most so many at a time, and waits for all of them.
// What takes longer than loadBound as a whole is not begun any more.
func atOnce(t *testing.T, n, workers int, do func(i int)) {
	t.Helper()
	var next, late atomic.Int64
	deadline := time.Now().Add(loadBound)
	var all sync.WaitGroup
	for range min(n, workers) {
		all.Go(func() {
			for i := next.Add(1) - 1; i < int64(n); i = next.Add(1) - 1 {
				if time.Now().After(deadline) {
					late.Add(1)
					continue
				}
				do(int(i))
			}
		})
	}
	all.Wait()
	if late.Load() > 0 {
		t.Fatalf("%d of %d were not begun within %s", late.Load(), n, loadBound)
	}
}

// attempt is one buyer's grab of one unit and what the buyer knows of it.
type attempt struct {
	buyer string
	id    string // accepted under this order id
	out   bool   // sold out
}

func (a attempt) unknown() bool { return a.id == "" && !a.out }

// attempts makes buyers who have not asked yet.
func attempts(prefix string, n int) []attempt {
	list := make([]attempt, n)
	for i := range list {
		list[i].buyer = prefix + strconv.Itoa(i)
	}
	return list
}

// try grabs for one buyer, always under the same request id. No answer and 503
// leave the outcome open; every other answer must be a documented one.
func (c *cell) try(t *testing.T, n *node, activity int64, a *attempt) {
	got := c.grab(n, grab{ActivityID: activity, UserID: a.buyer, RequestID: "r-" + a.buyer})
	switch {
	case got.status == http.StatusAccepted && got.err == nil:
		a.id = got.order.OrderID
	case got.status == http.StatusConflict && got.isRefusal(http.StatusConflict, 0, "sold_out") == nil:
		a.out = true
	case got.status != 0 && got.status != http.StatusServiceUnavailable:
		t.Errorf("grab of buyer %s: status %d: %s (%v)", a.buyer, got.status, got.body, got.err)
	}
}

// retried asks again for every buyer who does not know the outcome, until all do.
func (c *cell) retried(t *testing.T, activity int64, list []attempt) {
	t.Helper()
	deadline := time.Now().Add(settleBound)
	var silent atomic.Int64
	atOnce(t, len(list), 50, func(i int) {
		for list[i].unknown() && time.Now().Before(deadline) {
			if c.try(t, c.any(), activity, &list[i]); list[i].unknown() {
				time.Sleep(50 * time.Millisecond)
			}
		}
		if list[i].unknown() {
			silent.Add(1)
		}
	})
	if silent.Load() > 0 {
		t.Fatalf("%d buyers have no answer after %s", silent.Load(), settleBound)
	}
}

// kept wants every accepted grab to have become one order of its buyer, or one
// recorded rejection, and returns how many of each. No id is given twice.
func (c *cell) kept(t *testing.T, list []attempt) (orders, rejected int64) {
	t.Helper()
	var mu sync.Mutex
	seen := map[string]string{}
	atOnce(t, len(list), 50, func(i int) {
		a := list[i]
		if a.id == "" {
			return
		}
		o, err := c.placed(c.any(), a.buyer, a.id)
		mu.Lock()
		defer mu.Unlock()
		if other, twice := seen[a.id]; twice {
			t.Errorf("order id %s was given to %s and %s", a.id, other, a.buyer)
		}
		seen[a.id] = a.buyer
		switch {
		case err != nil:
			t.Error(err)
		case o.Status == "pending_payment":
			orders++
		case o.Status == "rejected" && o.Reason != nil && *o.Reason != "":
			rejected++
		default:
			t.Errorf("order %s ended as %s", a.id, o.Status)
		}
	})
	if t.Failed() {
		t.FailNow()
	}
	return orders, rejected
}

// buyOut has fresh buyers take what is left, to the last unit.
func (c *cell) buyOut(t *testing.T, activity, stock int64) []attempt {
	t.Helper()
	rest := attempts(fmt.Sprintf("rest-%d-", activity), int(stock)+1)
	for i := range rest {
		one := rest[i : i+1]
		if c.retried(t, activity, one); one[0].out {
			return rest[:i]
		}
	}
	t.Fatalf("more than %d units", stock)
	return nil
}

// whole wants a sale to be exactly sold out and everything about it to be
// kept: nothing lost, nothing doubled, no unit stranded.
func (c *cell) whole(t *testing.T, activity, stock int64, list []attempt) {
	t.Helper()
	c.retried(t, activity, list)
	orders, rejected := c.kept(t, list)
	c.settled(t, activity) // rejected holds are back on sale
	rest := c.buyOut(t, activity, stock-orders)
	more, none := c.kept(t, rest)
	if orders+more != stock || none != 0 {
		t.Fatalf("%d + %d orders of %d units, %d rejected", orders, more, stock, none)
	}
	c.becomes(t, activity, account{Total: stock, Held: stock, Ledger: ledger{Pending: stock, Rejected: rejected}})
}
