package sqlstore

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"seckill/domain"
)

// TestErase: a draft goes with all its orders; its neighbours, and whatever is
// more than a draft, stay.
func TestErase(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		ctx := t.Context()
		// 10 and 100 begin like 1, and 2 comes after it.
		for _, id := range []domain.ActivityID{1, 2, 10, 100} {
			a := domain.Activity{
				ID: id, Name: "a", StartsAt: time.Unix(1, 0), EndsAt: time.Unix(2, 0), PaymentWindow: time.Hour,
				SKUs: []domain.SKU{{ID: 1, Name: "s", Total: 2000, PerUserLimit: 1, Segments: 1}, {ID: 2, Name: "t", Total: 1, PerUserLimit: 1, Segments: 1}},
			}
			if err := s.Save(ctx, a); err != nil {
				t.Fatal(err)
			}
			orders := make([]domain.Order, maxRows+1)
			for i := range orders {
				orders[i] = domain.Order{ID: domain.NewOrderID(a.Sale(1), fmt.Sprintf("x%d", i)), Sale: a.Sale(1), Buyer: domain.BuyerID(fmt.Sprint("b", i)), Quantity: 1}
			}
			orders[0].Sale, orders[0].ID = a.Sale(3), domain.NewOrderID(a.Sale(3), "x") // an unknown sale: rejected, with an effect
			for start := 0; start < len(orders); start += 500 {
				if _, err := s.Place(ctx, orders[start:min(start+500, len(orders))]); err != nil {
					t.Fatal(err)
				}
			}
		}
		counts := func() (list []int) {
			for _, count := range []func() (int, error){
				func() (int, error) { return s.read.Activity.Query().Count(ctx) },
				func() (int, error) { return s.read.Stock.Query().Count(ctx) },
				func() (int, error) { return s.read.Order.Query().Count(ctx) },
				func() (int, error) { return s.read.Quota.Query().Count(ctx) },
				func() (int, error) { return s.read.Effect.Query().Count(ctx) },
			} {
				n, err := count()
				if err != nil {
					t.Fatal(err)
				}
				list = append(list, n)
			}
			return list
		}
		for range 2 { // the second time it does nothing
			if err := s.Erase(ctx, 1); err != nil {
				t.Fatal(err)
			}
			if got, want := fmt.Sprint(counts()), fmt.Sprint([]int{3, 6, 3 * (maxRows + 1), 3 * maxRows, 3}); got != want {
				t.Fatalf("activities, stocks, orders, quotas, effects %s, want %s", got, want)
			}
		}
		if err := s.SetState(ctx, 2, domain.Draft, domain.Ready); err != nil {
			t.Fatal(err)
		}
		before := fmt.Sprint(counts())
		if err := s.Erase(ctx, 2); !errors.Is(err, domain.ErrState) || fmt.Sprint(counts()) != before {
			t.Errorf("an activity that is ready: %v", err)
		}
	})
}

func TestProduct(t *testing.T) {
	for name, open := range databases {
		t.Run(name, func(t *testing.T) {
			s := migrated(t, Config{URL: open(t)})
			if got, err := s.Product(t.Context()); err != nil || got != name {
				t.Errorf("%q %v", got, err)
			}
		})
	}
}

// TestEraseHotSale: nothing of a sale stays, held, queued or archived.
func TestEraseHotSale(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		ctx := t.Context()
		stock, err := NewStock(s, StockConfig{})
		if err != nil {
			t.Fatal(err)
		}
		now := time.Now()
		gate := domain.Gate{State: domain.Open, StartsAt: now.Add(-time.Hour), EndsAt: now.Add(time.Hour), PerUserLimit: 9}
		one, two := domain.SaleID{Activity: 1, SKU: 1}, domain.SaleID{Activity: 1, SKU: 11}
		for _, sale := range []domain.SaleID{one, two} {
			if err := stock.Seal(ctx, sale, 1, true); err != nil {
				t.Fatal(err)
			}
			if err := stock.Preheat(ctx, domain.Load{Sale: sale, Epoch: 1, Gate: gate, Total: 5, Fence: 1}); err != nil {
				t.Fatal(err)
			}
			claim := domain.Claim{Order: domain.NewOrderID(sale, "x"), Buyer: "b", Request: "r", Quantity: 2}
			if _, err := stock.Reserve(ctx, sale, []domain.Claim{claim}); err != nil {
				t.Fatal(err)
			}
		}
		for range 2 {
			if err := stock.Erase(ctx, one, 1); err != nil {
				t.Fatal(err)
			}
			for table, want := range map[string]int{"hot_sales": 1, "hot_holds": 1, "hot_requests": 1, "hot_buyers": 1, "hot_intents": 1} {
				var rows int
				if err := s.pools[0].QueryRow("SELECT COUNT(*) FROM " + table).Scan(&rows); err != nil || rows != want {
					t.Errorf("%s has %d rows, %v; want %d", table, rows, err, want)
				}
			}
		}
	})
}
