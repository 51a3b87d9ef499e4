package main

import (
	"fmt"
	"io"
)

// ratios are medians over the rounds, each by the bare handler of its round.
type ratios struct {
	Bare       row                `json:"bare"`
	Win        row                `json:"win"`
	SoldOut    row                `json:"soldOut"`
	CommitRate float64            `json:"commitRate"`
	DrainTime  float64            `json:"drainTime"`
	CommitCPU  float64            `json:"commitCPU"`
	Drain      map[string]float64 `json:"drainMicros"`
}

type row struct {
	PerSecond float64 `json:"perSecond"`
	ByBare    float64 `json:"byBare"`
	P50Ms     float64 `json:"p50Ms"`
	P99Ms     float64 `json:"p99Ms"`
	P99ByBare float64 `json:"p99ByBare"`
	// CPUByBare is how often the bare handler could run in this one's processor
	// time, turned round: what ByBare would be on a machine with nothing else to do.
	CPUByBare float64            `json:"cpuByBare"`
	CPU       map[string]float64 `json:"cpuMicros"`
	Share     float64            `json:"share"`
}

func (f *httpFigures) medians() {
	f.Median = ratios{
		Bare:       f.row(func(r round) load { return r.Bare }),
		Win:        f.row(func(r round) load { return r.Win.load }),
		SoldOut:    f.row(func(r round) load { return r.SoldOut }),
		CommitRate: f.of(func(r round) float64 { return r.Win.CommitRate }),
		DrainTime:  f.of(func(r round) float64 { return r.Win.DrainTime }),
		CommitCPU:  f.of(func(r round) float64 { return r.Win.CommitCPU }),
		Drain:      f.cpu(func(r round) map[string]float64 { return r.Win.Drain }),
	}
}

func (f *httpFigures) of(value func(round) float64) float64 {
	var all []float64
	for _, r := range f.Rounds {
		all = append(all, value(r))
	}
	return median(all)
}

func (f *httpFigures) row(pick func(round) load) row {
	return row{
		PerSecond: f.of(func(r round) float64 { return pick(r).PerSecond }),
		ByBare:    f.of(func(r round) float64 { return pick(r).PerSecond / r.Bare.PerSecond }),
		P50Ms:     f.of(func(r round) float64 { return pick(r).P50Ms }),
		P99Ms:     f.of(func(r round) float64 { return pick(r).P99Ms }),
		P99ByBare: f.of(func(r round) float64 { return pick(r).P99Ms / r.Bare.P99Ms }),
		CPUByBare: f.of(func(r round) float64 { return r.Bare.cpu() / pick(r).cpu() }),
		CPU:       f.cpu(func(r round) map[string]float64 { return pick(r).CPU }),
		Share:     f.of(func(r round) float64 { return pick(r).Share }),
	}
}

func (f *httpFigures) cpu(pick func(round) map[string]float64) map[string]float64 {
	each := map[string]float64{}
	for name := range pick(f.Rounds[0]) {
		each[name] = f.of(func(r round) float64 { return pick(r)[name] })
	}
	return each
}

func (f *httpFigures) print(to io.Writer) {
	m := f.Median
	fmt.Fprintf(to, "\n%d connections, %d s each, medians of %d turns\n\n", f.Connections, f.Seconds, len(f.Rounds))
	fmt.Fprintf(to, "%-9s %8s %7s %7s %7s %7s %9s %6s   %s\n", "", "req/s", "ratio", "p50 ms", "p99 ms", "ratio", "CPU ratio", "share",
		"CPU µs per request: generator, server, redis, database")
	for _, line := range []struct {
		name string
		row
	}{{"bare", m.Bare}, {"winning", m.Win}, {"sold out", m.SoldOut}} {
		fmt.Fprintf(to, "%-9s %8.0f %7.3f %7.1f %7.1f %7.2f %9.3f %6.2f   %.1f, %.1f, %.1f, %.1f\n", line.name,
			line.PerSecond, line.ByBare, line.P50Ms, line.P99Ms, line.P99ByBare, line.CPUByBare, line.Share,
			line.CPU["generator"], line.CPU["server"], line.CPU["redis"], line.CPU["database"])
	}
	fmt.Fprintf(to, "\ncommits within the load: %.3f of the accepted grabs; backlog gone after %.2f of the load's time\n", m.CommitRate, m.DrainTime)
	fmt.Fprintf(to, "CPU µs per order: database %.1f under the load; server %.1f, redis %.1f, database %.1f in the backlog\n",
		m.CommitCPU, m.Drain["server"], m.Drain["redis"], m.Drain["database"])
	first, last := f.Rounds[0].Win, f.Rounds[len(f.Rounds)-1].Win
	fmt.Fprintf(to, "memory of the program: %d MB before the first load, %d MB after the last\n", first.RSSBefore>>20, last.RSSAfter>>20)
}
