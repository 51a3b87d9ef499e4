package redisstock_test

import (
	"crypto/rand"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"

	"seckill/adapters/redisstock"
	"seckill/domain"
	"seckill/test/conformance"
	"seckill/test/harness"
)

func TestMain(m *testing.M) {
	logging.Disable() // tests stop servers on purpose
	harness.Main(m)
}

const reclaimAfter = 50 * time.Millisecond

func TestStockConformance(t *testing.T) {
	conformance.Stock(t, func(t *testing.T) conformance.StockWorld { return open(t).conformance(t) })
	conformance.StockAtEveryMoment(t, func(t *testing.T) conformance.StockWorld { return open(t).conformance(t) })
}

func TestQueueConformance(t *testing.T) {
	conformance.Queue(t, func(t *testing.T) conformance.StockWorld { return open(t).conformance(t) })
}

// world is a Stock on the shared Redis under a prefix of its own.
type world struct {
	*redisstock.Stock
	client redis.UniversalClient
	prefix string
}

func open(t testing.TB) *world {
	return openAt(t, redisstock.ConnectConfig{Addrs: []string{harness.SharedRedis(t).Addr}})
}

func openAt(t testing.TB, config redisstock.ConnectConfig) *world {
	t.Helper()
	// The tests are about results; a busy machine must not turn them into time-outs.
	config.DialTimeout, config.ReadTimeout, config.PoolTimeout = 10*time.Second, 10*time.Second, 10*time.Second
	client, blocking, err := redisstock.Connect(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = client.Close()
		_ = blocking.Close()
	})
	w := &world{client: client, prefix: "test-" + rand.Text()}
	w.Stock = w.another(t, redisstock.Config{Client: client, Blocking: blocking, ReclaimAfter: reclaimAfter})
	return w
}

// another is a further Stock on the world's keys, as another process would have it.
func (w *world) another(t testing.TB, config redisstock.Config) *redisstock.Stock {
	t.Helper()
	config.Prefix = w.prefix
	if config.Partitions == 0 {
		config.Partitions = 3
	}
	if config.Client == nil {
		config.Client = w.client
	}
	if config.GrabTimeout == 0 {
		config.GrabTimeout = 10 * time.Second
	}
	stock, err := redisstock.New(config)
	if err != nil {
		t.Fatal(err)
	}
	return stock
}

func (w *world) conformance(t testing.TB) conformance.StockWorld {
	return conformance.StockWorld{Stock: w.Stock, Queue: w.Queue(), Now: w.clock(t), Reclaim: reclaimAfter}
}

// clock reads the time of the server.
func (w *world) clock(t testing.TB) func() time.Time {
	return func() time.Time {
		now, err := w.client.Time(t.Context()).Result()
		if err != nil {
			t.Fatal(err)
		}
		return now
	}
}

var _ domain.Stock = (*world)(nil)
