package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"seckill/bootstrap"
)

func migrateCommand() *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use:   "migrate",
		Short: "Apply the versioned migrations to the database",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			config, err := bootstrap.Load(file, cmd.Flags(), nil)
			if err != nil {
				return err
			}
			if err := bootstrap.Migrate(cmd.Context(), config, bootstrap.NewLogger(config, os.Stderr)); err != nil {
				return err
			}
			fmt.Fprintln(cmd.OutOrStdout(), "the database is up to date")
			return nil
		},
	}
	configFlag(cmd, &file)
	bootstrap.AddFlags(cmd.Flags(), "database", "log.level", "log.format")
	return cmd
}
