package sqlstore

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"seckill/domain"
)

// BenchmarkReserve grabs from one sale, by one caller and by a crowd. The callers
// of "soldout" are all refused.
func BenchmarkReserve(b *testing.B) {
	for name, url := range databases {
		s := migrated(b, Config{URL: url(b)})
		for _, kind := range []struct {
			name           string
			total          int64
			batch, callers int
		}{
			{"batch=1", domain.MaxInteger, 1, 1},
			{"batch=100", domain.MaxInteger, 100, 1},
			{"batch=1/crowd", domain.MaxInteger, 1, 8},
			{"batch=100/crowd", domain.MaxInteger, 100, 8},
			{"soldout/crowd", 1, 1, 8},
		} {
			b.Run(name+"/"+kind.name, func(b *testing.B) {
				stock, err := NewStock(s, StockConfig{})
				if err != nil {
					b.Fatal(err)
				}
				sale := domain.SaleID{Activity: 1001, SKU: domain.SKUID(time.Now().UnixMicro())}
				gate := domain.Gate{State: domain.Open, StartsAt: time.UnixMilli(1), EndsAt: time.Now().Add(time.Hour), PerUserLimit: 1}
				if err := stock.Seal(b.Context(), sale, 1, true); err != nil {
					b.Fatal(err)
				}
				if err := stock.Preheat(b.Context(), domain.Load{Sale: sale, Epoch: 1, Gate: gate, Total: kind.total, Fence: 1}); err != nil {
					b.Fatal(err)
				}
				if kind.total == 1 {
					if _, err := stock.Reserve(b.Context(), sale, []domain.Claim{{Order: "first", Buyer: "first", Quantity: 1}}); err != nil {
						b.Fatal(err)
					}
				}
				var n atomic.Int64
				grab := func() {
					claims := make([]domain.Claim, kind.batch)
					for i := range claims {
						c := n.Add(1)
						claims[i] = domain.Claim{
							Order: domain.NewOrderID(sale, fmt.Sprintf("01j%09dabcdefghijkl", c)),
							Buyer: domain.BuyerID(fmt.Sprint("buyer-", c)), Request: domain.RequestID(fmt.Sprint("request-", c)), Quantity: 1,
						}
					}
					outcomes, err := stock.Reserve(b.Context(), sale, claims)
					if err != nil || (outcomes[0].Verdict == domain.Accepted) != (kind.total > 1) {
						b.Error(outcomes, err)
					}
				}
				if kind.callers == 1 {
					for b.Loop() {
						grab()
					}
				} else {
					b.SetParallelism(kind.callers)
					b.RunParallel(func(pb *testing.PB) {
						for pb.Next() {
							grab()
						}
					})
				}
				b.ReportMetric(float64(n.Load())/b.Elapsed().Seconds(), "claims/s")
			})
		}
	}
}
