package redisstock

import (
	"context"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"

	"seckill/domain"
)

// sealedState stands in a sale's state while it is not ready.
const sealedState = "sealed"

// Stock is the hot store in Redis, strategy "lua": one script decides a batch
// of claims, records the holds and queues their intents. The time is Redis TIME.
//
// Exceptions to "every method is one atomic step": Preheat writes a large load
// in parts, behind a sealed sale; Release, Settle and Requeue of more than 1000
// ids are one step per 1000. Each may be repeated after an error. A sale with
// several segments has one step per segment; Level and Audit are read again
// until nothing has moved between the segments.
//
// Figures in Redis that are no plain integers, and keys of another type, are an
// ErrUnavailable with the name of what is damaged; nothing is changed then.
//
// A server that is out of memory takes no grab, but it still takes what ends
// orders and frees memory: Ack, Release, Settle, SetGate and Archive.
type Stock struct {
	config Config
	queue  *Queue
	lanes  []lane // by partition
	// breakers by partition; a call for several sales is one partition's.
	breakers []*breaker
	terms    []terms // by partition
	layouts  layouts
}

var _ domain.Stock = (*Stock)(nil)

// New makes a Stock. It does not talk to Redis yet.
func New(config Config) (*Stock, error) {
	config, err := config.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("redisstock: %w", err)
	}
	stock := &Stock{config: config}
	stock.queue = newQueue(stock)
	stock.lanes = make([]lane, config.Partitions)
	stock.terms = make([]terms, config.Partitions)
	for i := range stock.lanes {
		stock.lanes[i].stock = stock
		stock.breakers = append(stock.breakers, newBreaker(i, config.GrabTimeout, config.Log))
	}
	return stock, nil
}

// Queue is where Reserve and Requeue put their order intents.
func (s *Stock) Queue() *Queue { return s.queue }

// Level implements domain.Admission.
func (s *Stock) Level(ctx context.Context, sale domain.SaleID) (domain.Level, error) {
	layout, err := s.find(ctx, sale)
	if err != nil {
		return domain.Level{}, err
	}
	readings, err := s.survey(ctx, layout)
	if err != nil {
		return domain.Level{}, err
	}
	level := readings[0].Level
	for _, r := range readings[1:] {
		level = sum(level, r.Level)
	}
	return level, nil
}

// sum adds a segment's account to that of others. Epochs differ only when a
// segment is a left-over of an earlier load; then the sale is on none of them.
func sum(a, b domain.Level) domain.Level {
	return domain.Level{
		Epoch:     min(a.Epoch, b.Epoch),
		State:     a.State,
		Total:     a.Total + b.Total,
		Available: a.Available + b.Available,
		Held:      a.Held + b.Held,
		Sold:      a.Sold + b.Sold,
		Queued:    a.Queued + b.Queued,
	}
}

// Hold implements domain.Admission. A sealed sale still shows its holds.
func (s *Stock) Hold(ctx context.Context, sale domain.SaleID, id domain.OrderID) (domain.Hold, error) {
	layout, err := s.find(ctx, sale)
	if err != nil {
		return domain.Hold{}, err
	}
	hold, err := domain.Hold{}, domain.ErrNotFound
	for _, keys := range layout.segments {
		record, problem := s.config.Client.HGet(ctx, keys.holds, string(id)).Result()
		switch {
		case errors.Is(problem, redis.Nil):
			continue
		case problem != nil:
			return domain.Hold{}, unavailable(problem)
		}
		// Other segments than the buyer's may have a tombstone.
		if hold, err = decodeHold(id, record); err != nil || hold.Quantity > 0 {
			break
		}
	}
	return hold, err
}
