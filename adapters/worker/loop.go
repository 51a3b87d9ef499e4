// Package worker holds the loops that drive the use cases: consumers of the
// queue, the expiry sweeper, the outbox relay and the reconciler.
package worker

import (
	"context"
	"log/slog"
	"time"
)

// every runs work again and again, with a pause in between, until ctx ends.
// After an error the pause doubles, up to a longest. One failure may be a store
// that was slow for a moment; the third in a row is an operator's matter.
func every(ctx context.Context, log *slog.Logger, what string, pause, longest time.Duration, work func(context.Context) error) {
	wait, failures := pause, 0
	for sleep(ctx, wait) {
		if err := work(ctx); err != nil && ctx.Err() == nil {
			failures++
			level := slog.LevelWarn
			if failures >= 3 {
				level = slog.LevelError
			}
			wait = min(2*wait, max(longest, pause))
			log.Log(ctx, level, what+" failed", "error", err, "retry_in", wait.String())
			continue
		}
		wait, failures = pause, 0
	}
}

// sleep returns false when ctx ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
