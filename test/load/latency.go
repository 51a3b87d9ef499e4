package main

import (
	"slices"
	"time"
)

// latencies are kept one by one, so percentiles are exact. Microseconds, up to
// an hour.
type latencies []uint32

func (l *latencies) add(d time.Duration) { *l = append(*l, uint32(d.Microseconds())) }

func merge(all []latencies) latencies {
	merged := latencies(slices.Concat(all...))
	slices.Sort(merged)
	return merged
}

// percentile is of sorted latencies.
func (l latencies) percentile(p int) time.Duration {
	if len(l) == 0 {
		return 0
	}
	return time.Duration(l[(len(l)-1)*p/100]) * time.Microsecond
}

// median is of any order; it is 0 of nothing.
func median[T int64 | float64 | time.Duration](values []T) T {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}
