package sqlstore

import (
	"fmt"
	"testing"
	"time"

	"seckill/domain"
)

// BenchmarkPlace places orders of as many buyers, one batch after the other.
func BenchmarkPlace(b *testing.B) {
	for name, url := range databases {
		for _, size := range []int{1, 500} {
			b.Run(fmt.Sprintf("%s/batch=%d", name, size), func(b *testing.B) {
				s := migrated(b, Config{URL: url(b)})
				a := domain.Activity{
					ID: 1001, Name: "a", StartsAt: time.Unix(1, 0), EndsAt: time.Unix(2, 0), PaymentWindow: time.Hour,
					SKUs: []domain.SKU{{ID: 2001, Name: "s", Total: domain.MaxInteger, PerUserLimit: 1, Segments: 1}},
				}
				if err := s.Save(b.Context(), a); err != nil {
					b.Fatal(err)
				}
				orders := make([]domain.Order, size)
				n := 0
				for b.Loop() {
					for i := range orders {
						n++
						orders[i] = domain.Order{
							ID: domain.NewOrderID(a.Sale(2001), fmt.Sprintf("01j%09dabcdefghijkl", n)), Sale: a.Sale(2001),
							Buyer: domain.BuyerID(fmt.Sprint("buyer-", n)), Request: domain.RequestID(fmt.Sprint("request-", n)), Quantity: 1,
						}
					}
					placed, err := s.Place(b.Context(), orders)
					if err != nil || placed[size-1].Order.Status != domain.Pending {
						b.Fatal(placed, err)
					}
				}
				b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "orders/s")
			})
		}
	}
}
