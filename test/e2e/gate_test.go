package e2e

import (
	"net/http"
	"strconv"
	"testing"
	"time"
)

// onAll grabs for a new buyer on every node.
func (c *cell) onAll(activity int64, check func(answer)) {
	for _, n := range c.nodes {
		check(c.grab(n, grab{ActivityID: activity, UserID: "u" + strconv.FormatUint(c.turn.Add(1), 10)}))
	}
}

// testGate: what an operator says on one node holds for the very next grab on
// every node.
// covers S3 S4
func testGate(t *testing.T, c *cell) {
	activity := c.sell(t, sale{total: 1000})
	accepted := func(a answer) { t.Helper(); a.want(t, http.StatusAccepted) }
	says := func(reason string) func(answer) {
		return func(a answer) { t.Helper(); a.refused(t, http.StatusConflict, -3, reason) }
	}
	for i := range 10 {
		n := c.nodes[i%len(c.nodes)]
		c.onAll(activity, accepted)
		c.command(n, activity, "pause").want(t, http.StatusOK)
		c.onAll(activity, says("paused"))
		c.command(n, activity, "resume").want(t, http.StatusOK)
		c.onAll(activity, accepted)
		c.command(n, activity, "close").want(t, http.StatusOK)
		c.onAll(activity, says("ended"))
		c.command(n, activity, "open").want(t, http.StatusOK)
	}
	taken := int64(20 * len(c.nodes))
	c.becomes(t, activity, account{Total: 1000, Available: 1000 - taken, Held: taken, Ledger: ledger{Pending: taken}})
}

// testWindow: so does a window that is moved, and one that ends.
// covers S3
func testWindow(t *testing.T, c *cell) {
	now := time.Now().Truncate(time.Millisecond)
	later := now.Add(time.Hour)
	s := sale{total: 1000, starts: later, ends: later.Add(time.Hour)}
	activity := c.sell(t, s)
	c.onAll(activity, func(a answer) {
		a.refused(t, http.StatusConflict, -3, "not_started")
		if a.problem.StartsAt == nil || !a.problem.StartsAt.Equal(later) {
			t.Fatalf("startsAt is not %s: %s", later, a.body)
		}
	})
	move := func(starts, ends time.Time) {
		t.Helper()
		s.starts, s.ends = starts, ends
		c.save(c.here(), activity, s).want(t, http.StatusOK)
	}
	move(now.Add(-time.Hour), later)
	c.onAll(activity, func(a answer) { a.want(t, http.StatusAccepted) })
	move(now.Add(-time.Hour), now.Add(-time.Second))
	c.onAll(activity, func(a answer) { a.refused(t, http.StatusConflict, -3, "ended") })
	move(now.Add(-time.Hour), later)
	c.onAll(activity, func(a answer) { a.want(t, http.StatusAccepted) })

	ends := time.Now().Add(shortly).Truncate(time.Millisecond) // as the engine does
	move(now.Add(-time.Hour), ends)
	var over answer
	eventually(t, 5*time.Second, func() error {
		over = c.grab(c.any(), grab{ActivityID: activity, UserID: "u" + strconv.FormatUint(c.turn.Add(1), 10)})
		return over.isRefusal(http.StatusConflict, -3, "ended")
	})
	if time.Now().Before(ends) {
		t.Fatalf("ended %s before the end", time.Until(ends))
	}
	c.onAll(activity, func(a answer) { a.refused(t, http.StatusConflict, -3, "ended") })
	c.settled(t, activity)
}

// testImpossibleCommands: an operator hears what the state does not allow, and
// nothing changes.
// covers S1 S2 S3
func testImpossibleCommands(t *testing.T, c *cell) {
	activity := c.draft(t, sale{total: 5})
	never := func(state string, commands ...string) {
		t.Helper()
		for _, name := range commands {
			if a := c.command(c.any(), activity, name); a.check(http.StatusConflict) != nil {
				t.Fatalf("%s when %s: status %d: %s (%v)", name, state, a.status, a.body, a.err)
			}
		}
	}
	do := func(name string) { t.Helper(); c.command(c.any(), activity, name).want(t, http.StatusOK) }
	never("draft", "open", "pause", "resume", "close")
	do("preheat")
	do("preheat") // twice is once
	c.becomes(t, activity, account{Total: 5, Available: 5})
	never("ready", "pause", "resume", "archive")
	do("open")
	do("open")
	never("open", "archive")
	o := c.take(t, c.any(), activity, "ann")
	never("held", "preheat")
	c.becomes(t, activity, account{Total: 5, Available: 4, Held: 1, Ledger: ledger{Pending: 1}})
	do("close")
	never("closed", "pause", "resume", "archive") // the hold is still there
	c.pay(c.any(), "ann", o.OrderID, "p-1").want(t, http.StatusOK)
	do("archive")
	never("archived", "open", "pause", "resume", "close", "preheat")
	if a := c.save(c.any(), activity, sale{total: 5}); a.check(http.StatusConflict) != nil {
		t.Fatalf("change of an archived activity: status %d: %s", a.status, a.body)
	}
	c.becomes(t, activity, account{Total: 5, Available: 4, Sold: 1, Ledger: ledger{Paid: 1}})

	for _, name := range []string{"preheat", "open", "pause", "resume", "close", "archive"} {
		c.command(c.any(), 999_999, name).want(t, http.StatusNotFound)
	}
	c.operate(c.any(), http.MethodGet, "activities/999999/report", nil).want(t, http.StatusNotFound)
}

// testNotReady: a sale that is not there is told from one that is not ready,
// and neither from one that is sold out.
// covers S4
func testNotReady(t *testing.T, c *cell) {
	c.onAll(888_888, func(a answer) { a.refused(t, http.StatusNotFound, -1, "unknown_sale") })
	activity := c.draft(t, sale{total: 5})
	c.onAll(activity, func(a answer) { a.refused(t, http.StatusServiceUnavailable, -1, "not_ready") })
	c.grab(c.any(), grab{ActivityID: activity, SKUID: sku + 1, UserID: "ann"}).refused(t, http.StatusNotFound, -1, "unknown_sale")
	c.command(c.here(), activity, "preheat").want(t, http.StatusOK)
	c.onAll(activity, func(a answer) { a.refused(t, http.StatusConflict, -3, "not_started") })
	c.command(c.here(), activity, "open").want(t, http.StatusOK)
	c.onAll(activity, func(a answer) { a.want(t, http.StatusAccepted) })
}
