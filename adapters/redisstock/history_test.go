package redisstock_test

import (
	"fmt"
	"testing"

	"seckill/adapters/memory"
	"seckill/adapters/system"
	"seckill/test/conformance"
)

// The answers of Redis are those of memory, step by step.
// covers S5, S12, N1
func TestHistory(t *testing.T) {
	for seed := range int64(5) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			clock := system.Clock{}
			stock := memory.NewStock(clock, memory.WithPartitions(3), memory.WithBackoff(reclaimAfter, reclaimAfter*16))
			conformance.History(t, seed, 300,
				conformance.StockWorld{Stock: stock, Queue: stock.Queue(), Now: clock.Now, Reclaim: reclaimAfter},
				open(t).conformance(t))
		})
	}
}
