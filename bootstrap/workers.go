package bootstrap

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"go.uber.org/fx"

	"seckill/adapters/worker"
	"seckill/application"
	"seckill/domain"
)

// firstLook bounds how long the start waits for a hot store that has to be loaded
// anew. Its sales are not ready until they are; the rest of the service is.
const firstLook = 5 * time.Second

// runWorkers starts the loops with the application and stops them before the
// stores close: no new batch is read, batches on their way are finished, and a
// queue in memory is emptied into the ledger.
func runWorkers(lc fx.Lifecycle, config Config, engine *application.Engine, queue domain.OrderQueue, log *slog.Logger) {
	consumer := worker.NewConsumer(engine, queue, worker.ConsumerConfig{
		Consumers: config.Consumers, Batch: config.Batch,
		// A batch is given up before its entries are due to somebody else.
		PlaceTimeout: config.ReclaimAfter * 9 / 10,
		Log:          log,
	})
	sweep := worker.SweeperConfig{
		ExpireEvery: config.ExpireEvery, RelayEvery: config.RelayEvery,
		WatchEvery:     config.WatchEvery,
		ReconcileEvery: config.ReconcileEvery, Repair: config.ReconcileRepair, Log: log,
	}
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	lc.Append(fx.Hook{
		OnStart: func(startCtx context.Context) error {
			running.Go(func() { consumer.Run(ctx) })
			running.Go(func() { worker.Expire(ctx, engine, sweep) })
			running.Go(func() { worker.Relay(ctx, engine, sweep) })
			running.Go(func() { worker.Lag(ctx, queue, config.LagAlarm, log) })
			running.Go(func() { worker.Reconcile(ctx, engine, sweep) })
			// The first look comes before the first grab, and with the consumers at
			// work: they may have to place what a restarted Redis still has queued.
			lookCtx, cancel := context.WithTimeout(startCtx, firstLook)
			defer cancel()
			if err := engine.Watch(lookCtx); err != nil {
				log.Warn("the hot store is not ready yet", "error", err)
			}
			running.Go(func() { worker.Watch(ctx, engine, sweep) })
			return nil
		},
		OnStop: func(stopCtx context.Context) error {
			stop()
			if err := waitFor(stopCtx, &running); err != nil {
				return err
			}
			if config.Stock == "memory" {
				return consumer.Drain(stopCtx)
			}
			return nil
		},
	})
}

func waitFor(ctx context.Context, group *sync.WaitGroup) error {
	done := make(chan struct{})
	go func() { group.Wait(); close(done) }()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
