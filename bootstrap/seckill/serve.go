package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"os"

	"github.com/spf13/cobra"
	"go.uber.org/fx"
	"go.uber.org/fx/fxevent"

	"seckill/bootstrap"
)

func serveCommand() *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run the service",
		Long: `Run the service on the configured stores.

Every setting can come from the file, from the environment or from a flag; flag
beats environment beats file. The database must be migrated (seckill migrate).
SIGTERM drains and exits 0.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			config, err := bootstrap.Load(file, cmd.Flags(), nil)
			if err != nil {
				return err
			}
			log := bootstrap.NewLogger(config, os.Stderr)
			for _, name := range bootstrap.UnknownEnv(os.Environ()) {
				log.Warn("this environment variable is no setting", "name", name)
			}
			if config.Admin.Token == "" {
				config.Admin.Token = rand.Text()
				log.Warn("admin.token is not set: this one holds until the program ends", "token", config.Admin.Token)
			}
			return run(cmd.Context(), config, log, bootstrap.HTTP)
		},
	}
	configFlag(cmd, &file)
	bootstrap.AddFlags(cmd.Flags())
	return cmd
}

func configFlag(cmd *cobra.Command, file *string) {
	cmd.Flags().StringVar(file, "config", "", "configuration file (YAML)")
}

// run starts the engine with more options, waits until ctx ends or a part of it
// fails, and stops it within the configured time.
func run(ctx context.Context, config bootstrap.Config, log *slog.Logger, more ...fx.Option) error {
	app, err := start(ctx, config, log, more...)
	if err != nil {
		return err
	}
	code := 0
	select {
	case <-ctx.Done():
	case signal := <-app.Wait():
		code = signal.ExitCode
	}
	log.Info("draining", "at_most", config.ShutdownTimeout.String())
	if err := stop(ctx, config, app); err != nil {
		return err
	}
	if code != 0 {
		return fmt.Errorf("stopped with code %d", code)
	}
	return nil
}

// start starts the engine with more options. The caller stops it.
func start(ctx context.Context, config bootstrap.Config, log *slog.Logger, more ...fx.Option) (*fx.App, error) {
	app := fx.New(
		fx.Supply(config, log),
		fx.WithLogger(func() fxevent.Logger { return quiet{} }),
		fx.StopTimeout(config.ShutdownTimeout),
		bootstrap.Module,
		fx.Options(more...),
	)
	if err := app.Err(); err != nil {
		return nil, plain(err)
	}
	startCtx, cancel := context.WithTimeout(ctx, app.StartTimeout())
	defer cancel()
	if err := app.Start(startCtx); err != nil {
		return nil, plain(err)
	}
	return app, nil
}

// stop drains and ends the engine, within the configured time, also when ctx
// has ended.
func stop(ctx context.Context, config bootstrap.Config, app *fx.App) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), config.ShutdownTimeout)
	defer cancel()
	if err := app.Stop(ctx); err != nil {
		return fmt.Errorf("shut down: %w", err)
	}
	return nil
}
