package redisstock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"seckill/domain"
)

const (
	// pendingPage and pendingPages bound what one Reclaim looks through.
	pendingPage  = 200
	pendingPages = 50
	// Every so many calls of Reclaim for a partition, the first included, names
	// of consumers that have been silent for consumerIdle are removed.
	tidyEvery    = 500
	consumerIdle = time.Hour
)

// Reclaim implements domain.OrderQueue. An entry of a slow but living consumer
// may be taken from it too: placing an order twice has no effect.
func (q *Queue) Reclaim(ctx context.Context, partition, limit int) ([]domain.Delivery, error) {
	stream, err := q.stream(partition)
	if err != nil || limit < 1 {
		return nil, err
	}
	attempts, ids, err := q.due(ctx, stream, q.paces[partition].entriesFor(limit))
	if err != nil {
		return nil, err
	}
	if q.reclaims[partition].Add(1)%tidyEvery == 1 {
		if err := q.tidy(ctx, stream, consumerIdle); err != nil {
			return nil, err
		}
	}
	if len(ids) == 0 {
		return nil, nil
	}
	config := q.stock.config
	// Who is quicker resets the idle time: an entry is claimed by one caller.
	// An entry that was acknowledged meanwhile is not in the answer.
	entries, err := config.Client.XClaim(ctx, &redis.XClaimArgs{
		Stream:   stream,
		Group:    config.Group,
		Consumer: config.Consumer,
		MinIdle:  config.ReclaimAfter,
		Messages: ids,
	}).Result()
	if err != nil {
		return nil, unavailable(err)
	}
	deliveries, orders := make([]domain.Delivery, len(entries)), 0
	for i, entry := range entries {
		deliveries[i] = q.decode(partition, entry, attempts[entry.ID]+1)
		orders += len(deliveries[i].Intents)
	}
	q.paces[partition].saw(len(entries), orders)
	return deliveries, nil
}

// due finds up to limit entries whose backoff is over, oldest first, and how
// often each was delivered.
func (q *Queue) due(ctx context.Context, stream string, limit int) (attempts map[string]int, ids []string, err error) {
	config := q.stock.config
	attempts = map[string]int{}
	start := "-"
	for range pendingPages {
		var page []redis.XPendingExt
		err := q.withGroup(ctx, stream, func() (err error) {
			page, err = config.Client.XPendingExt(ctx, &redis.XPendingExtArgs{
				Stream: stream,
				Group:  config.Group,
				Idle:   config.ReclaimAfter,
				Start:  start,
				End:    "+",
				Count:  pendingPage,
			}).Result()
			return err
		})
		if err != nil && !errors.Is(err, redis.Nil) {
			return nil, nil, unavailable(err)
		}
		for _, entry := range page {
			if entry.Idle < config.backoff(int(entry.RetryCount)) {
				continue
			}
			attempts[entry.ID] = int(entry.RetryCount)
			if ids = append(ids, entry.ID); len(ids) == limit {
				return attempts, ids, nil
			}
		}
		if len(page) < pendingPage {
			break
		}
		start = "(" + page[len(page)-1].ID
	}
	return attempts, ids, nil
}

// backoff is how long an entry stays with its consumer after a delivery.
func (c Config) backoff(attempts int) time.Duration {
	wait := c.ReclaimAfter
	for range attempts - 1 {
		if wait >= c.ReclaimMax/2 {
			return c.ReclaimMax
		}
		wait *= 2
	}
	return wait
}

// tidy removes the names of consumers that have been silent for so long that
// their processes must be gone.
func (q *Queue) tidy(ctx context.Context, stream string, idle time.Duration) error {
	config := q.stock.config
	err := tidyScript.Run(ctx, config.Client, []string{stream}, config.Group, config.Consumer, idle.Milliseconds()).Err()
	if err != nil {
		return fmt.Errorf("remove idle consumers: %w", unavailable(err))
	}
	return nil
}
