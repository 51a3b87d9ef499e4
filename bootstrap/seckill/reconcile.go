package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"go.uber.org/fx"

	"seckill/application"
	"seckill/bootstrap"
	"seckill/domain"
)

// errDrift is the exit code 1 of a reconcile that found something.
var errDrift = errors.New("not balanced")

func reconcileCommand() *cobra.Command {
	var (
		file     string
		activity int64
		repair   bool
	)
	cmd := &cobra.Command{
		Use:   "reconcile",
		Short: "Compare hot store, queue and ledger; exit 1 when they disagree",
		Long: `Compare hot store, queue and ledger of one activity, or of all, and print the
account of each sale in units. Exit 1 when one is not balanced. With --repair,
put it right and print what is left.

The memory hot store lives inside the serving process: there, use the
operator's route instead.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			config, err := bootstrap.Load(file, cmd.Flags(), nil)
			if err != nil {
				return err
			}
			if config.Stock == "memory" {
				return domain.Invalid("stock", "is memory: reconcile inside the serving process, by POST /api/admin/activities/{id}/reconcile")
			}
			config.Log.Level = "error"
			return reconcile(cmd.Context(), config, domain.ActivityID(activity), repair, cmd.OutOrStdout())
		},
	}
	configFlag(cmd, &file)
	cmd.Flags().Int64Var(&activity, "activity", 0, "the activity; 0: all that are preheated")
	cmd.Flags().BoolVar(&repair, "repair", false, "put right what disagrees")
	bootstrap.AddFlags(cmd.Flags(), "stock", "database", "redis.addrs", "redis.cluster", "redis.master", "redis.username",
		"redis.password", "redis.db", "redis.prefix", "redis.partitions", "redis.timeout", "lock.scope")
	return cmd
}

func reconcile(ctx context.Context, config bootstrap.Config, id domain.ActivityID, repair bool, out io.Writer) error {
	var engine *application.Engine
	app := fx.New(
		fx.Supply(config, bootstrap.NewLogger(config, os.Stderr)),
		fx.NopLogger,
		bootstrap.Stores,
		fx.Populate(&engine),
	)
	if err := app.Err(); err != nil {
		return plain(err)
	}
	if err := app.Start(ctx); err != nil {
		return plain(err)
	}
	defer func() { _ = app.Stop(context.WithoutCancel(ctx)) }()

	reports, err := reconcileReports(ctx, engine, id, repair)
	return errors.Join(err, printReports(out, reports))
}

func reconcileReports(ctx context.Context, engine *application.Engine, id domain.ActivityID, repair bool) ([]application.Report, error) {
	if id == 0 {
		return engine.ReconcileAll(ctx, repair, true)
	}
	report, err := engine.Reconcile(ctx, id, repair)
	return []application.Report{report}, err
}

func printReports(out io.Writer, reports []application.Report) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "sale\ttotal\tavailable\theld\tsold\tqueued\tpending\tpaid\tdrift\tbalanced\trepairs\tproblem\t")
	balanced := true
	for _, report := range reports {
		balanced = balanced && report.Balanced()
		for _, s := range report.Sales {
			fmt.Fprintf(table, "%s\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%t\t%d\t%s\t\n", s.Sale, s.Level.Total, s.Level.Available,
				s.Level.Held, s.Level.Sold, s.Level.Queued, s.Ledger.Pending, s.Ledger.Paid, s.Drift, s.Balanced, len(s.Repairs), s.Problem)
		}
	}
	if err := table.Flush(); err != nil {
		return err
	}
	if !balanced {
		return errDrift
	}
	return nil
}
