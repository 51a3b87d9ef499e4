// Package bootstrap wires the engine: configuration, the choice of adapters and
// the life of their connections and loops.
//
// Another program embeds the engine with
//
//	fx.New(fx.Supply(config), bootstrap.Module, fx.Invoke(func(e *application.Engine) { … }))
//
// and swaps an adapter with fx.Decorate on the port that it implements.
package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/fx"

	"seckill/adapters/memory"
	"seckill/adapters/redislock"
	"seckill/adapters/redisstock"
	"seckill/adapters/sqlstore"
	"seckill/adapters/system"
	"seckill/adapters/telemetry"
	"seckill/application"
	"seckill/domain"
)

// startTimeout bounds each store's first answer.
const startTimeout = 10 * time.Second

// Stores is the engine over its stores, with nothing that runs by itself. It
// needs a Config and a *slog.Logger, as fx.Supply gives them. Constructors
// connect, so a store that cannot be used is an error of the application's start.
var Stores = fx.Module("stores", fx.Provide(
	openStore,
	openHot,
	newEngine,
	newHealth,
	telemetry.New,
	func() domain.Clock { return system.Clock{} },
	func() domain.IDs { return system.IDs{} },
), fx.Invoke(agree))

// Module is the engine with its loops: consumers, expiry, relay, reconcile. It
// has no listeners: other modules of the process call the use cases directly.
var Module = fx.Module("seckill", Stores, fx.Invoke(prepare, runWorkers))

// ledger is the SQL store under each of the ports that it implements.
type ledger struct {
	fx.Out
	Store       *sqlstore.Store
	Orders      domain.Orders
	Outbox      domain.Outbox
	DeadLetters domain.DeadLetters
	Activities  domain.Activities
	Fences      domain.Fences
	Deployment  domain.Deployment
}

func openStore(lc fx.Lifecycle, config Config, log *slog.Logger) (ledger, error) {
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	store, err := sqlstore.Open(ctx, config.LedgerConfig())
	if errors.Is(err, domain.ErrUnavailable) {
		return ledger{}, noDatabase(err)
	}
	if err != nil {
		return ledger{}, fmt.Errorf("%w (SECKILL_DATABASE)", err)
	}
	lc.Append(fx.StopHook(store.Close))
	if err := store.CheckSchema(ctx); err != nil {
		return ledger{}, fmt.Errorf("database: %w", err)
	}
	if err := refuse(log, "database", "allow_lossy_database", config.AllowLossyDatabase, store.CheckDurable(ctx)); err != nil {
		return ledger{}, err
	}
	return ledger{
		Store: store, Orders: store, Outbox: store, DeadLetters: store,
		Activities: store, Fences: store, Deployment: store,
	}, nil
}

// refuse makes an error of what is unsafe with a store, unless a setting allows it.
func refuse(log *slog.Logger, store, setting string, allowed bool, unsafe error) error {
	switch {
	case unsafe == nil:
		return nil
	case allowed:
		log.Warn("a store may lose what was confirmed", "store", store, "error", unsafe)
		return nil
	}
	return fmt.Errorf("%s: %w (or set %s, SECKILL_%s=true)", store, unsafe, setting, strings.ToUpper(setting))
}

func noDatabase(err error) error {
	return fmt.Errorf("database: %w: start it, create the database and its user, or set another one (SECKILL_DATABASE)", err)
}

// Migrate applies the versioned migrations to the configured database.
func Migrate(ctx context.Context, config Config, log *slog.Logger) error {
	err := sqlstore.Migrate(ctx, config.LedgerConfig(), func(format string, args ...any) {
		log.Info(fmt.Sprintf(format, args...))
	})
	if errors.Is(err, domain.ErrUnavailable) {
		return noDatabase(err)
	}
	return err
}

// hot is everything that lives beside the ledger.
type hot struct {
	fx.Out
	Stock domain.Stock
	Queue domain.OrderQueue
	Lock  domain.Lock
	Ping  pinger
	// Continuity is nil for a store that ends with the process or is the ledger's.
	Continuity domain.Continuity
}

// pinger asks the hot store for a sign of life.
type pinger func(context.Context) error

