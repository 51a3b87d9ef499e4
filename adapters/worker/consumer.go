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
	// Consumers is how many batches are placed in the ledger at the same time;
	// each uses up to application.Config.PlaceAtOnce connections to it.
	Consumers int
	// Batch is about how many orders are taken from the queue at a time, at most.
	// Fewer are while the ledger is slow.
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
	size   *size
}

// NewConsumer makes a consumer; Run starts it.
func NewConsumer(engine *application.Engine, queue domain.OrderQueue, cfg ConsumerConfig) *Consumer {
	return &Consumer{engine: engine, queue: queue, cfg: cfg, slots: make(chan struct{}, cfg.Consumers), size: newSize(cfg.Batch)}
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
		asked := c.size.get()
		deliveries, err := c.take(ctx, partition, asked)
		if len(deliveries) > 0 {
			writing.Go(func() {
				defer func() { <-free }()
				if err := c.persist(ctx, deliveries, asked); err != nil && ctx.Err() == nil {
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
func (c *Consumer) take(ctx context.Context, partition, orders int) ([]domain.Delivery, error) {
	deliveries, err := c.queue.Reclaim(ctx, partition, orders)
	if err != nil || len(deliveries) > 0 {
		return deliveries, err
	}
	return c.queue.Receive(ctx, partition, orders)
}

// Pauses after a failure: short at first, since most outages are.
const firstWait, maxWait = 50 * time.Millisecond, 2 * time.Second

// persist places a batch, a piece at a time since a read may have far more orders
// than were asked for: what is placed by the end of its time stays so, and the
// queue hands the rest to somebody else. Once it has entries it goes on although
// ctx may end: they are this process's to finish.
func (c *Consumer) persist(ctx context.Context, deliveries []domain.Delivery, asked int) error {
	start := time.Now()
	work, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.cfg.PlaceTimeout)
	defer cancel()
	defer func() { c.size.note(asked, orders(deliveries), time.Since(start), c.cfg.PlaceTimeout) }()
	select {
	case c.slots <- struct{}{}:
		defer func() { <-c.slots }()
	case <-work.Done():
		return fmt.Errorf("no slot for a batch: %w", work.Err())
	}
	for rest := deliveries; len(rest) > 0; {
		n := piece(rest, c.cfg.Batch)
		if err := c.place(ctx, work, rest[:n]); err != nil {
			return err
		}
		rest = rest[n:]
	}
	return nil
}

// place tries again while the ledger is away: there is nothing better to do, and
// the orders are placed the moment it is back.
func (c *Consumer) place(ctx, work context.Context, deliveries []domain.Delivery) error {
	wait := firstWait
	for {
		err := c.engine.Persist(work, deliveries)
		if err == nil || work.Err() != nil || !sleep(ctx, wait) {
			return err
		}
		wait = min(2*wait, maxWait)
	}
}

// piece is how many of the deliveries have at most so many orders; at least 1.
func piece(deliveries []domain.Delivery, most int) int {
	n := 1
	for n < len(deliveries) && orders(deliveries[:n+1]) <= most {
		n++
	}
	return n
}

func orders(deliveries []domain.Delivery) int {
	n := 0
	for _, d := range deliveries {
		n += len(d.Intents)
	}
	return n
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
			asked := c.size.get()
			deliveries, err := c.take(ctx, p, asked)
			if err == nil && len(deliveries) > 0 {
				err = c.persist(ctx, deliveries, asked)
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
