package redisstock_test

import (
	"fmt"
	"sync/atomic"
	"testing"

	"seckill/adapters/redisstock"
	"seckill/domain"
)

// BenchmarkReserve compares, with 1000 callers of one claim each: calls of their
// own; shared calls; shared calls over many sales; and, driven straight with
// full batches, what the script can do.
func BenchmarkReserve(b *testing.B) {
	b.Run("single", func(b *testing.B) { benchmarkCallers(b, 1, 1, domain.MaxInteger) })
	for _, sales := range []int{1, 100, 10_000} {
		b.Run(fmt.Sprintf("coalesced/sales=%d", sales), func(b *testing.B) { benchmarkCallers(b, 256, sales, domain.MaxInteger) })
	}
	b.Run("coalesced/sold out", func(b *testing.B) { benchmarkCallers(b, 256, 1, 1) })
	b.Run("limit", func(b *testing.B) { benchmarkLimit(b, 256) })
}

const callers = 1000

// benchmarkCallers reports grabs a second.
func benchmarkCallers(b *testing.B, batch, sales int, total int64) {
	w := open(b)
	stock := w.another(b, redisstock.Config{Batch: batch, Partitions: redisstock.DefaultPartitions})
	for i := range sales {
		preheat(b, stock, saleNumber(i), total)
	}
	var serial atomic.Int64
	b.SetParallelism(callers / 2)
	b.ReportAllocs()
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			n := serial.Add(1)
			if _, err := stock.Reserve(b.Context(), saleNumber(int(n)%sales), []domain.Claim{numbered(n)}); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "grabs/s")
	must(b, w.client.Del(b.Context(), w.keys(b)...).Err())
}

// benchmarkLimit has two callers of full batches.
func benchmarkLimit(b *testing.B, size int) {
	w := open(b)
	preheat(b, w.Stock, saleNumber(0), domain.MaxInteger)
	var serial atomic.Int64
	b.SetParallelism(1)
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		claims := make([]domain.Claim, 0, size)
		for pb.Next() {
			claims = append(claims, numbered(serial.Add(1)))
			if len(claims) < size {
				continue
			}
			if _, err := w.Reserve(b.Context(), saleNumber(0), claims); err != nil {
				b.Fatal(err)
			}
			claims = claims[:0]
		}
	})
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "grabs/s")
	must(b, w.client.Del(b.Context(), w.keys(b)...).Err())
}

func preheat(t testing.TB, stock domain.Stock, id domain.SaleID, total int64) {
	t.Helper()
	must(t, stock.Seal(t.Context(), id, 1, true))
	must(t, stock.Preheat(t.Context(), domain.Load{Sale: id, Epoch: 1, Gate: gate(), Total: total, Fence: 1}))
}

func saleNumber(i int) domain.SaleID { return domain.SaleID{Activity: 1, SKU: domain.SKUID(i + 1)} }

func numbered(n int64) domain.Claim {
	return domain.Claim{Order: order(fmt.Sprintf("%020d", n)), Buyer: domain.BuyerID(fmt.Sprint("u", n)), Quantity: 1}
}
