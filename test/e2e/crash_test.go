package e2e

import (
	"fmt"
	"sync/atomic"
	"syscall"
	"testing"
)

// TestCrash kills serving processes in the middle of the load, at 20 moments
// with Redis and at 6 with the stock in memory. Every order id that a client was
// given becomes one order; whoever has no answer gets one under the same
// request id; no unit is lost or sold twice.
// covers Q5 Q9 N2 N5 T6
func TestCrash(t *testing.T) {
	for _, kind := range []struct {
		pairing
		moments int
	}{
		{pairing{"lua", "mariadb"}, 10},
		{pairing{"lua", "postgres"}, 10},
		{pairing{"memory", "sqlite"}, 6},
	} {
		t.Run(kind.String(), func(t *testing.T) {
			t.Parallel()
			c := serving(t, kind.pairing)
			for m := range kind.moments {
				if !t.Run(fmt.Sprintf("moment %d", m), func(t *testing.T) { crash(t, c, m, kind.moments) }) {
					return // what is broken costs a minute each time
				}
			}
		})
	}
}

func crash(t *testing.T, c *cell, moment, moments int) {
	const crowd = 300
	stock := int64(crowd + 30) // more than the crowd takes
	if moment%4 >= 2 {
		stock = crowd - 60
	}
	activity := c.sell(t, sale{total: stock})
	victims := c.nodes
	if moment%2 == 1 && len(c.nodes) > 1 {
		victims = c.nodes[moment/2%2:][:1]
	}
	list := attempts(fmt.Sprintf("m%d-", moment), crowd)
	var answered atomic.Int64
	at := int64(crowd * (2*moment + 1) / (2 * moments))
	atOnce(t, crowd, 50, func(i int) {
		c.try(t, c.any(), activity, &list[i])
		if answered.Add(1) == at {
			for _, n := range victims {
				n.process.Signal(syscall.SIGKILL)
			}
		}
	})
	for _, n := range victims {
		n.process.Wait(t, startBound)
	}
	unknown := 0
	for _, a := range list {
		if a.unknown() {
			unknown++
		}
	}
	t.Logf("killed %d of %d nodes after %d of %d answers: %d without an answer", len(victims), len(c.nodes), at, crowd, unknown)
	if len(victims) < len(c.nodes) {
		// The survivor does it alone.
		c.retried(t, activity, list)
		c.kept(t, list)
	}
	c.start(t)
	c.whole(t, activity, stock, list)
}
