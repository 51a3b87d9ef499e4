package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.uber.org/fx"

	"seckill/bootstrap"
	"seckill/bootstrap/seckill/drill"
	"seckill/domain"
)

// errDisagree is the exit code 1 of a drill that found something.
var errDisagree = errors.New("the numbers do not agree")

func drillCommand(engine ...fx.Option) *cobra.Command {
	var (
		file, admin, json string
		targets           []string
		plan              drill.Config
		settings          *pflag.FlagSet
	)
	cmd := &cobra.Command{
		Use:   "drill",
		Short: "Rehearse a sale: preheat, load, reconcile; exit 1 unless every number agrees",
		Long: `Rehearse a sale over HTTP: make an activity, preheat and open it, send a crowd,
wait until every accepted order is in the ledger, reconcile, and compare every
number with every other that says the same. Exit 0 when all agree; exit 1, with a
line for each that does not, otherwise.

With --target the sale runs on a service that is already running (its operators'
listener is --admin; auth=body). Without, the service starts in this process, on
free loopback ports: on the configured stores (the database must be migrated), or,
where none is configured, in memory and on a SQLite file in a temporary directory.

The first buyers ask twice at once, so that the limit is tested; then all others
ask, many more than there is stock; then all ask again. Nobody may hear "sold out"
while units are left: someone who asks later must not get one.

Latencies: with --rate the load is open: each request has its moment, and its
latency counts from there, however long the service makes it wait. Without, the
load is closed: each caller waits for its answer before it asks again, so a service
that stalls is asked less. The corrected latencies make up for that as HdrHistogram
does, with the median as the usual interval.

At the end the activity is closed, its orders are cancelled (which must bring every
unit back) and it is archived; cancelled orders stay in the ledger. With --keep, or
when a number does not agree, orders and hot keys stay.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkDrill(&plan); err != nil {
				return err
			}
			out, closeOut, err := openFigures(cmd, json)
			if err != nil {
				return err
			}
			defer closeOut()
			token := "SECKILL_ADMIN_TOKEN"
			if len(targets) > 0 {
				if plan.Targets, plan.Admin, err = baseURLs(targets, admin); err != nil {
					return err
				}
				if plan.Token, _ = settings.GetString("admin-token"); plan.Token == "" {
					plan.Token = os.Getenv(token)
				}
				if plan.Token == "" {
					return domain.Invalid("--admin-token", "is missing: give the operators' token of the service (%s)", token)
				}
				return rehearse(cmd.Context(), plan, out)
			}
			config, remove, err := localConfig(file, settings)
			if err != nil {
				return err
			}
			defer remove()
			return drillHere(cmd.Context(), config, plan, out, engine)
		},
	}
	flags := cmd.Flags()
	flags.StringSliceVar(&targets, "target", nil, "base URL of a running service's buyers' listener; several are taken in turn; none: start a service here")
	flags.StringVar(&admin, "admin", "http://127.0.0.1:8081", "base URL of its operators' listener")
	flags.Int64Var(&plan.Activity, "activity", 0, "id of the activity to make; 0: one made from the time")
	flags.Int64Var(&plan.Stock, "stock", 1000, "units on sale, one per buyer; 1 to 1000000")
	flags.Int64Var(&plan.Buyers, "buyers", 0, "buyers; 0: five times the stock")
	flags.Int64Var(&plan.Requests, "requests", 0, "grabs to send; 0: twice the buyers; up to 10000000")
	flags.IntVar(&plan.Callers, "concurrency", 200, "grabs at the same time; 1 to 10000")
	flags.Float64Var(&plan.Rate, "rate", 0, "grabs per second, each at its own moment (open loop); 0: as fast as answers come (closed loop)")
	flags.IntVar(&plan.Retries, "retries", 2, "how often a grab without an answer, or with 503, is sent again under its request id; 0 to 100")
	flags.Int64Var(&plan.AllowErrors, "allow-errors", 0, "grabs that may stay without an answer")
	flags.DurationVar(&plan.For, "max-time", 5*time.Minute, "bound of the load; up to 1h")
	flags.DurationVar(&plan.Settle, "settle", time.Minute, "bound of the way of all orders into the ledger; up to 1h")
	flags.BoolVar(&plan.Keep, "keep", false, "leave the orders and the hot keys as they are")
	figuresFlag(cmd, &json)
	configFlag(cmd, &file)
	settings = settingFlags(flags, "addr", "admin-addr", "auth", "reconcile-every")
	return cmd
}

// settingFlags adds the settings' flags, but for some and for those whose name
// is taken: "stock" is the units on sale here, and the hot store is set by the
// file or the environment. It returns the settings' own flags.
func settingFlags(flags *pflag.FlagSet, without ...string) *pflag.FlagSet {
	settings := pflag.NewFlagSet("settings", pflag.ContinueOnError)
	bootstrap.AddFlags(settings)
	settings.VisitAll(func(f *pflag.Flag) {
		if !slices.Contains(without, f.Name) && flags.Lookup(f.Name) == nil {
			flags.AddFlag(f)
		}
	})
	return settings
}

// checkDrill fills what depends on another figure, and names the first that is
// out of bounds.
func checkDrill(plan *drill.Config) error {
	if plan.Activity == 0 {
		plan.Activity = time.Now().UnixMilli()
	}
	if plan.Buyers == 0 {
		plan.Buyers = 5 * plan.Stock
	}
	if plan.Requests == 0 {
		plan.Requests = 2 * plan.Buyers
	}
	for _, check := range []struct {
		ok      bool
		flag    string
		problem string
	}{
		{plan.Activity >= 1 && plan.Activity <= domain.MaxInteger, "--activity", "must be an integer from 1 to 2^53-1"},
		{plan.Stock >= 1 && plan.Stock <= 1_000_000, "--stock", "must be from 1 to 1000000"},
		{plan.Buyers >= 1 && plan.Buyers <= 10_000_000, "--buyers", "must be from 1 to 10000000"},
		{plan.Requests >= 1 && plan.Requests <= 10_000_000, "--requests", "must be from 1 to 10000000"},
		{plan.Callers >= 1 && plan.Callers <= 10_000, "--concurrency", "must be from 1 to 10000"},
		{plan.Rate >= 0 && plan.Rate <= 1_000_000, "--rate", "must be from 0 to 1000000"},
		{plan.Retries >= 0 && plan.Retries <= 100, "--retries", "must be from 0 to 100"},
		{plan.AllowErrors >= 0, "--allow-errors", "must be 0 or more"},
		{plan.For > 0 && plan.For <= time.Hour, "--max-time", "must be more than 0, up to 1h"},
		{plan.Settle > 0 && plan.Settle <= time.Hour, "--settle", "must be more than 0, up to 1h"},
	} {
		if !check.ok {
			return domain.Invalid(check.flag, "%s", check.problem)
		}
	}
	return nil
}

// baseURLs checks the addresses of a running service.
func baseURLs(targets []string, admin string) ([]string, string, error) {
	if len(targets) > 64 {
		return nil, "", domain.Invalid("--target", "must be at most 64")
	}
	clean := make([]string, 0, len(targets)+1)
	for i, text := range append(targets[:len(targets):len(targets)], admin) {
		parsed, err := url.Parse(text)
		if err != nil || parsed.Scheme != "http" && parsed.Scheme != "https" || parsed.Host == "" {
			return nil, "", domain.Invalid([]string{"--target", "--admin"}[i/len(targets)], "must be a URL such as http://127.0.0.1:8080")
		}
		clean = append(clean, strings.TrimRight(text, "/"))
	}
	return clean[:len(targets)], clean[len(targets)], nil
}

// drillHere starts the service in this process and rehearses on it.
func drillHere(ctx context.Context, config bootstrap.Config, plan drill.Config, out output, engine []fx.Option) error {
	bound := &bootstrap.Bound{}
	app, err := start(ctx, config, bootstrap.NewLogger(config, os.Stderr),
		append(engine[:len(engine):len(engine)], bootstrap.HTTP, fx.Populate(&bound))...)
	if err != nil {
		return err
	}
	plan.Targets, plan.Admin, plan.Token = []string{"http://" + bound.Buyers}, "http://"+bound.Admin, config.Admin.Token
	err = rehearse(ctx, plan, out)
	return errors.Join(err, stop(ctx, config, app))
}

// localConfig is the configuration of a service that only this process uses. A
// database that nobody named is a temporary one, in a folder that remove
// removes; so is, then, a hot store.
func localConfig(file string, flags *pflag.FlagSet) (config bootstrap.Config, remove func(), err error) {
	fixed := map[string]any{
		"addr": "127.0.0.1:0", "admin.addr": "127.0.0.1:0", "auth": "body",
		// Nothing is to be put right behind the drill's back.
		"reconcile_every": "0s",
	}
	own := !bootstrap.Configured(file, flags, "database")
	remove = func() {}
	if own {
		folder, err := os.MkdirTemp("", "seckill-")
		if err != nil {
			return config, nil, err
		}
		remove = func() { _ = os.RemoveAll(folder) }
		defer func() {
			if err != nil {
				remove()
			}
		}()
		fixed["database"] = "sqlite://" + filepath.ToSlash(filepath.Join(folder, "seckill.db"))
		if !bootstrap.Configured(file, flags, "stock") {
			fixed["stock"] = "memory"
		}
	}
	if !bootstrap.Configured(file, flags, "log.level") {
		fixed["log.level"] = "error"
	}
	if config, err = bootstrap.Load(file, flags, fixed); err != nil {
		return config, remove, err
	}
	if config.Admin.Token == "" {
		config.Admin.Token = rand.Text()
	}
	if own {
		err = bootstrap.Migrate(context.Background(), config, slog.New(slog.DiscardHandler))
	}
	return config, remove, err
}

// rehearse runs the drill and says what it found.
func rehearse(ctx context.Context, plan drill.Config, out output) error {
	progress := newProgress(os.Stderr)
	plan.Watch = progress
	result, err := drill.Run(ctx, plan)
	progress.end()
	if err := errors.Join(printDrill(out.text, result, err), out.figures(result.Figures())); err != nil {
		return err
	}
	if err == nil && len(result.Findings) > 0 {
		err = errDisagree
	}
	return err
}

func printDrill(to io.Writer, result *drill.Result, failed error) error {
	f := result.Figures()
	t := table.NewWriter()
	t.SetStyle(table.StyleLight)
	t.SetTitle("Drill: activity %d, %d units, %d buyers", f.ActivityID, result.Config.Stock, result.Config.Buyers)
	t.AppendRows([]table.Row{
		{"requests", f.Requests, "total", f.Total},
		{"accepted", f.Accepted, "available", f.Available},
		{"sold out", f.SoldOut, "held", f.Held},
		{"limit reached", f.LimitReached, "sold", f.Sold},
		{"otherwise refused", f.Rejected, "orders in the ledger", result.Account.Ledger.Pending + result.Account.Ledger.Paid},
		{"errors", f.Errors, "accepted orders found", f.Orders},
		{"sent again", f.Retried, "longest queue", f.QueuePeak},
		{"answers per second", fmt.Sprintf("%.0f", f.PerSecond), "balanced", f.Balanced},
	})
	latencies := table.NewWriter()
	latencies.SetStyle(table.StyleLight)
	latencies.SetTitle("Latency in ms, %s loop", f.Loop)
	head, measured, corrected := table.Row{""}, table.Row{"measured"}, table.Row{"corrected"}
	for _, percent := range []float64{50, 90, 95, 99, 99.9, 100} {
		a, b := result.Percentile(percent)
		head = append(head, fmt.Sprintf("p%g", percent))
		measured, corrected = append(measured, fmt.Sprintf("%.2f", a)), append(corrected, fmt.Sprintf("%.2f", b))
	}
	head[len(head)-1] = "max"
	latencies.AppendHeader(head)
	if f.Loop == "open" {
		measured[0] = "from the due moment"
		latencies.AppendRow(measured)
	} else {
		latencies.AppendRows([]table.Row{measured, corrected})
	}
	verdict := "Every number agrees."
	switch {
	case failed != nil:
		verdict = "The drill was not carried through."
	case len(result.Findings) > 0:
		verdict = "NOT ALL NUMBERS AGREE:\n  " + strings.Join(result.Findings, "\n  ")
	}
	_, err := fmt.Fprintf(to, "%s\n%s\n%s\n", t.Render(), latencies.Render(), verdict)
	return err
}
