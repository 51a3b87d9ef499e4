// Command run is the project's test command. It needs only Go, git and apt-get
// or brew: it installs the servers and the C compiler that the tests want,
// checks formatting, vets and tests everything with the race detector.
//
//	go run ./test/run                     everything
//	go run ./test/run -short              without the long tests
//	go run ./test/run -- -run TestBuy -v  with these arguments to go test
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"time"

	"seckill/test/harness"
)

func main() {
	short := flag.Bool("short", false, "leave out the long tests")
	flag.Parse()
	extra := flag.Args()
	if *short {
		extra = append([]string{"-short"}, extra...)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := runAll(ctx, extra); err != nil {
		fmt.Println("FAIL:", err)
		os.Exit(1)
	}
}

func runAll(ctx context.Context, extra []string) error {
	begin := time.Now()
	root, err := harness.Root()
	if err != nil {
		return err
	}
	steps, err := plan(root, extra)
	if err != nil {
		return err
	}
	for i, s := range steps {
		fmt.Printf("=== %d/%d %s\n", i+1, len(steps), s.name)
		start := time.Now()
		err := s.do(ctx)
		took := time.Since(start).Round(time.Millisecond)
		if err != nil {
			return fmt.Errorf("%s, after %v: %w", s.name, took, err)
		}
		fmt.Printf("--- %d/%d %s: ok (%v)\n", i+1, len(steps), s.name, took)
	}
	fmt.Printf("ok: all %d steps passed in %v\n", len(steps), time.Since(begin).Round(time.Second))
	return nil
}
