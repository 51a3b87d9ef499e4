package shop_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"go.uber.org/fx"

	"seckill/application"
	"seckill/bootstrap"
	"seckill/domain"
)

// start runs an embedded engine: stock in memory, orders in a SQLite file.
func start(folder string, more ...fx.Option) (*application.Engine, *fx.App, error) {
	config := bootstrap.Default()
	config.Stock = "memory"
	config.Accept = application.AcceptCommitted
	config.Database = "sqlite://" + filepath.ToSlash(filepath.Join(folder, "orders.db"))
	quiet := slog.New(slog.DiscardHandler)

	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Second)
	defer cancel()
	if err := bootstrap.Migrate(ctx, config, quiet); err != nil {
		return nil, nil, err
	}
	var engine *application.Engine
	app := fx.New(fx.Supply(config, quiet), fx.NopLogger, bootstrap.Module, fx.Populate(&engine), fx.Options(more...))
	return engine, app, app.Start(ctx)
}

// openSale puts 100 units on sale, one per buyer.
func openSale(ctx context.Context, engine *application.Engine) (domain.SaleID, error) {
	now := time.Now()
	activity := domain.Activity{
		ID: 1001, Name: "Opening day", StartsAt: now.Add(-time.Minute), EndsAt: now.Add(time.Hour),
		PaymentWindow: 30 * time.Minute,
		SKUs:          []domain.SKU{{ID: 2001, Name: "Phone", Price: 9900, Total: 100, PerUserLimit: 1, Segments: 1}},
	}
	if _, err := engine.SaveActivity(ctx, activity); err != nil {
		return domain.SaleID{}, err
	}
	if _, err := engine.Preheat(ctx, activity.ID); err != nil {
		return domain.SaleID{}, err
	}
	_, err := engine.SetState(ctx, activity.ID, "open")
	return activity.Sale(2001), err
}

// covers O7
func Example_grabAndPay() {
	folder, err := os.MkdirTemp("", "shop-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(folder)
	engine, app, err := start(folder)
	if err != nil {
		panic(err)
	}
	ctx := context.Background()
	defer app.Stop(ctx)

	events := make(chan domain.Event, 10)
	engine.Subscribe(func(_ context.Context, event domain.Event) error {
		events <- event
		return nil
	})

	sale, err := openSale(ctx, engine)
	if err != nil {
		panic(err)
	}
	outcome, err := engine.Grab(ctx, application.GrabRequest{Sale: sale, Buyer: "alice"})
	if err != nil {
		panic(err)
	}
	fmt.Println("grab:", outcome.Verdict)

	again, err := engine.Grab(ctx, application.GrabRequest{Sale: sale, Buyer: "alice"})
	if err != nil {
		panic(err)
	}
	fmt.Println("another one:", again.Verdict)

	order, err := engine.Pay(ctx, outcome.Order, "alice", "payment-1")
	if err != nil {
		panic(err)
	}
	fmt.Println("order:", order.Status)

	for range 2 {
		select {
		case event := <-events:
			fmt.Println("event:", event.Order.Status)
		case <-time.After(10 * time.Second):
			panic("no event")
		}
	}
	report, err := engine.Report(ctx, 1001)
	if err != nil {
		panic(err)
	}
	level := report.Sales[0].Level
	fmt.Println("available", level.Available, "held", level.Held, "sold", level.Sold, "balanced", report.Balanced())

	// Output:
	// grab: accepted
	// another one: limit_reached
	// order: paid
	// event: pending_payment
	// event: paid
	// available 99 held 0 sold 1 balanced true
}
