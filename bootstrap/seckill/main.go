// Command seckill is the flash-sale engine as a program.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
	"go.uber.org/fx"
)

func main() { os.Exit(execute(command())) }

// execute runs the command line and returns the exit code.
func execute(root *cobra.Command) int {
	// Never stopped: a second signal while draining must not cut the draining short.
	ctx, _ := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	if err := root.ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "seckill:", err)
		return 1
	}
	return 0
}

// command is the whole command line. Engine are more options for the engine that
// drill starts by itself.
func command(engine ...fx.Option) *cobra.Command {
	root := &cobra.Command{
		Use:           "seckill",
		Short:         "A flash-sale engine: one atomic step decides each grab, the ledger cannot be oversold",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.AddCommand(demoCommand(), serveCommand(), migrateCommand(), reconcileCommand(),
		drillCommand(engine...), benchCommand())
	return root
}
