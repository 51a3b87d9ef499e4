package redislock

import (
	"math"
	"slices"
	"sync"
	"time"
)

const (
	// holdsKept is how many recent holds the percentile is taken of.
	holdsKept = 256
	// holdsNeeded is the fewest that have a 99th percentile that is not just
	// the longest one.
	holdsNeeded = 100
	// holdShare is the part of a lease that the 99th percentile may take.
	holdShare = 0.5
	// warnEvery is the shortest time between two warnings.
	warnEvery = time.Minute
)

// holds remembers how much of its lease each of the last holds took.
type holds struct {
	mu     sync.Mutex
	shares [holdsKept]float64
	count  int // of all holds so far
	warned time.Time
}

// add records a hold. It returns the 99th percentile and whether to warn of it.
func (h *holds) add(hold, ttl time.Duration, now time.Time) (p99 float64, warn bool) {
	share := float64(hold) / float64(ttl)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.shares[h.count%holdsKept] = share
	h.count++
	// A short hold never raises the percentile, so it is not worth sorting for.
	if share <= holdShare || h.count < holdsNeeded {
		return 0, false
	}
	if !h.warned.IsZero() && now.Sub(h.warned) < warnEvery {
		return 0, false
	}
	p99 = percentile99(h.shares[:min(h.count, holdsKept)])
	if p99 <= holdShare {
		return p99, false
	}
	h.warned = now
	return p99, true
}

// percentile99 is the smallest value that at least 99 % of the values do not exceed.
func percentile99(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[int(math.Ceil(0.99*float64(len(sorted))))-1]
}
