package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"
)

type httpConfig struct {
	connections int
	seconds     int
	rounds      int
	requestIDs  bool
	json        string
	profiles    string
	env         string
}

func httpCommand(flags *flag.FlagSet) func(context.Context) error {
	var config httpConfig
	flags.IntVar(&config.connections, "connections", 1000, "kept-alive connections")
	flags.IntVar(&config.seconds, "seconds", 10, "seconds of each load")
	flags.IntVar(&config.rounds, "rounds", 3, "turns; medians are printed")
	flags.BoolVar(&config.requestIDs, "request-ids", false, "every grab has a requestId of its own")
	flags.StringVar(&config.json, "json", "", "file to write the figures to")
	flags.StringVar(&config.profiles, "profiles", "", "folder for profiles of the program: CPU of the first winning load, allocations until then")
	flags.StringVar(&config.env, "env", "", "more environment for the program: NAME=value, separated by spaces")
	return func(ctx context.Context) error {
		if config.connections < 1 || config.connections > 10_000 || config.seconds < 1 || config.seconds > 300 || config.rounds < 1 || config.rounds > 20 {
			return errors.New("connections are 1 to 10000, seconds 1 to 300, rounds 1 to 20")
		}
		w, err := openWorld()
		if err != nil {
			return err
		}
		figures, err := measureHTTP(ctx, w, config)
		if err := errors.Join(err, w.close()); err != nil {
			return err
		}
		figures.print(os.Stdout)
		return writeJSON(config.json, figures)
	}
}

// load is one load on one server, with what every process spent on it.
type load struct {
	PerSecond float64            `json:"perSecond"`
	P50Ms     float64            `json:"p50Ms"`
	P99Ms     float64            `json:"p99Ms"`
	CPU       map[string]float64 `json:"cpuMicros"` // per request, by process
	// Share is the part of the machine's busy time that these processes had:
	// below about 0.95, something else was running and req/s mean little.
	Share float64 `json:"share"`
	result
}

// win is a load of grabs that all win.
type win struct {
	load
	CommitRate float64 `json:"commitRate"` // commits within the load's time, by accepted grabs
	DrainTime  float64 `json:"drainTime"`  // until the backlog was gone, by the load's time
	CommitCPU  float64 `json:"commitCPU"`  // of the database, microseconds per committed order
	// Drain is what each process spends on an order of the backlog, when no
	// grabs come any more: the cost of the way into the ledger alone. Microseconds.
	Drain       map[string]float64 `json:"drainMicros"`
	RSSBefore   int64              `json:"rssBefore"`   // of the program, bytes
	RSSAfter    int64              `json:"rssAfter"`    // when the backlog is gone
	RedisMemory int64              `json:"redisMemory"` // RSS, bytes
}

type round struct {
	Bare    load `json:"bare"`
	Win     win  `json:"win"`
	SoldOut load `json:"soldOut"`
}

type httpFigures struct {
	Connections int     `json:"connections"`
	Seconds     int     `json:"seconds"`
	Rounds      []round `json:"rounds"`
	Median      ratios  `json:"median"`
}

func measureHTTP(ctx context.Context, w *world, config httpConfig) (*httpFigures, error) {
	bare, err := w.bare()
	if err != nil {
		return nil, err
	}
	node, err := w.serve("serve", strings.Fields(config.env)...)
	if err != nil {
		return nil, err
	}
	const soldOut = 999
	if err := node.sellOut(ctx, soldOut); err != nil {
		return nil, err
	}
	figures := &httpFigures{Connections: config.connections, Seconds: config.seconds}
	base := plan{
		Connections: config.connections, For: time.Duration(config.seconds) * time.Second,
		SKU: sku, RequestIDs: config.requestIDs, Want: "accepted",
	}
	// A short turn of each first: caches, pools and heaps are to be warm.
	for turn := range config.rounds + 1 {
		plan := base
		if turn == 0 {
			plan.For = 2 * time.Second
		}
		var r round
		plan.Addr, plan.Activity = bare.addr, 1001
		if r.Bare, err = w.load(ctx, plan, bare, nil, nil); err != nil {
			return nil, fmt.Errorf("bare: %w", err)
		}
		plan.Addr, plan.Activity = node.addr, int64(1001+turn)
		profiles := ""
		if turn == 1 {
			profiles = config.profiles
		}
		if r.Win, err = w.win(ctx, plan, node, profiles); err != nil {
			return nil, fmt.Errorf("winning: %w", err)
		}
		plan.Activity, plan.Want = soldOut, "sold_out"
		if r.SoldOut, err = w.load(ctx, plan, node, nil, nil); err != nil {
			return nil, fmt.Errorf("sold out: %w", err)
		}
		if turn > 0 {
			figures.Rounds = append(figures.Rounds, r)
			fmt.Fprintf(os.Stderr, "round %d: bare %.0f/s, winning %.0f/s, sold out %.0f/s\n",
				turn, r.Bare.PerSecond, r.Win.PerSecond, r.SoldOut.PerSecond)
		}
	}
	figures.medians()
	return figures, nil
}

