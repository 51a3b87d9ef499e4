package load

import (
	"math"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// What a histogram tells apart. Longer calls count as the longest.
const (
	shortest = 256 // nanoseconds
	longest  = int64(10 * time.Minute)
	figures  = 3 // significant decimal digits
	shards   = 16
)

// Latency is the distribution of how long calls took.
type Latency struct{ histogram *hdrhistogram.Histogram }

// Milliseconds is the latency that so many percent of the calls did not
// exceed; 0 when there were none.
func (l *Latency) Milliseconds(percent float64) float64 {
	if l.histogram.TotalCount() == 0 {
		return 0
	}
	return float64(l.histogram.ValueAtPercentile(percent)) / float64(time.Millisecond)
}

// MaxMilliseconds is the longest call.
func (l *Latency) MaxMilliseconds() float64 { return l.Milliseconds(100) }

// Round leaves three decimals, which is all that a figure is good for.
func Round(figure float64) float64 { return math.Round(figure*1000) / 1000 }

// maxSteps bounds how many calls Corrected adds for one that was slow.
const maxSteps = 10_000

// Corrected is the distribution that a closed loop's callers would have seen
// had they gone on calling while they waited: a call that took k times the
// usual stands for k calls, each of which would have waited the rest of it.
// The usual is the median. It is the correction of HdrHistogram.
func (l *Latency) Corrected() *Latency {
	out := newHistogram()
	interval := max(l.histogram.ValueAtPercentile(50), l.histogram.Max()/maxSteps, 1)
	for _, bar := range l.histogram.Distribution() {
		if bar.Count == 0 {
			continue
		}
		for wait := bar.To; ; wait -= interval {
			record(out, wait, bar.Count)
			if wait < 2*interval {
				break
			}
		}
	}
	return &Latency{out}
}

func newHistogram() *hdrhistogram.Histogram { return hdrhistogram.New(shortest, longest, figures) }

func record(h *hdrhistogram.Histogram, nanoseconds, count int64) {
	if err := h.RecordValues(min(max(nanoseconds, 1), longest), count); err != nil {
		panic(err) // the value is inside the histogram's range
	}
}

// shardedLatency spreads callers over a few histograms, so that they seldom
// wait for each other: one for each caller would take too much memory.
type shardedLatency [shards]struct {
	mu        sync.Mutex
	histogram *hdrhistogram.Histogram
}

func newShards() *shardedLatency {
	var s shardedLatency
	for i := range s {
		s[i].histogram = newHistogram()
	}
	return &s
}

func (s *shardedLatency) record(caller int, took time.Duration) {
	shard := &s[caller%shards]
	shard.mu.Lock()
	defer shard.mu.Unlock()
	record(shard.histogram, int64(took), 1)
}

func (s *shardedLatency) merge() *Latency {
	all := newHistogram()
	for i := range s {
		all.Merge(s[i].histogram)
	}
	return &Latency{all}
}
