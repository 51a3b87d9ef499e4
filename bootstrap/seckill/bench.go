package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"seckill/bootstrap"
	"seckill/bootstrap/seckill/bench"
	"seckill/domain"
)

// errWrong is the exit code 1 of a bench in which a strategy sold wrongly.
var errWrong = errors.New("a strategy did not sell exactly its stock")

func benchCommand() *cobra.Command {
	var (
		file, json string
		plan       bench.Config
		settings   *pflag.FlagSet
	)
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Compare the deduction strategies on your own Redis and database",
		Long: `Compare the deduction strategies side by side, in one run on the configured Redis
and database. What is compared is the hot store's port itself: no HTTP, no queue's
consumer.

The timed part: --callers callers grab one unit each time, every grab for another
buyer and under a new order id, without a request id, on a sale that does not sell
out. Every grab that counts wins: refusals are cheap and would hide what a grab
costs. It lasts --budget or --grabs, and is done --rounds times, round by round over
all strategies; the median round counts. Calls that have no answer after twice the
budget are cut off and counted as errors.

The check: up to as many callers grab from --stock units (a slow strategy: from as
many as it sells in --budget) until each has heard that the sale is sold out. What is then
left is stranded: sold out was said too early. Then one caller takes what is left.
Exactly the stock must be accepted in the end. Exit 1 otherwise.

limit is the script of "lua" driven straight, with full batches and two calls at a
time. persist is orders, quotas and stock row going into the ledger, one and 500
orders in a transaction, one transaction after the other.

Without a configured Redis (redis.addrs) what needs it is skipped; without a
configured database a SQLite file in a temporary directory is used. The run has keys
and activities of its own and removes them: use it on a production server only if
you can spare the load.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkBench(plan); err != nil {
				return err
			}
			config, remove, err := localConfig(file, settings)
			if err != nil {
				return err
			}
			defer remove()
			out, closeOut, err := openFigures(cmd, json)
			if err != nil {
				return err
			}
			defer closeOut()
			if bootstrap.Configured(file, settings, "redis.addrs") {
				// How long a strategy keeps its callers waiting is what is measured.
				config.Redis.PoolWait, config.Redis.Timeout = max(config.Redis.PoolWait, 5*time.Second), max(config.Redis.Timeout, 5*time.Second)
				config.Redis.GrabTimeout = config.Redis.Timeout
				redis := config.RedisConfig()
				plan.Redis = &redis
			}
			bootstrap.TuneGC(config) // as the service has it
			plan.Ledger = config.LedgerConfig()
			plan.Prefix = "seckill-bench-" + strings.ToLower(rand.Text()[:12])
			plan.First = domain.ActivityID(time.Now().UnixMilli())
			return compare(cmd.Context(), plan, out)
		},
	}
	flags := cmd.Flags()
	flags.StringSliceVar(&plan.Only, "strategies", nil, "what to compare, of "+strings.Join(bench.Names(), ", ")+"; none: all")
	flags.IntVar(&plan.Callers, "callers", 1000, "callers at the same time; 1 to 10000")
	flags.Int64Var(&plan.Stock, "stock", 5000, "units in the check for overselling; 1 to 1000000")
	flags.Int64Var(&plan.Grabs, "grabs", 200_000, "bound of the grabs in one timed part; about 300 bytes of Redis memory each; 1 to 10000000")
	flags.DurationVar(&plan.Budget, "budget", 1500*time.Millisecond, "bound of one timed part; 10ms to 10m")
	flags.IntVar(&plan.Rounds, "rounds", 3, "timed parts of each strategy, of which the median counts; 1 to 100")
	figuresFlag(cmd, &json)
	configFlag(cmd, &file)
	settings = settingFlags(flags, "addr", "admin-addr", "admin-token", "auth", "accept", "accept-wait", "consumers", "batch", "payment-window",
		"expire-every", "relay-every", "reconcile-every", "reconcile-repair", "shutdown-timeout", "redis-prefix")
	return cmd
}

func checkBench(plan bench.Config) error {
	for _, name := range plan.Only {
		if !slices.Contains(bench.Names(), name) {
			return domain.Invalid("--strategies", "must be some of %s", strings.Join(bench.Names(), ", "))
		}
	}
	for _, check := range []struct {
		ok      bool
		flag    string
		problem string
	}{
		{plan.Callers >= 1 && plan.Callers <= 10_000, "--callers", "must be from 1 to 10000"},
		{plan.Stock >= 1 && plan.Stock <= 1_000_000, "--stock", "must be from 1 to 1000000"},
		{plan.Grabs >= 1 && plan.Grabs <= 10_000_000, "--grabs", "must be from 1 to 10000000"},
		{plan.Budget >= 10*time.Millisecond && plan.Budget <= 10*time.Minute, "--budget", "must be from 10ms to 10m"},
		{plan.Rounds >= 1 && plan.Rounds <= 100, "--rounds", "must be from 1 to 100"},
	} {
		if !check.ok {
			return domain.Invalid(check.flag, "%s", check.problem)
		}
	}
	return nil
}

// compare runs the benchmark and says what it found.
func compare(ctx context.Context, plan bench.Config, out output) error {
	progress := newProgress(os.Stderr)
	plan.Watch = progress
	results, err := bench.Run(ctx, plan)
	progress.end()
	if err := errors.Join(printBench(out.text, results), out.figures(results)); err != nil {
		return err
	}
	if err == nil && len(results.Findings) > 0 {
		err = errWrong
	}
	return err
}

// barWidth is the longest bar of the plot, in characters.
const barWidth = 30

func printBench(to io.Writer, results bench.Results) error {
	fastest := results.Limit.PerSecond
	for _, r := range results.Results {
		fastest = max(fastest, r.PerSecond)
	}
	bar := func(n float64) string { return strings.Repeat("█", int(n/max(fastest, 1)*barWidth+0.5)) }
	t := table.NewWriter()
	t.SetStyle(table.StyleLight)
	t.SetTitle("Winning grabs per second, and a check for overselling")
	t.AppendHeader(table.Row{"strategy", "mode", "per second", "", "p50 ms", "p99 ms", "errors", "stock", "accepted", "oversold", "stranded"})
	for _, r := range results.Results {
		t.AppendRow(table.Row{
			r.Strategy, r.Mode, fmt.Sprintf("%.0f", r.PerSecond), bar(r.PerSecond), fmt.Sprintf("%.2f", r.P50Ms),
			fmt.Sprintf("%.2f", r.P99Ms), r.Errors, r.Stock, r.Accepted, r.Oversold, r.FalseSoldOut,
		})
	}
	if limit := results.Limit.PerSecond; limit > 0 {
		t.AppendRow(table.Row{"limit", "full batches", fmt.Sprintf("%.0f", limit), bar(limit)})
	}
	right := func(names ...string) (list []table.ColumnConfig) {
		for _, name := range names {
			list = append(list, table.ColumnConfig{Name: name, Align: text.AlignRight})
		}
		return list
	}
	t.SetColumnConfigs(right("per second", "p50 ms", "p99 ms"))
	p := table.NewWriter()
	p.SetStyle(table.StyleLight)
	p.SetTitle("Orders into the ledger")
	p.AppendHeader(table.Row{"database", "batch", "per second"})
	for _, r := range results.Persist {
		p.AppendRow(table.Row{r.Database, r.Batch, fmt.Sprintf("%.0f", r.PerSecond)})
	}
	p.SetColumnConfigs(right("per second"))
	words := []string{t.Render(), p.Render()}
	for _, line := range results.Skipped {
		words = append(words, "skipped: "+line)
	}
	for _, line := range results.Findings {
		words = append(words, "WRONG: "+line)
	}
	_, err := fmt.Fprintln(to, strings.Join(words, "\n"))
	return err
}
