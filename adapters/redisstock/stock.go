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
// ids are one step per 1000. Each may be repeated after an error.
//
// Figures in Redis that are no plain integers, and keys of another type, are an
// ErrUnavailable with the name of what is damaged; nothing is changed then.
//
// A server that is out of memory takes no grab, but it still takes what ends
// orders and frees memory: Ack, Release, Settle, SetGate and Archive.
type Stock struct {
	config  Config
	queue   *Queue
	lanes   []lane // by partition
	layouts layouts
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
	for i := range stock.lanes {
		stock.lanes[i].stock = stock
	}
	return stock, nil
}

// Queue is where Reserve and Requeue put their order intents.
func (s *Stock) Queue() *Queue { return s.queue }

// Level implements domain.Admission.
func (s *Stock) Level(ctx context.Context, sale domain.SaleID) (domain.Level, error) {
	names := []string{"epoch", "total", "available", "held", "sold", "queued"}
	values, err := s.config.Client.HMGet(ctx, s.keys(sale).sale, append(names, "state")...).Result()
	if err != nil {
		return domain.Level{}, unavailable(err)
	}
	state, _ := values[len(names)].(string)
	if state == "" || state == sealedState {
		return domain.Level{}, domain.ErrNotReady
	}
	level := domain.Level{State: domain.State(state)}
	fields := []*int64{&level.Epoch, &level.Total, &level.Available, &level.Held, &level.Sold, &level.Queued}
	for i, field := range fields {
		text, _ := values[i].(string)
		if *field, err = parseFigure(text); err != nil {
			return domain.Level{}, unavailable(fmt.Errorf("SECKILL corrupt %s", names[i]))
		}
	}
	return level, nil
}

// Hold implements domain.Admission. A sealed sale still shows its holds.
func (s *Stock) Hold(ctx context.Context, sale domain.SaleID, id domain.OrderID) (domain.Hold, error) {
	record, err := s.config.Client.HGet(ctx, s.keys(sale).holds, string(id)).Result()
	if errors.Is(err, redis.Nil) {
		return domain.Hold{}, domain.ErrNotFound
	}
	if err != nil {
		return domain.Hold{}, unavailable(err)
	}
	return decodeHold(id, record)
}
