package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"go.uber.org/fx"

	"seckill/application"
	"seckill/bootstrap"
	"seckill/domain"
)

// The sale of the demo.
const (
	demoActivity = domain.ActivityID(1001)
	demoSKU      = domain.SKUID(2001)
)

func demoCommand() *cobra.Command {
	var (
		stock int64
		limit int64
		data  string
	)
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Run an embedded engine with an open sale: no server needed",
		Long: `Run an embedded engine, with the stock in memory and the ledger in a SQLite file.
Activity 1001 with SKU 2001 is preheated and open. A buyer is who the request
says. Settings that have no flag here come from the environment as in "serve".`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			folder, remove, err := dataFolder(data)
			if err != nil {
				return err
			}
			defer remove()
			unlock, err := lockFolder(folder)
			if err != nil {
				return err
			}
			defer unlock()
			config, err := demoConfig(cmd, folder)
			if err != nil {
				return err
			}
			if stock < 1 || stock > domain.MaxInteger {
				return domain.Invalid("--stock", "must be an integer from 1 to %d", int64(domain.MaxInteger))
			}
			if limit < 1 || limit > domain.MaxInteger {
				return domain.Invalid("--limit", "must be an integer from 1 to %d", int64(domain.MaxInteger))
			}
			sale := demoSale(config, stock, limit)
			if err := bootstrap.Migrate(cmd.Context(), config, slog.New(slog.DiscardHandler)); err != nil {
				return err
			}
			return run(cmd.Context(), config, bootstrap.NewLogger(config, os.Stderr),
				onStart(func(ctx context.Context, engine *application.Engine) error { return openDemo(ctx, engine, sale) }),
				bootstrap.HTTP,
				onStart(func(ctx context.Context, engine *application.Engine) error {
					there, err := engine.Activity(ctx, sale.ID) // of an earlier start, maybe
					if err != nil {
						return err
					}
					return printHints(cmd.OutOrStdout(), config, there.Activity)
				}))
		},
	}
	flags := cmd.Flags()
	flags.Int64Var(&stock, "stock", 100, "units on sale; only for a new data folder")
	flags.Int64Var(&limit, "limit", 1, "units per buyer; only for a new data folder")
	flags.StringVar(&data, "data", "", "folder that keeps the orders; empty: a temporary one, removed at the end")
	bootstrap.AddFlags(flags, "addr", "admin.addr", "admin.token", "payment_window", "accept", "log.level", "log.format")
	return cmd
}

// onStart has a step done between the modules before it and those after it. It
// is a module itself, since what stands outside of any is wired last.
func onStart(do func(context.Context, *application.Engine) error) fx.Option {
	return fx.Module("demo", fx.Invoke(func(lc fx.Lifecycle, engine *application.Engine) {
		lc.Append(fx.StartHook(func(ctx context.Context) error { return do(ctx, engine) }))
	}))
}

// dataFolder makes the folder of the ledger's file.
func dataFolder(path string) (folder string, remove func(), err error) {
	if path == "" {
		folder, err = os.MkdirTemp("", "seckill-demo-")
		return folder, func() { _ = os.RemoveAll(folder) }, err
	}
	folder, err = filepath.Abs(path)
	if err != nil {
		return "", nil, err
	}
	return folder, func() {}, os.MkdirAll(folder, 0o700)
}

// demoConfig is the configuration as everywhere, but for the stores, and for a
// quiet log unless another is asked for.
func demoConfig(cmd *cobra.Command, folder string) (bootstrap.Config, error) {
	config, err := bootstrap.Load("", cmd.Flags(), map[string]any{
		"stock": "memory", "database": "sqlite://" + filepath.ToSlash(filepath.Join(folder, "seckill.db")),
	})
	if err != nil {
		return bootstrap.Config{}, err
	}
	if _, set := os.LookupEnv("SECKILL_LOG_LEVEL"); !set && !cmd.Flags().Changed("log-level") {
		config.Log.Level = "error"
	}
	if config.Admin.Token == "" {
		config.Admin.Token = rand.Text()
	}
	return config, nil
}

func demoSale(config bootstrap.Config, stock, limit int64) domain.Activity {
	now := time.Now()
	return domain.Activity{
		ID: demoActivity, Name: "Demo", StartsAt: now.Add(-time.Minute), EndsAt: now.AddDate(1, 0, 0),
		PaymentWindow: config.PaymentWindow,
		SKUs:          []domain.SKU{{ID: demoSKU, Name: "Demo phone", Price: 9900, Total: stock, PerUserLimit: limit, Segments: 1}},
	}
}

// openDemo makes the sale and opens it. What the data folder has already is left
// as it is, but for an earlier start that did not get this far.
func openDemo(ctx context.Context, engine *application.Engine, sale domain.Activity) error {
	there, err := engine.Activity(ctx, sale.ID)
	state := there.State
	if errors.Is(err, domain.ErrNotFound) {
		state = domain.Draft
		_, err = engine.SaveActivity(ctx, sale)
	}
	if err == nil && state == domain.Draft {
		state = domain.Ready
		_, err = engine.Preheat(ctx, sale.ID)
	}
	if err == nil && state == domain.Ready {
		_, err = engine.SetState(ctx, sale.ID, "open")
	}
	return err
}

func printHints(out io.Writer, config bootstrap.Config, sale domain.Activity) error {
	sku := sale.SKUs[0]
	_, err := fmt.Fprintf(out, `A sale of %[1]d units is %[9]s: activity %[2]d, SKU %[3]d, %[4]d per buyer, %[5]s to pay.

Grab one:
  curl -i -X POST http://%[6]s/api/seckill/order -H 'Content-Type: application/json' -d '{"activityId":%[2]d,"skuId":%[3]d,"userId":7}'
Ask what became of it, and pay (ORDER is the orderId of the answer):
  curl 'http://%[6]s/api/seckill/order/ORDER?wait=10s' -H 'X-User-Id: 7'
  curl -X POST http://%[6]s/api/seckill/order/ORDER/pay -H 'X-User-Id: 7' -H 'Content-Type: application/json' -d '{"paymentId":"p-1"}'
A crowd of 2000:
  seq 1 2000 | xargs -P 200 -I{} curl -s -o /dev/null -w "%%{http_code}\n" -X POST http://%[6]s/api/seckill/order -H 'Content-Type: application/json' -d '{"activityId":%[2]d,"skuId":%[3]d,"userId":{}}' | sort | uniq -c
The account of every unit:
  curl http://%[7]s/api/admin/activities/%[2]d/report -H 'Authorization: Bearer %[8]s'

Operator token: %[8]s
Ctrl-C ends it.
`, sku.Total, sale.ID, sku.ID, sku.PerUserLimit, sale.PaymentWindow, config.Addr, config.Admin.Addr, config.Admin.Token, sale.State)
	return err
}
