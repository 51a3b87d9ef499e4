// Package load makes many calls at the same time and measures how long each
// one took. It uses the monotonic clock of the process itself: what is measured
// here is real time, in whatever time the engine believes.
package load

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// Plan says how to call.
type Plan struct {
	// Calls bounds how many calls there are.
	Calls int64
	// Callers is how many calls there may be at the same time.
	Callers int
	// Rate is how many calls are due a second. Each call has its own moment,
	// whatever became of those before it: an open loop. 0: each caller calls
	// again as soon as it has its answer: a closed loop.
	Rate float64
	// For is after how long no new call begins. 0: the load ends with Calls.
	For time.Duration
}

// Open says whether calls are due at moments of their own.
func (p Plan) Open() bool { return p.Rate > 0 }

// Measured is what a load came to.
type Measured struct {
	Calls   int64         // begun
	Counted int64         // of them, those that said that they count
	Took    time.Duration // from the first begin to the last end
	Latency *Latency      // of the counted calls
}

// PerSecond is the counted calls per second.
func (m Measured) PerSecond() float64 {
	if m.Took <= 0 {
		return 0
	}
	return float64(m.Counted) / m.Took.Seconds()
}

// Run calls until the plan is fulfilled or ctx ends, and waits for the last
// answer. call gets the number of its caller, from 0, and of its call, from 0,
// and says whether it counts.
//
// In an open loop a call's latency begins at the moment when it was due, so
// that calls that wait for a free caller count their wait: a service that
// stalls cannot hide it by being asked less (coordinated omission). A closed
// loop measures from the send, see Latency.Corrected.
func Run(ctx context.Context, plan Plan, call func(ctx context.Context, caller int, n int64) bool) Measured {
	var (
		next, begun, counted atomic.Int64
		all                  sync.WaitGroup
		latency              = newShards()
		begin                = time.Now()
	)
	for caller := range plan.Callers {
		all.Go(func() {
			for ctx.Err() == nil {
				if plan.For > 0 && time.Since(begin) >= plan.For {
					return
				}
				n := next.Add(1) - 1
				if n >= plan.Calls {
					return
				}
				due := time.Now()
				if plan.Open() {
					due = begin.Add(time.Duration(float64(n) / plan.Rate * float64(time.Second)))
					if !sleepUntil(ctx, due) {
						return
					}
				}
				begun.Add(1)
				if call(ctx, caller, n) {
					latency.record(caller, time.Since(due))
					counted.Add(1)
				}
			}
		})
	}
	all.Wait()
	return Measured{
		Calls: begun.Load(), Counted: counted.Load(),
		Took: time.Since(begin), Latency: latency.merge(),
	}
}

// sleepUntil returns false when ctx ended before.
func sleepUntil(ctx context.Context, moment time.Time) bool {
	wait := time.Until(moment)
	if wait <= 0 {
		return true
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
