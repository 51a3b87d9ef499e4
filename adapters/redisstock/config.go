package redisstock

import (
	"crypto/rand"
	"log/slog"
	"time"

	"github.com/redis/go-redis/v9"

	"seckill/domain"
)

// Defaults of Config.
const (
	DefaultPrefix       = "seckill"
	DefaultPartitions   = 16
	DefaultGroup        = "orders"
	DefaultReclaimAfter = 5 * time.Second // longer than a batch takes to commit
	DefaultBatch        = 256             // measured: twice as many add little speed, and twice the wait
	DefaultCalls        = 2               // one is decided while the next is on its way
	DefaultGrabTimeout  = 250 * time.Millisecond
)

const (
	maxPartitions    = 1024
	maxCalls         = 16
	reclaimMaxFactor = 16
)

// Config says where a Stock lives and how its queue behaves.
type Config struct {
	// Client runs the scripts. Required.
	Client redis.UniversalClient

	// Blocking runs the queue's blocking reads, so that they never take a
	// grab's connection. Needed by the queue only; default Client.
	Blocking redis.UniversalClient

	// Prefix starts every key: 1–64 characters of A-Z a-z 0-9 . _ : -
	// Default DefaultPrefix.
	Prefix string

	// Partitions is the number of queues that sales are spread over, 1 … 1024.
	// All nodes must agree, and it must not change while anything is held or
	// queued: it decides where a sale's keys are. Default DefaultPartitions.
	Partitions int

	// Group is the consumer group of the streams. Default DefaultGroup.
	Group string

	// Consumer names this process in the group and must be unique.
	// Default: a random name.
	Consumer string

	// ReclaimAfter is how long a delivered entry stays with its consumer before
	// it may be reclaimed. It doubles with every delivery, up to ReclaimMax.
	// Default DefaultReclaimAfter.
	ReclaimAfter time.Duration

	// Batch is how many single claims of a partition share a script call at
	// most, 1 … 1000; 1 gives each a call of its own. Default DefaultBatch.
	Batch int

	// Calls is how many such calls of a partition are on their way at a time,
	// 1 … 16; claims that come meanwhile wait for the next. Default DefaultCalls.
	Calls int

	// GrabTimeout bounds one script call of grabs, from 1ms to 1m. When one takes
	// longer, the partition's grabs are refused at once until the server answers
	// again. Default DefaultGrabTimeout.
	GrabTimeout time.Duration

	// Log hears of servers that do not answer. Default: nobody.
	Log *slog.Logger

	// ReclaimMax bounds the doubling. Default 16 × ReclaimAfter.
	ReclaimMax time.Duration
}

// withDefaults fills what is left open and names the first value out of bounds.
func (c Config) withDefaults() (Config, error) {
	if c.Client == nil {
		return c, domain.Invalid("client", "is missing")
	}
	if c.Blocking == nil {
		c.Blocking = c.Client
	}
	c.Prefix = orDefault(c.Prefix, DefaultPrefix)
	c.Partitions = orDefault(c.Partitions, DefaultPartitions)
	c.Group = orDefault(c.Group, DefaultGroup)
	c.Consumer = orDefault(c.Consumer, rand.Text())
	c.ReclaimAfter = orDefault(c.ReclaimAfter, DefaultReclaimAfter)
	c.Batch = orDefault(c.Batch, DefaultBatch)
	c.Calls = orDefault(c.Calls, DefaultCalls)
	c.GrabTimeout = orDefault(c.GrabTimeout, DefaultGrabTimeout)
	c.Log = orDefault(c.Log, slog.New(slog.DiscardHandler))
	c.ReclaimMax = orDefault(c.ReclaimMax, reclaimMaxFactor*c.ReclaimAfter)
	switch {
	case !allowed(c.Prefix, 64, ":"):
		return c, domain.Invalid("prefix", "must be 1 to 64 characters of A-Z a-z 0-9 . _ : -")
	case c.Partitions < 1 || c.Partitions > maxPartitions:
		return c, domain.Invalid("partitions", "must be from 1 to %d", maxPartitions)
	case c.Batch < 1 || c.Batch > maxClaims:
		return c, domain.Invalid("batch", "must be from 1 to %d", maxClaims)
	case c.Calls < 1 || c.Calls > maxCalls:
		return c, domain.Invalid("calls", "must be from 1 to %d", maxCalls)
	case !allowed(c.Group, 128, ":@"):
		return c, domain.Invalid("group", "must be 1 to 128 characters of A-Z a-z 0-9 . _ : @ -")
	case !allowed(c.Consumer, 128, ":@"):
		return c, domain.Invalid("consumer", "must be 1 to 128 characters of A-Z a-z 0-9 . _ : @ -")
	case c.ReclaimAfter < time.Millisecond || c.ReclaimAfter > time.Hour:
		return c, domain.Invalid("reclaimAfter", "must be from 1ms to 1h")
	case c.GrabTimeout < time.Millisecond || c.GrabTimeout > time.Minute:
		return c, domain.Invalid("grabTimeout", "must be from 1ms to 1m")
	case c.ReclaimMax < c.ReclaimAfter || c.ReclaimMax > 24*time.Hour:
		return c, domain.Invalid("reclaimMax", "must be from reclaimAfter to 24h")
	}
	return c, nil
}

func orDefault[T comparable](value, otherwise T) T {
	var zero T
	if value == zero {
		return otherwise
	}
	return value
}
