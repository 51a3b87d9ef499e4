package main

import (
	"context"
	"errors"
	"flag"
)

func idleCommand(flags *flag.FlagSet) func(context.Context) error {
	return func(ctx context.Context) error { return errors.New("not yet") }
}

func growthCommand(flags *flag.FlagSet) func(context.Context) error {
	return func(ctx context.Context) error { return errors.New("not yet") }
}
