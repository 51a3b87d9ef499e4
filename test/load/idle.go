package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"time"
)

func idleCommand(flags *flag.FlagSet) func(context.Context) error {
	rounds := flags.Int("rounds", 15, "turns of each kind; medians are printed")
	file := flags.String("json", "", "file to write the figures to")
	return func(ctx context.Context) error {
		if *rounds < 1 || *rounds > 100 {
			return errors.New("rounds are 1 to 100")
		}
		w, err := openWorld()
		if err != nil {
			return err
		}
		figures, err := measureIdle(ctx, w, *rounds)
		if err := errors.Join(err, w.close()); err != nil {
			return err
		}
		fmt.Printf("\none caller alone, medians of %d turns\n\n%-16s %8s %8s\n", *rounds, "", "p50 µs", "p99 µs")
		fmt.Printf("%-16s %8.0f %8.0f\n%-16s %8.0f %8.0f\n%-16s %8.3f %8.3f\n", "coalescing off", figures.OffP50, figures.OffP99,
			"coalescing on", figures.OnP50, figures.OnP99, "ratio", figures.P50, figures.P99)
		return writeJSON(*file, figures)
	}
}

// idleFigures are microseconds, and ratios of on to off turn by turn.
type idleFigures struct {
	OffP50 float64 `json:"offP50Micros"`
	OffP99 float64 `json:"offP99Micros"`
	OnP50  float64 `json:"onP50Micros"`
	OnP99  float64 `json:"onP99Micros"`
	P50    float64 `json:"p50Ratio"`
	P99    float64 `json:"p99Ratio"`
}

// measureIdle has one caller grab from two nodes in turns, on the same stores:
// one coalesces, the other makes a call for each grab.
func measureIdle(ctx context.Context, w *world, rounds int) (idleFigures, error) {
	on, err := w.serve("on")
	if err != nil {
		return idleFigures{}, err
	}
	off, err := w.serve("off", "SECKILL_REDIS_BATCH=1")
	if err != nil {
		return idleFigures{}, err
	}
	if err := on.openSale(ctx, 1001, 10_000_000); err != nil {
		return idleFigures{}, err
	}
	var buyer int64
	turn := func(s *server) (r result, err error) {
		r, err = generate(plan{
			Addr: s.addr, Connections: 1, For: 700 * time.Millisecond, Activity: 1001, SKU: sku, Buyer: buyer, Want: "accepted",
		}, func() {})
		buyer += r.Requests + 1
		if err == nil && r.Wrong > 0 {
			err = fmt.Errorf("%d answers are wrong, for example %s", r.Wrong, r.Example)
		}
		return r, err
	}
	var onP50, onP99, offP50, offP99, p50, p99 []float64
	for i := range rounds + 1 {
		// Each is first in every other turn.
		first, second := on, off
		if i%2 == 1 {
			first, second = off, on
		}
		a, err := turn(first)
		if err != nil {
			return idleFigures{}, err
		}
		b, err := turn(second)
		if err != nil {
			return idleFigures{}, err
		}
		if i == 0 {
			continue // to get warm
		}
		if i%2 == 1 {
			a, b = b, a
		}
		onP50, onP99 = append(onP50, micros(a.P50)), append(onP99, micros(a.P99))
		offP50, offP99 = append(offP50, micros(b.P50)), append(offP99, micros(b.P99))
		p50, p99 = append(p50, micros(a.P50)/micros(b.P50)), append(p99, micros(a.P99)/micros(b.P99))
	}
	return idleFigures{
		OnP50: median(onP50), OnP99: median(onP99), OffP50: median(offP50), OffP99: median(offP99),
		P50: median(p50), P99: median(p99),
	}, nil
}

func micros(d time.Duration) float64 { return float64(d.Microseconds()) }
