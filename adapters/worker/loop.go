// Package worker holds the loops that drive the use cases: consumers of the
// queue, the expiry sweeper, the outbox relay and the reconciler.
package worker

import (
	"context"
	"log/slog"
	"time"
)

// every runs work again and again, with a pause in between, until ctx ends.
// After an error the pause doubles, up to maxPause.
func every(ctx context.Context, log *slog.Logger, what string, pause time.Duration, work func(context.Context) error) {
	const maxPause = 30 * time.Second
	wait := pause
	for sleep(ctx, wait) {
		if err := work(ctx); err != nil && ctx.Err() == nil {
			wait = min(2*wait, max(maxPause, pause))
			log.Error(what+" failed", "error", err, "retry_in", wait.String())
			continue
		}
		wait = pause
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