func openHot(lc fx.Lifecycle, config Config, clock domain.Clock, store *sqlstore.Store, fences domain.Fences, metrics *telemetry.Metrics, log *slog.Logger) (hot, error) {
	switch config.Stock {
	case "memory":
		stock := memory.NewStock(clock, memory.WithBackoff(config.ReclaimAfter, 16*config.ReclaimAfter))
		return hot{
			Stock: stock, Queue: stock.Queue(), Lock: memory.NewLock(fences, config.Lock.Wait),
			Ping: func(context.Context) error { return nil },
		}, nil
	case "sql":
		stock, err := sqlstore.NewStock(store, sqlstore.StockConfig{ReclaimAfter: config.ReclaimAfter})
		if err != nil {
			return hot{}, err
		}
		return hot{
			Stock: stock, Queue: stock.Queue(), Lock: memory.NewLock(fences, config.Lock.Wait),
			Ping: func(ctx context.Context) error { _, err := store.Activities(ctx, 0, 1); return err },
		}, nil
	}
	return openRedis(lc, config, fences, metrics, log)
}

func openRedis(lc fx.Lifecycle, config Config, fences domain.Fences, metrics *telemetry.Metrics, log *slog.Logger) (hot, error) {
	redisstock.LogTo(log)
	client, blocking, err := redisstock.Connect(config.RedisConfig())
	if err != nil {
		return hot{}, fmt.Errorf("redis: %w", err)
	}
	lc.Append(fx.StopHook(client.Close))
	lc.Append(fx.StopHook(blocking.Close))
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	if err := client.Ping(ctx).Err(); err != nil {
		return hot{}, fmt.Errorf("redis: no answer from %v: %w: start Redis there or set redis.addrs (SECKILL_REDIS_ADDRS)", config.Redis.Addrs, err)
	}
	if err := refuse(log, "redis", "allow_eviction", config.AllowEviction, redisstock.CheckKeeps(ctx, client)); err != nil {
		return hot{}, err
	}
	stock, queue, err := openStrategy(config.Stock, redisstock.Config{
		Client: client, Blocking: blocking, Prefix: config.Redis.Prefix,
		Partitions: config.Redis.Partitions, ReclaimAfter: config.ReclaimAfter,
		Batch: config.Redis.Batch, Calls: config.Redis.Calls, GrabTimeout: config.Redis.GrabTimeout, Log: log,
	})
	if err != nil {
		return hot{}, fmt.Errorf("redis: %w", err)
	}
	quorum, err := openQuorum(lc, config)
	if err != nil {
		return hot{}, err
	}
	lock := redislock.New(redislock.Config{
		Client: client, Quorum: quorum, Fences: fences, Prefix: config.Redis.Prefix + ":", Wait: config.Lock.Wait, Logger: log,
		Observer: redislock.Observer{Asked: metrics.LockAsked, Held: metrics.LockHeld},
	})
	return hot{
		Stock: stock, Queue: queue, Lock: lock, Continuity: stock,
		Ping: func(ctx context.Context) error { return client.Ping(ctx).Err() },
	}, nil
}

// openQuorum connects to the servers that the lock is had on, if they are not
// the stock's. A minority of them may be down.
func openQuorum(lc fx.Lifecycle, config Config) ([]redis.UniversalClient, error) {
	var servers []redis.UniversalClient
	for _, addr := range config.Lock.Quorum {
		connect := config.RedisConfig()
		connect.Addrs, connect.Cluster, connect.Master, connect.BlockingPool = []string{addr}, false, "", 1
		client, blocking, err := redisstock.Connect(connect)
		if err != nil {
			return nil, fmt.Errorf("lock.quorum: %w", err)
		}
		lc.Append(fx.StopHook(client.Close))
		lc.Append(fx.StopHook(blocking.Close))
		servers = append(servers, client)
	}
	return servers, nil
}

// redisStock is what all strategies in Redis are.
type redisStock interface {
	domain.Stock
	domain.Continuity
}

