// Load measures the speed of the whole program: HTTP, hot store and ledger.
//
//	go run ./test/load http    the program beside a bare gin handler
//	go run ./test/load idle    one caller alone, with and without coalescing
//	go run ./test/load growth  what stays the same while sales, buyers and orders grow
//
// It starts its own redis-server (AOF everysec) and mariadbd (every commit
// flushed) in temporary folders and takes them away again. Servers, program and
// load generator share the machine, so only ratios of one run mean something;
// everything that is compared is therefore measured in turns, and medians are
// printed. Every measurement has a bound in time or count.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"seckill/test/harness"
)

type command struct {
	name  string
	flags func(*flag.FlagSet) func(context.Context) error
}

var commands = []command{
	{"http", httpCommand},
	{"idle", idleCommand},
	{"growth", growthCommand},
	// The two below are processes that the others start.
	{"bare", bareCommand},
	{"generate", generateCommand},
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "load:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	defer harness.CleanUp()
	if len(args) > 0 {
		for _, c := range commands {
			if c.name == args[0] {
				flags := flag.NewFlagSet(c.name, flag.ExitOnError)
				measure := c.flags(flags)
				if err := flags.Parse(args[1:]); err != nil {
					return err
				}
				return measure(ctx)
			}
		}
	}
	return fmt.Errorf("use: load http | idle | growth [flags]; load http -h lists them")
}

// writeJSON writes a result to a file, or nowhere if none is named.
func writeJSON(path string, result any) error {
	if path == "" {
		return nil
	}
	data, err := json.MarshalIndent(result, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(data, '\n'), 0o644)
}
