package redisstock_test

import (
	"fmt"
	"testing"

	"seckill/adapters/redisstock"
	"seckill/domain"
)

// A reader gets about as many orders as it asked for, whatever the entries hold:
// more than it can place in time would come back to another one.
// covers Q4
func TestReceiveIsBoundedInOrders(t *testing.T) {
	for _, perEntry := range []int{1, 50, 250} {
		t.Run(fmt.Sprint(perEntry), func(t *testing.T) {
			w := open(t)
			const entries, want = 120, 1000
			preheat(t, w.Stock, sale, int64(entries*perEntry))
			var n int64
			for range entries {
				claims := make([]domain.Claim, perEntry)
				for i := range claims {
					claims[i] = numbered(n)
					n++
				}
				_, err := w.Reserve(t.Context(), sale, claims)
				must(t, err)
			}
			most := want + perEntry
			queue, total, reads := w.Queue(), 0, 0
			for reads < 100 && total < entries*perEntry {
				reads++
				orders := 0
				deliveries, err := queue.Receive(t.Context(), redisstock.PartitionOf(sale, 3), want)
				must(t, err)
				for _, d := range deliveries {
					orders += len(d.Intents)
				}
				must(t, queue.Ack(t.Context(), deliveries...))
				if orders > most {
					t.Errorf("a read has %d orders, want at most %d", orders, most)
				}
				total += orders
			}
			if total != entries*perEntry {
				t.Errorf("%d orders in %d reads, want %d", total, reads, entries*perEntry)
			}
			if perEntry == 1 && reads > 8 {
				t.Errorf("%d reads for %d small entries: they should grow", reads, entries)
			}
		})
	}
}