// openStrategy makes the hot store in Redis that decides as the setting says.
func openStrategy(name string, config redisstock.Config) (redisStock, domain.OrderQueue, error) {
	switch name {
	case "incr":
		stock, err := redisstock.NewIncr(config)
		if err != nil {
			return nil, nil, err
		}
		return stock, stock.Queue(), nil
	case "watch":
		stock, err := redisstock.NewWatch(config)
		if err != nil {
			return nil, nil, err
		}
		return stock, stock.Queue(), nil
	case "lock":
		stock, err := redisstock.NewLocked(config)
		if err != nil {
			return nil, nil, err
		}
		return stock, stock.Queue(), nil
	}
	stock, err := redisstock.New(config)
	if err != nil {
		return nil, nil, err
	}
	return stock, stock.Queue(), nil
}

// maxSegments is how many segments the hot store may split a sale into. Memory
// and SQL take any number and do not split.
func (c Config) maxSegments() int {
	switch c.Stock {
	case "lua":
		return min(c.Redis.Partitions, domain.MaxSegments)
	case "incr", "watch", "lock":
		return 1
	}
	return domain.MaxSegments
}

type enginePorts struct {
	fx.In
	Stock       domain.Stock
	Queue       domain.OrderQueue
	Orders      domain.Orders
	Outbox      domain.Outbox
	DeadLetters domain.DeadLetters
	Activities  domain.Activities
	Lock        domain.Lock
	Clock       domain.Clock
	IDs         domain.IDs
	Continuity  domain.Continuity
}

func newEngine(config Config, ports enginePorts, metrics *telemetry.Metrics, log *slog.Logger) *application.Engine {
	return application.New(application.Ports{
		Stock: ports.Stock, Queue: ports.Queue, Orders: ports.Orders, Outbox: ports.Outbox,
		DeadLetters: ports.DeadLetters, Activities: ports.Activities, Lock: ports.Lock,
		Clock: ports.Clock, IDs: ports.IDs, Continuity: ports.Continuity,
	}, application.Config{
		Accept: config.Accept, AcceptWait: config.AcceptWait,
		LockTTL: config.Lock.TTL, LockPerActivity: config.Lock.Scope == "activity",
		MaxSegments: config.maxSegments(),
		// A dead consumer's entries are taken over in that time, and placed.
		DrainWait: 2 * config.ReclaimAfter,
		// All of them together leave half of the pool to requests.
		PlaceAtOnce: max(1, min(application.DefaultPlaceAtOnce, config.DatabasePool/(2*config.Consumers))),
		Log:         log, Observer: metrics,
	})
}

// agree refuses a node that would keep its stock elsewhere than the nodes that
// use the same ledger, or whose keys or locks would not be theirs.
func agree(lc fx.Lifecycle, config Config, deployment domain.Deployment) {
	settings := [][2]string{{"stock", config.Stock}, {"lock.scope", config.Lock.Scope}}
	if config.onRedis() {
		settings = [][2]string{
			{"stock", config.Stock},
			{"redis.prefix", config.Redis.Prefix},
			{"redis.partitions", strconv.Itoa(config.Redis.Partitions)},
			{"lock.scope", config.Lock.Scope},
			{"lock.quorum", strings.Join(config.Lock.Quorum, ",")},
		}
	}
	lc.Append(fx.StartHook(func(ctx context.Context) error {
		for _, s := range settings {
			key, mine := s[0], s[1]
			theirs, err := deployment.Agree(ctx, key, mine)
			if err != nil {
				return fmt.Errorf("database: %w", err)
			}
			if theirs != mine {
				return domain.Invalid(key, "is %s here and %s on the nodes that have used this database: set it alike, "+
					"or stop all of them and delete its row from the table deployments", mine, theirs)
			}
		}
		return nil
	}))
}

// prepare says what an operator should know of the configuration, and fills a
// hot store that begins to exist with the process.
func prepare(lc fx.Lifecycle, config Config, engine *application.Engine, queue domain.OrderQueue, metrics *telemetry.Metrics, log *slog.Logger) {
	metrics.Queue(func() (domain.Depth, error) {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		return queue.Depth(ctx)
	})
	if config.Consumers > config.DatabasePool/2 {
		log.Warn("consumers take more than half of the database pool: requests may wait for a connection",
			"consumers", config.Consumers, "database_pool", config.DatabasePool)
	}
	if config.Stock == "memory" {
		lc.Append(fx.StartHook(engine.Rebuild))
	}
}
