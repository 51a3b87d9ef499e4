package worker

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"seckill/application"
	"seckill/domain"
)

// Watch looks for losses of the hot store, until ctx ends. The first look is the
// caller's.
func Watch(ctx context.Context, engine *application.Engine, cfg SweeperConfig) {
	every(ctx, cfg.Log, "watch of the hot store", cfg.WatchEvery, time.Second, engine.Watch)
}

// longPause is the longest pause after failures where nobody waits for the work.
const longPause = 30 * time.Second

// SweeperConfig is what can be set about the sweepers.
type SweeperConfig struct {
	ExpireEvery    time.Duration // how often unpaid orders past their deadline are looked for
	RelayEvery     time.Duration // how often effects that nobody has applied are looked for
	WatchEvery     time.Duration // how often losses of the hot store are looked for
	ReconcileEvery time.Duration // how often the stores are compared; 0: only on demand
	Repair         bool          // whether the periodic comparison repairs what it finds
	Log            *slog.Logger
}

// Expire closes unpaid orders past their deadline, until ctx ends.
func Expire(ctx context.Context, engine *application.Engine, cfg SweeperConfig) {
	every(ctx, cfg.Log, "expiry", cfg.ExpireEvery, longPause, func(ctx context.Context) error {
		_, err := engine.Expire(ctx)
		return err
	})
}

// Relay applies effects that were left behind, until ctx ends.
func Relay(ctx context.Context, engine *application.Engine, cfg SweeperConfig) {
	every(ctx, cfg.Log, "relay", cfg.RelayEvery, longPause, func(ctx context.Context) error {
		_, err := engine.Relay(ctx)
		return err
	})
}

// Reconcile compares the stores of every sale, until ctx ends.
func Reconcile(ctx context.Context, engine *application.Engine, cfg SweeperConfig) {
	if cfg.ReconcileEvery == 0 {
		return
	}
	every(ctx, cfg.Log, "reconcile", cfg.ReconcileEvery, longPause, func(ctx context.Context) error {
		_, err := engine.ReconcileAll(ctx, cfg.Repair, false)
		if errors.Is(err, domain.ErrBusy) {
			return nil // another node is at it
		}
		return err
	})
}
