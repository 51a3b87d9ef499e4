package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"time"
)

type growthConfig struct {
	seconds int
	rounds  int
	sales   int
	buyers  int
	grabs   int64
	json    string
}

func growthCommand(flags *flag.FlagSet) func(context.Context) error {
	var config growthConfig
	flags.IntVar(&config.seconds, "seconds", 2, "seconds of each load")
	flags.IntVar(&config.rounds, "rounds", 3, "turns; medians are printed")
	flags.IntVar(&config.sales, "sales", 10_000, "the largest number of sales")
	flags.IntVar(&config.buyers, "buyers", 1_000_000, "the largest number of buyers of one sale")
	flags.Int64Var(&config.grabs, "grabs", 1_000_000, "grabs over which the program's memory is watched; 0: not at all")
	flags.StringVar(&config.json, "json", "", "file to write the figures to")
	return func(ctx context.Context) error {
		if config.seconds < 1 || config.seconds > 60 || config.rounds < 1 || config.rounds > 20 ||
			config.sales < 100 || config.sales > 100_000 || config.buyers < 20_000 || config.buyers > 5_000_000 || config.grabs > 10_000_000 {
			return errors.New("seconds are 1 to 60, rounds 1 to 20, sales 100 to 100000, buyers 20000 to 5000000, grabs at most 10000000")
		}
		w, err := openWorld()
		if err != nil {
			return err
		}
		figures, err := measureGrowth(ctx, w, config)
		if err := errors.Join(err, w.close()); err != nil {
			return err
		}
		figures.print()
		return writeJSON(config.json, figures)
	}
}

type growthFigures struct {
	Callers int            `json:"callers"`
	Sales   []growthRow    `json:"sales"`
	Buyers  []growthRow    `json:"buyers"`
	Hold    float64        `json:"bytesPerHold"`  // in Redis, of a further hold of a known buyer, queue entry included
	Buyer   float64        `json:"bytesPerBuyer"` // what the first hold of a buyer takes on top
	Memory  []memorySample `json:"memory"`
}

// growthRow is the speed at a size; Ratio is to the first row.
type growthRow struct {
	Size      int     `json:"size"`
	PerSecond float64 `json:"perSecond"`
	Ratio     float64 `json:"ratio"`
}

type memorySample struct {
	Grabs int64 `json:"grabs"`
	RSS   int64 `json:"rss"` // of the program, bytes
}

func measureGrowth(ctx context.Context, w *world, config growthConfig) (*growthFigures, error) {
	stock, err := openStock(w.redis.Addr)
	if err != nil {
		return nil, err
	}
	defer stock.close()
	f := &growthFigures{Callers: callers}
	length := time.Duration(config.seconds) * time.Second

	var places []place
	for _, n := range []int{1, 100, config.sales} {
		p, err := stock.sales(ctx, n)
		if err != nil {
			return nil, err
		}
		places = append(places, p)
	}
	if f.Sales, err = stock.compare(ctx, places, config.rounds, length); err != nil {
		return nil, err
	}

	places = nil
	for _, n := range []int{10_000, config.buyers} {
		p, err := stock.sales(ctx, 1)
		if err != nil {
			return nil, err
		}
		p.size = n
		if err := stock.fill(ctx, p, n, n); err != nil {
			return nil, err
		}
		places = append(places, p)
	}
	if f.Buyers, err = stock.compare(ctx, places, config.rounds, length); err != nil {
		return nil, err
	}
	if f.Hold, f.Buyer, err = stock.bytes(ctx); err != nil {
		return nil, err
	}
	f.Memory, err = w.watchMemory(ctx, config.grabs)
	return f, err
}

// watchMemory has the program take grabs in ten parts, and looks at its memory
// after each, when its backlog is gone.
func (w *world) watchMemory(ctx context.Context, grabs int64) ([]memorySample, error) {
	const parts, activity = 10, 1001
	if grabs < parts {
		return nil, nil
	}
	// Alone with its data: the other measurements left theirs in the same Redis.
	s, err := w.serve("serve", "SECKILL_REDIS_PREFIX=memory")
	if err != nil {
		return nil, err
	}
	if err := s.openSale(ctx, activity, 10*grabs); err != nil {
		return nil, err
	}
	var samples []memorySample
	var done int64
	for range parts {
		r, err := generateFor(ctx, plan{
			Addr: s.addr, Connections: callers, For: 2 * time.Minute, Requests: grabs / parts,
			Activity: activity, SKU: sku, Buyer: 2 * done, Want: "accepted",
		}, func() error { return nil }, func() error { return nil })
		if err != nil {
			return nil, err
		}
		done += r.Requests
		if err := w.drained(ctx, activity, done); err != nil {
			return nil, err
		}
		samples = append(samples, memorySample{done, rssOf(s.PID)})
		fmt.Fprintf(os.Stderr, "%d grabs: %d MB\n", done, rssOf(s.PID)>>20)
	}
	return samples, nil
}

func (f *growthFigures) print() {
	fmt.Printf("\n%d callers in this process, through the Redis stock\n\n", f.Callers)
	for _, table := range []struct {
		name string
		rows []growthRow
	}{{"sales", f.Sales}, {"buyers so far", f.Buyers}} {
		fmt.Printf("%13s %9s %7s\n", table.name, "grabs/s", "ratio")
		for _, row := range table.rows {
			fmt.Printf("%13d %9.0f %7.3f\n", row.Size, row.PerSecond, row.Ratio)
		}
	}
	fmt.Printf("\nRedis: %.0f bytes for a hold with its queue entry, %.0f more for a new buyer\n\n%13s %9s\n", f.Hold, f.Buyer, "grabs", "RSS MB")
	for _, sample := range f.Memory {
		fmt.Printf("%13d %9d\n", sample.Grabs, sample.RSS>>20)
	}
}
