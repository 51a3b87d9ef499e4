package redisstock_test

import (
	"fmt"
	"sync/atomic"
	"testing"

	"seckill/domain"
)

func BenchmarkReserve(b *testing.B) {
	for _, size := range []int{1, 256} {
		b.Run(fmt.Sprintf("batch=%d", size), func(b *testing.B) { benchmarkReserve(b, size, domain.MaxInteger) })
	}
	b.Run("sold out/batch=256", func(b *testing.B) { benchmarkReserve(b, 256, 1) })
}

// benchmarkReserve reports grabs, not calls, a second.
func benchmarkReserve(b *testing.B, size int, total int64) {
	w := open(b)
	must(b, w.Seal(b.Context(), sale, 1, true))
	must(b, w.Preheat(b.Context(), domain.Load{Sale: sale, Epoch: 1, Gate: gate(), Total: total, Fence: 1}))
	var serial atomic.Int64
	b.SetParallelism(2)
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		claims := make([]domain.Claim, size)
		for pb.Next() {
			for i := range claims {
				n := serial.Add(1)
				claims[i] = domain.Claim{
					Order: order(fmt.Sprintf("%020d", n)), Buyer: domain.BuyerID(fmt.Sprint("u", n)),
					Request: domain.RequestID(fmt.Sprint("r", n)), Quantity: 1,
				}
			}
			if _, err := w.Reserve(b.Context(), sale, claims); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.StopTimer()
	b.ReportMetric(float64(b.N*size)/b.Elapsed().Seconds(), "grabs/s")
	must(b, w.client.Del(b.Context(), w.keys(b)...).Err())
}
