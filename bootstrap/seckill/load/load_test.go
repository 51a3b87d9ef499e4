package load

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func millisecondsOf(l *Latency, percents ...float64) (list []float64) {
	for _, p := range percents {
		list = append(list, l.Milliseconds(p))
	}
	return list
}

func near(got, want float64) bool { return got > want*0.99-0.01 && got < want*1.01+0.01 }

// TestClosedLoop: each caller waits for its answer; the number of calls is
// exact, and no two calls have the same number.
func TestClosedLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		seen := map[int64]bool{}
		var running, most atomic.Int64
		got := Run(t.Context(), Plan{Calls: 1000, Callers: 10}, func(_ context.Context, _ int, n int64) bool {
			most.Store(max(most.Load(), running.Add(1)))
			defer running.Add(-1)
			time.Sleep(10 * time.Millisecond)
			mu.Lock()
			defer mu.Unlock()
			seen[n] = true
			return n%2 == 0
		})
		if len(seen) != 1000 || got.Calls != 1000 || got.Counted != 500 || most.Load() > 10 {
			t.Fatalf("%d different calls, %d at once, %+v", len(seen), most.Load(), got)
		}
		if got.Took != time.Second || got.PerSecond() != 500 {
			t.Fatalf("took %s, %f per second", got.Took, got.PerSecond())
		}
		for i, ms := range millisecondsOf(got.Latency, 0, 50, 100) {
			if !near(ms, 10) {
				t.Errorf("percentile %d: %f ms", i, ms)
			}
		}
	})
}

// TestOpenLoop: a service that stalls once makes everybody who was due wait, and
// each of these waits is counted from the moment that was due.
func TestOpenLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service := make(chan struct{}, 1) // one at a time
		got := Run(t.Context(), Plan{Calls: 200, Callers: 100, Rate: 100}, func(_ context.Context, _ int, n int64) bool {
			service <- struct{}{}
			defer func() { <-service }()
			if n == 50 {
				time.Sleep(500 * time.Millisecond)
			}
			return true
		})
		if got.Counted != 200 || got.Took < 1990*time.Millisecond || got.Took > 2*time.Second {
			t.Fatalf("%+v", got)
		}
		// 50 of 200 were due during the stall and waited 0 to 500 ms, evenly.
		for _, want := range []struct{ percent, ms float64 }{{74, 0}, {87.5, 250}, {99.5, 490}, {100, 500}} {
			if ms := got.Latency.Milliseconds(want.percent); ms < want.ms-15 || ms > want.ms+15 {
				t.Errorf("p%g: %f ms, want about %f", want.percent, ms, want.ms)
			}
		}
	})
}

// TestCorrected: a closed loop hides a stall; the correction shows it.
func TestCorrected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		got := Run(t.Context(), Plan{Calls: 100, Callers: 1}, func(_ context.Context, _ int, n int64) bool {
			wait := 10 * time.Millisecond
			if n == 50 {
				wait = time.Second
			}
			time.Sleep(wait)
			return true
		})
		if ms := got.Latency.Milliseconds(99); !near(ms, 10) {
			t.Errorf("as measured: p99 %f ms", ms)
		}
		// 99 calls of 10 ms, and 100 that waited 10, 20 … 1000 ms.
		for _, want := range []struct{ percent, ms float64 }{{50, 10}, {75, 500}, {100, 1000}} {
			if ms := got.Latency.Corrected().Milliseconds(want.percent); ms < want.ms-20 || ms > want.ms+20 {
				t.Errorf("corrected: p%g %f ms, want about %f", want.percent, ms, want.ms)
			}
		}
	})
}

// TestBounds: a load ends in time, and with its context.
func TestBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := func(ctx context.Context, _ int, _ int64) bool {
			select {
			case <-time.After(time.Second):
			case <-ctx.Done():
			}
			return ctx.Err() == nil
		}
		if got := Run(t.Context(), Plan{Calls: 1 << 40, Callers: 3, For: 2500 * time.Millisecond}, slow); got.Calls != 9 || got.Took != 3*time.Second {
			t.Errorf("by time: %+v", got)
		}
		ctx, cancel := context.WithTimeoutCause(t.Context(), 1500*time.Millisecond, errors.New("enough"))
		defer cancel()
		if got := Run(ctx, Plan{Calls: 1 << 40, Callers: 3}, slow); got.Counted != 3 || got.Took != 1500*time.Millisecond {
			t.Errorf("by context: %+v", got)
		}
		begin := time.Now()
		late, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		if got := Run(late, Plan{Calls: 10, Callers: 3, Rate: 0.001}, slow); got.Calls != 1 || got.Counted != 1 || time.Since(begin) != 2*time.Second {
			t.Errorf("callers that wait for their moment: %+v", got)
		}
	})
	none := Run(t.Context(), Plan{Callers: 3}, nil)
	if none.Calls != 0 || none.Latency.Milliseconds(99) != 0 || none.Latency.Corrected().Milliseconds(50) != 0 {
		t.Errorf("no calls: %+v", none)
	}
}

// TestPercentiles compares with a sorted list.
func TestPercentiles(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	shards := newShards()
	var list []time.Duration
	for i := range 10_000 {
		took := time.Duration(random.ExpFloat64() * float64(5*time.Millisecond))
		list = append(list, took)
		shards.record(i, took)
	}
	slices.Sort(list)
	got := shards.merge()
	for _, percent := range []float64{1, 50, 90, 99, 99.9, 100} {
		want := list[max(int(percent/100*float64(len(list)))-1, 0)]
		if ms := got.Milliseconds(percent); !near(ms, float64(want)/1e6) {
			t.Errorf("p%g: %f ms, want %s", percent, ms, want)
		}
	}
	outside := newShards()
	outside.record(0, time.Hour)
	outside.record(1, -time.Second)
	if l := outside.merge(); !near(l.Milliseconds(100), 600_000) || l.Milliseconds(1) > 0.001 {
		t.Errorf("out of range: %v", millisecondsOf(l, 1, 100))
	}
}
