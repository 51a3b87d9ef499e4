package e2e

import (
	"testing"
	"time"
)

// TestDrainWithAStalledClient: a client that never finishes its request does not
// keep SIGTERM from ending the process well.
// covers Q8
func TestDrainWithAStalledClient(t *testing.T) {
	c := serving(t, pairing{"memory", "sqlite"}, "SECKILL_ACCEPT=queued", "SECKILL_SHUTDOWN_TIMEOUT=4s")
	activity := c.sell(t, sale{total: 10})
	list := attempts("b", 10)
	atOnce(t, len(list), 5, func(i int) { c.try(t, c.here(), activity, &list[i]) })
	begin(t, c.here(), activity, "stalled") // and never finished
	start := time.Now()
	c.terminate()
	c.drained(t)
	t.Logf("ended after %v", time.Since(start).Round(time.Millisecond))
	c.start(t)
	c.whole(t, activity, 10, list)
}