// load runs a plan against a server. At begin and end it also calls what the
// caller wants to look at.
func (w *world) load(ctx context.Context, plan plan, s *server, begin, end func() error) (load, error) {
	var before, after map[string]time.Duration
	var busy time.Duration
	r, err := generateFor(ctx, plan, func() error {
		before, busy = w.spent(s), machineCPU()
		return call(begin)
	}, func() error {
		after, busy = w.spent(s), machineCPU()-busy
		return call(end)
	})
	if err != nil {
		return load{}, err
	}
	l := load{result: r, PerSecond: r.perSecond(), P50Ms: ms(r.P50), P99Ms: ms(r.P99), CPU: perOrder(before, after, r.Requests)}
	l.CPU["generator"] = float64(r.CPU.Microseconds()) / float64(r.Requests)
	l.Share = l.cpu() * float64(r.Requests) / float64(max(busy.Microseconds(), 1))
	return l, nil
}

// cpu is what all processes together spent on a request; microseconds.
func (l load) cpu() (sum float64) {
	for _, each := range l.CPU {
		sum += each
	}
	return sum
}

// spent is the processor time of each process so far.
func (w *world) spent(s *server) map[string]time.Duration {
	return map[string]time.Duration{
		"server": cpuOf(s.PID), "redis": cpuOf(w.redis.PID()), "database": cpuOf(w.database.PID()),
	}
}

// perOrder shares processor time out over requests or orders; microseconds.
func perOrder(before, after map[string]time.Duration, n int64) map[string]float64 {
	each := map[string]float64{}
	for name, cpu := range after {
		each[name] = float64((cpu - before[name]).Microseconds()) / float64(max(n, 1))
	}
	return each
}

func call(look func() error) error {
	if look == nil {
		return nil
	}
	return look()
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// win opens a sale that everybody wins, loads it and waits for the backlog to go.
func (w *world) win(ctx context.Context, plan plan, s *server, profiles string) (win, error) {
	if err := s.openSale(ctx, plan.Activity, 100_000_000); err != nil {
		return win{}, err
	}
	r := win{RSSBefore: rssOf(s.PID)}
	var committed int64
	var ended time.Time
	var before map[string]time.Duration
	done := make(chan error, 1)
	l, err := w.load(ctx, plan, s, func() error {
		go func() { done <- s.profile(ctx, profiles, plan.For) }()
		return nil
	}, func() (err error) {
		ended = time.Now()
		committed, err = w.committed(ctx, plan.Activity)
		before = w.spent(s)
		return err
	})
	if err := errors.Join(err, <-done); err != nil {
		return win{}, err
	}
	r.load = l
	r.CommitRate = float64(committed) / float64(l.Requests)
	r.CommitCPU = l.CPU["database"] * float64(l.Requests) / float64(max(committed, 1))
	if err := w.drained(ctx, plan.Activity, l.Requests); err != nil {
		return win{}, err
	}
	r.DrainTime = time.Since(ended).Seconds() / l.Took.Seconds()
	r.Drain = perOrder(before, w.spent(s), l.Requests-committed)
	r.RSSAfter, r.RedisMemory = rssOf(s.PID), rssOf(w.redis.PID())
	if n, err := w.orders(ctx, plan.Activity); err != nil || n != l.Requests {
		return win{}, fmt.Errorf("%d grabs were accepted, the ledger has %d orders: %w", l.Requests, n, err)
	}
	return r, nil
}

// drained waits until the ledger has so many units of an activity.
func (w *world) drained(ctx context.Context, activity, units int64) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	for {
		n, err := w.committed(ctx, activity)
		if err != nil {
			return err
		}
		if n >= units {
			return nil
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// sellOut opens a sale with one unit and grabs it.
func (s *server) sellOut(ctx context.Context, activity int64) error {
	if err := s.openSale(ctx, activity, 1); err != nil {
		return err
	}
	_, err := generateFor(ctx, plan{
		Addr: s.addr, Connections: 1, For: time.Minute, Requests: 1, Activity: activity, SKU: sku, Want: "accepted",
		Buyer: -1, // none of those who come later
	}, func() error { return nil }, func() error { return nil })
	return err
}

// profile writes the program's profiles of the time of a load into a folder.
func (s *server) profile(ctx context.Context, folder string, length time.Duration) error {
	if folder == "" {
		return nil
	}
	seconds := max(1, int(length.Seconds())-1)
	data, err := s.operate(ctx, http.MethodGet, fmt.Sprintf("/debug/pprof/profile?seconds=%d", seconds), "")
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(folder, "cpu.pprof"), data, 0o644); err != nil {
		return err
	}
	data, err = s.operate(ctx, http.MethodGet, "/debug/pprof/allocs", "")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, "allocs.pprof"), data, 0o644)
}
