package worker

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"seckill/application"
	"seckill/domain"
)

// ConsumerConfig is what can be set about consumers.
type ConsumerConfig struct {
	// Consumers is how many batches may be on their way to the ledger at the
	// same time; each uses one connection of the database's pool.
	Consumers int
	// Batch is about how many orders are taken from the queue at a time.
	Batch int
	// PlaceTimeout bounds one batch from its delivery on. It must be shorter
	// than the queue's backoff, or a slow batch is delivered to somebody else
	// as well.
	PlaceTimeout time.Duration
	Log          *slog.Logger
}

// Consumer reads every partition of the queue and has the engine persist what
// it finds. One goroutine reads a partition. While a batch of it is on its way to
// the ledger, the next is taken already: else the database would wait for it.
type Consumer struct {
	engine *application.Engine
	queue  domain.OrderQueue
	cfg    ConsumerConfig
	slots  chan struct{}
}

// NewConsumer makes a consumer; Run starts it.
func NewConsumer(engine *application.Engine, queue domain.OrderQueue, cfg ConsumerConfig) *Consumer {
	return &Consumer{engine: engine, queue: queue, cfg: cfg, slots: make(chan struct{}, cfg.Consumers)}
}

// Run consumes until ctx ends, and finishes the batches that it has read.
func (c *Consumer) Run(ctx context.Context) {
	var readers sync.WaitGroup
	for p := range c.queue.Partitions() {
		readers.Go(func() { c.read(ctx, p) })
	}
	readers.Wait()
}

// atOnce is how many batches of a partition may be on their way.
const atOnce = 2

func (c *Consumer) read(ctx context.Context, partition int) {
	var writing sync.WaitGroup
	defer writing.Wait()
	free := make(chan struct{}, atOnce)
	wait := firstWait
	for ctx.Err() == nil {
		free <- struct{}{} // a batch is over in time, see persist
		deliveries, err := c.take(ctx, partition)
		if len(deliveries) > 0 {
			writing.Go(func() {
				defer func() { <-free }()
				if err := c.persist(ctx, deliveries); err != nil && ctx.Err() == nil {
					c.cfg.Log.Error("a batch comes back later", "partition", partition, "entries", len(deliveries), "error", err)
				}
			})
			wait = firstWait
			continue
		}
		<-free
		if err == nil || ctx.Err() != nil {
			wait = firstWait
			continue
		}
		c.cfg.Log.Error("consumer failed", "partition", partition, "error", err, "retry_in", wait.String())
		sleep(ctx, wait)
		wait = min(2*wait, maxWait)
	}
}

// take takes entries from the queue; redelivered ones first: they are older.
func (c *Consumer) take(ctx context.Context, partition int) ([]domain.Delivery, error) {
	deliveries, err := c.queue.Reclaim(ctx, partition, c.cfg.Batch)
	if err != nil || len(deliveries) > 0 {
		return deliveries, err
	}
	return c.queue.Receive(ctx, partition, c.cfg.Batch)
}

// Pauses after a failure: short at first, since most outages are.
const firstWait, maxWait = 50 * time.Millisecond, 2 * time.Second

// persist tries a batch again while the ledger is away: there is nothing better
// to do, and the batch is done the moment the ledger is back. It gives up in
// time for the queue to hand the batch to somebody else. Once it has entries it
// goes on although ctx may end: they are this process's to finish.
func (c *Consumer) persist(ctx context.Context, deliveries []domain.Delivery) error {
	work, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.cfg.PlaceTimeout)
	defer cancel()
	select {
	case c.slots <- struct{}{}:
		defer func() { <-c.slots }()
	case <-work.Done():
		return fmt.Errorf("no slot for a batch: %w", work.Err())
	}
	wait := firstWait
	for {
		err := c.engine.Persist(work, deliveries)
		if err == nil || work.Err() != nil || !sleep(ctx, wait) {
			return err
		}
		wait = min(2*wait, maxWait)
	}
}

// Drain persists what is left in the queue, until it is empty or ctx ends. A
// queue that lives in the process's memory needs it before the process ends.
func (c *Consumer) Drain(ctx context.Context) error {
	for {
		depth, err := c.queue.Depth(ctx)
		if err != nil || depth.Orders == 0 {
			return err
		}
		for p := range c.queue.Partitions() {
			deliveries, err := c.take(ctx, p)
			if err == nil && len(deliveries) > 0 {
				err = c.persist(ctx, deliveries)
			}
			if err != nil {
				c.cfg.Log.Error("drain failed", "partition", p, "error", err)
			}
		}
		if !sleep(ctx, 10*time.Millisecond) {
			return ctx.Err()
		}
	}
}
