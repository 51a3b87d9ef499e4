// Package bench runs the deduction strategies side by side, in one process and
// one run, on the user's own Redis and database.
//
// What is measured is the Stock port itself: how many winning grabs a second a
// crowd of callers gets out of it while stock lasts. Refusals are cheap, so a
// crowd that is mostly refused would hide what a grab costs. That a strategy
// sells no unit twice is checked apart from it, with more demand than stock.
package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"seckill/adapters/redisstock"
	"seckill/adapters/sqlstore"
	"seckill/bootstrap/seckill/load"
	"seckill/domain"
)

// Config says what to compare and on what.
type Config struct {
	Redis  *redisstock.ConnectConfig // nil: none, and what needs it is skipped
	Prefix string                    // of this run's keys; all keys under it are removed
	Ledger sqlstore.Config
	First  domain.ActivityID // the run's activities have ids from here on

	Only    []string      // names of strategies; none: all
	Callers int           // at the same time
	Stock   int64         // units in the check for overselling
	Grabs   int64         // bound of one timed part
	Budget  time.Duration // bound of one timed part
	Rounds  int           // timed parts of each entry; the median counts

	Watch load.Watcher // default: nobody listens
}

// Results are the figures of a run.
type Results struct {
	Results []Entry   `json:"results"`
	Limit   Limit     `json:"limit"`
	Persist []Persist `json:"persist"`
	Skipped []string  `json:"skipped"` // what did not run, and why
	// Findings are the checks that failed, a line each.
	Findings []string `json:"findings"`
}

// Entry is one strategy in one mode. Callers, PerSecond, P50Ms and P99Ms are of
// the timed part, in which every grab wins; Stock, Grabs, Accepted and Oversold
// are of the check, in which most do not.
type Entry struct {
	Strategy  string  `json:"strategy"`
	Mode      string  `json:"mode"` // single: one call of the store per grab; coalesced: one for those that wait
	Callers   int     `json:"callers"`
	Stock     int64   `json:"stock"`
	Grabs     int64   `json:"grabs"`
	Accepted  int64   `json:"accepted"`
	Oversold  int64   `json:"oversold"`
	PerSecond float64 `json:"perSecond"` // winning grabs
	P50Ms     float64 `json:"p50Ms"`
	P99Ms     float64 `json:"p99Ms"`
	Winning   int64   `json:"winning"` // grabs in the timed part that counts
	Errors    int64   `json:"errors"`  // calls without an outcome, in all timed parts; they do not count
	// FalseSoldOut is how many units of the check were left when every caller
	// had heard "sold out". They are sold afterwards and are part of Accepted.
	FalseSoldOut int64 `json:"falseSoldOut"`
}

// Limit is what the grab script does when it is driven straight, with full
// batches.
type Limit struct {
	PerSecond float64 `json:"perSecond"` // winning grabs; 0: not measured
}

// Persist is how fast orders get into the ledger.
type Persist struct {
	Database  string  `json:"database"`
	Batch     int     `json:"batch"`     // orders in one transaction
	PerSecond float64 `json:"perSecond"` // orders
}

// Bounds of what is not measured.
const (
	patienceTime = 3 * time.Second  // for answers after the end of a timed part, at least
	graceTime    = 20 * time.Second // for the removal of what a part left, and for one slow batch
	checkTime    = 10 * time.Second // of one check for overselling
	restTime     = 3 * time.Second  // for a sale to come to rest after it
)

// Run compares. An error says that the run could not be carried through; what
// was measured until then is in the results. All keys and rows of the run are
// removed at its end, also after an error.
func Run(ctx context.Context, config Config) (_ Results, err error) {
	config.Watch = cmp.Or(config.Watch, load.Watcher(load.Unwatched{}))
	r, err := open(ctx, config)
	if err != nil {
		return Results{}, err
	}
	defer func() { err = errors.Join(err, r.close(ctx)) }()
	entries := r.entries()
	results := Results{Results: []Entry{}, Persist: []Persist{}, Skipped: r.skipped, Findings: []string{}}
	runs := make([][]timed, len(entries))
	var limits []float64
	persist := map[int][]float64{}
	// Round by round, so that a busy moment of the machine does not hit one
	// strategy alone.
	for round := range config.Rounds {
		for i, s := range entries {
			config.Watch.Stage(fmt.Sprintf("round %d of %d: %s %s", round+1, config.Rounds, s.name, s.mode), 0)
			one, err := r.race(ctx, s)
			if err != nil {
				return results, fmt.Errorf("%s %s: %w", s.name, s.mode, err)
			}
			runs[i] = append(runs[i], one)
			if one.fault != "" {
				results.Findings = append(results.Findings, one.fault)
			}
		}
		if r.client != nil {
			config.Watch.Stage(fmt.Sprintf("round %d of %d: limit", round+1, config.Rounds), 0)
			one, err := r.limit(ctx)
			if err != nil {
				return results, fmt.Errorf("limit: %w", err)
			}
			limits = append(limits, one)
		}
		for _, batch := range persistBatches {
			config.Watch.Stage(fmt.Sprintf("round %d of %d: persist by %d", round+1, config.Rounds, batch), 0)
			one, err := r.persist(ctx, batch)
			if err != nil {
				return results, fmt.Errorf("persist: %w", err)
			}
			persist[batch] = append(persist[batch], one)
		}
	}
	for i, s := range entries {
		entry := median(runs[i])
		config.Watch.Stage(fmt.Sprintf("check: %s %s", s.name, s.mode), 0)
		findings, err := r.check(ctx, s, &entry)
		if err != nil {
			return results, fmt.Errorf("check of %s %s: %w", s.name, s.mode, err)
		}
		results.Results = append(results.Results, entry)
		results.Findings = append(results.Findings, findings...)
	}
	if len(limits) > 0 {
		results.Limit.PerSecond = load.Round(middle(limits))
	}
	for _, batch := range persistBatches {
		results.Persist = append(results.Persist, Persist{Database: r.product, Batch: batch, PerSecond: load.Round(middle(persist[batch]))})
	}
	return results, nil
}

// median is the timed part in the middle, by speed, and all parts' errors.
func median(runs []timed) Entry {
	var errs int64
	for _, run := range runs {
		errs += run.Errors
	}
	slices.SortFunc(runs, func(a, b timed) int { return cmp.Compare(a.PerSecond, b.PerSecond) })
	entry := runs[(len(runs)-1)/2].Entry
	entry.Errors = errs
	return entry
}

func middle(list []float64) float64 {
	slices.Sort(list)
	return list[(len(list)-1)/2]
}
