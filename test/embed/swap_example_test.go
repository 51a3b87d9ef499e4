package shop_test

import (
	"context"
	"fmt"
	"os"

	"go.uber.org/fx"

	"seckill/application"
	"seckill/domain"
)

// members is a Stock that lets only members grab. Everything else is the
// engine's own hot store.
type members struct {
	domain.Stock
	names map[domain.BuyerID]bool
}

func (m members) Reserve(ctx context.Context, sale domain.SaleID, claims []domain.Claim) ([]domain.Outcome, error) {
	for _, claim := range claims {
		if !m.names[claim.Buyer] {
			return nil, domain.Invalid("userId", "is no member")
		}
	}
	return m.Stock.Reserve(ctx, sale, claims)
}

// covers O7
func Example_swapAnAdapter() {
	folder, err := os.MkdirTemp("", "shop-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(folder)
	engine, app, err := start(folder, fx.Decorate(func(stock domain.Stock) domain.Stock {
		return members{Stock: stock, names: map[domain.BuyerID]bool{"alice": true}}
	}))
	if err != nil {
		panic(err)
	}
	ctx := context.Background()
	defer app.Stop(ctx)

	sale, err := openSale(ctx, engine)
	if err != nil {
		panic(err)
	}
	outcome, err := engine.Grab(ctx, application.GrabRequest{Sale: sale, Buyer: "alice"})
	fmt.Println("alice:", outcome.Verdict, err)
	_, err = engine.Grab(ctx, application.GrabRequest{Sale: sale, Buyer: "mallory"})
	fmt.Println("mallory:", err)

	// Output:
	// alice: accepted <nil>
	// mallory: grab: userId: is no member
}
