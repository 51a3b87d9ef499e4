package redisstock

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"seckill/domain"
)

const (
	// receiveWait is how long Receive waits for an entry, receiveSlice how long
	// one blocking read takes at most: a cancelled call returns after that.
	receiveWait  = time.Second
	receiveSlice = 100 * time.Millisecond
	// readGrace is what a blocking read gets on top of its slice.
	readGrace = time.Second
	// maxReceive bounds the entries of one read; each may hold 1000 orders.
	maxReceive = 1000
)

// Queue is the order queue on Redis streams: one stream and one consumer group
// per partition. It has no bound of its own and needs none: an entry is written
// for accepted holds only, and those are bounded by the stock. Nothing is
// trimmed; an acknowledged entry is deleted.
//
// The group is made when it is missing, and always at the stream's beginning,
// so that entries written before it are not skipped.
type Queue struct {
	stock    *Stock
	reclaims []atomic.Int64 // calls of Reclaim by partition
	paces    []pace         // by partition
}

var _ domain.OrderQueue = (*Queue)(nil)

func newQueue(stock *Stock) *Queue {
	return &Queue{stock: stock, reclaims: make([]atomic.Int64, stock.config.Partitions), paces: make([]pace, stock.config.Partitions)}
}

// Partitions implements domain.OrderQueue.
func (q *Queue) Partitions() int { return q.stock.config.Partitions }

// Receive implements domain.OrderQueue. A read that has begun is finished even
// when ctx ends meanwhile, so that its entries are not left with a consumer who
// does not know of them; that delays the return by at most 0.1 s while Redis
// answers. A reply lost on the way leaves its entries to Reclaim.
func (q *Queue) Receive(ctx context.Context, partition, limit int) ([]domain.Delivery, error) {
	stream, err := q.stream(partition)
	if err != nil || limit < 1 {
		return nil, err
	}
	for range int(receiveWait / receiveSlice) {
		if err := ctx.Err(); err != nil {
			return nil, unavailable(err)
		}
		entries, err := q.readNew(ctx, stream, q.paces[partition].entriesFor(limit))
		if err != nil {
			return nil, err
		}
		if len(entries) > 0 {
			deliveries, orders := make([]domain.Delivery, len(entries)), 0
			for i, entry := range entries {
				deliveries[i] = q.decode(partition, entry, 1)
				orders += len(deliveries[i].Intents)
			}
			q.paces[partition].saw(len(entries), orders)
			return deliveries, nil
		}
	}
	return nil, nil
}

// readNew reads entries that were never delivered, waiting for at most one slice.
func (q *Queue) readNew(ctx context.Context, stream string, count int) ([]redis.XMessage, error) {
	config := q.stock.config
	var streams []redis.XStream
	err := q.withGroup(ctx, stream, func() (err error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), receiveSlice+readGrace)
		defer cancel()
		streams, err = config.Blocking.XReadGroup(ctx, &redis.XReadGroupArgs{
			Group:    config.Group,
			Consumer: config.Consumer,
			Streams:  []string{stream, ">"},
			Count:    int64(count),
			Block:    receiveSlice,
		}).Result()
		return err
	})
	switch {
	case errors.Is(err, redis.Nil), groupMissing(err):
		return nil, nil // gone again: the next read makes it
	case err != nil:
		return nil, unavailable(err)
	case len(streams) == 0:
		return nil, nil
	}
	return streams[0].Messages, nil
}

// withGroup runs a command of the consumer group, and once more after making
// the group where there was none: at the first call, or after Redis lost its data.
func (q *Queue) withGroup(ctx context.Context, stream string, command func() error) error {
	err := command()
	if !groupMissing(err) {
		return err
	}
	err = q.stock.config.Client.XGroupCreateMkStream(ctx, stream, q.stock.config.Group, "0").Err()
	if err != nil && !redis.HasErrorPrefix(err, "BUSYGROUP") {
		return err
	}
	return command()
}

// groupMissing recognizes a command that found no group, and a blocked read
// whose stream was removed.
func groupMissing(err error) bool {
	return redis.HasErrorPrefix(err, "NOGROUP") || redis.HasErrorPrefix(err, "UNBLOCKED")
}

// Ack implements domain.OrderQueue. Entries of one partition are one step per
// 1000 of them. Repeat after an error.
func (q *Queue) Ack(ctx context.Context, deliveries ...domain.Delivery) error {
	batches := map[int][]domain.Delivery{}
	for _, delivery := range deliveries {
		if _, err := q.stream(delivery.Partition); err != nil {
			return err
		}
		if !entryID(delivery.ID) {
			return domain.Invalid("delivery", "has no id of this queue")
		}
		batches[delivery.Partition] = append(batches[delivery.Partition], delivery)
	}
	var problems []error
	for partition, batch := range batches {
		for len(batch) > 0 {
			n := min(len(batch), maxIDs)
			if err := q.ack(ctx, partition, batch[:n]); err != nil {
				problems = append(problems, err)
			}
			batch = batch[n:]
		}
	}
	return errors.Join(problems...)
}

func (q *Queue) ack(ctx context.Context, partition int, batch []domain.Delivery) error {
	tag := q.stock.tag(partition)
	keys := []string{tag + "queue", tag + "depth"}
	places := map[domain.SaleID]int{}
	args := append(make([]any, 0, 1+2*len(batch)), q.stock.config.Group)
	for _, delivery := range batch {
		place := 0 // an entry that could not be decoded may name no sale
		if delivery.Sale != (domain.SaleID{}) {
			if place = places[delivery.Sale]; place == 0 {
				keys = append(keys, tag+"sale:"+delivery.Sale.String())
				place = len(keys)
				places[delivery.Sale] = place
			}
		}
		args = append(args, delivery.ID, place)
	}
	if err := ackScript.Run(ctx, q.stock.config.Client, keys, args...).Err(); err != nil {
		return unavailable(err)
	}
	return nil
}

// Depth implements domain.OrderQueue. It reads one partition after the other.
func (q *Queue) Depth(ctx context.Context) (domain.Depth, error) {
	var depth domain.Depth
	for partition := range q.Partitions() {
		tag := q.stock.tag(partition)
		reply, err := q.stock.read(ctx, depthScript, []string{tag + "queue", tag + "depth"})
		if err != nil {
			return domain.Depth{}, err
		}
		orders, err := reply.number(0)
		if err != nil {
			return domain.Depth{}, err
		}
		age, err := reply.number(1)
		if err != nil {
			return domain.Depth{}, err
		}
		depth.Orders += orders
		depth.Oldest = max(depth.Oldest, time.Duration(age)*time.Millisecond)
	}
	return depth, nil
}

func (q *Queue) stream(partition int) (string, error) {
	if partition < 0 || partition >= q.Partitions() {
		return "", domain.Invalid("partition", "must be from 0 to %d", q.Partitions()-1)
	}
	return q.stock.tag(partition) + "queue", nil
}

// entryID says whether text is a stream entry's id, "<ms>-<n>".
func entryID(text string) bool {
	ms, n, found := strings.Cut(text, "-")
	return found && digits(ms) && digits(n)
}

func digits(text string) bool {
	return len(text) > 0 && len(text) <= 20 && strings.Trim(text, "0123456789") == ""
}
