package e2e

import (
	"fmt"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"seckill/test/harness"
)

// TestSplitStockOnACluster sells one hot sale from 1, 4 and 16 segments that lie
// on three Redis servers, by two nodes: nobody is told "sold out" while a unit is
// free anywhere. Then a node, or both, are killed while segments borrow from each
// other, and every unit is sold all the same.
// covers S11
func TestSplitStockOnACluster(t *testing.T) {
	t.Parallel()
	addrs := harness.RedisCluster(t)
	c := serving(t, pairing{"lua", "mariadb"}, "SECKILL_REDIS_ADDRS="+strings.Join(addrs, ","))
	for _, segments := range []int{1, 4, 16} {
		t.Run(fmt.Sprintf("%d segments", segments), func(t *testing.T) {
			const stock, crowd = 150, 600
			activity := c.sell(t, sale{total: stock, segments: segments})
			list := attempts("b", crowd)
			atOnce(t, crowd, 100, func(i int) { c.try(t, c.any(), activity, &list[i]) })
			c.retried(t, activity, list)
			if orders, rejected := c.kept(t, list); orders != stock || rejected != 0 {
				t.Fatalf("%d orders of %d units, %d rejected", orders, stock, rejected)
			}
			c.becomes(t, activity, account{Total: stock, Held: stock, Ledger: ledger{Pending: stock}})
		})
	}
	const moments = 8
	for m := range moments {
		if !t.Run(fmt.Sprintf("killed at moment %d", m), func(t *testing.T) { killBorrowers(t, c, m, moments) }) {
			return
		}
	}
}

// killBorrowers kills while the last units go: with ten units in each segment the
// first one is empty long before the stock is.
func killBorrowers(t *testing.T, c *cell, moment, moments int) {
	const stock, crowd = 160, 400
	activity := c.sell(t, sale{total: stock, segments: 16})
	victims := c.nodes
	if moment%2 == 1 {
		victims = c.nodes[:1]
	}
	list := attempts(fmt.Sprintf("m%d-", moment), crowd)
	var taken atomic.Int64
	at := int64(stock/2 + stock*moment/(2*moments))
	atOnce(t, crowd, 50, func(i int) {
		c.try(t, c.any(), activity, &list[i])
		if list[i].id != "" && taken.Add(1) == at {
			for _, n := range victims {
				n.process.Signal(syscall.SIGKILL)
			}
		}
	})
	for _, n := range victims {
		n.process.Wait(t, startBound)
	}
	t.Logf("killed %d of %d nodes after %d of %d units", len(victims), len(c.nodes), at, stock)
	c.start(t)
	c.whole(t, activity, stock, list)
}
