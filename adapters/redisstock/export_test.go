package redisstock

import (
	"context"
	"time"
)

// Tidy removes consumers that have been silent for idle, instead of an hour.
func (q *Queue) Tidy(ctx context.Context, partition int, idle time.Duration) error {
	stream, err := q.stream(partition)
	if err != nil {
		return err
	}
	return q.tidy(ctx, stream, idle)
}

// PartitionOf is the partition of a sale, for tests that look at keys.
var PartitionOf = partitionOf
