package redisstock

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"seckill/domain"
)

// Defaults of ConnectConfig. Together they bound how long a call may take when
// Redis hangs: (1 + MaxRetries) × (PoolTimeout + DialTimeout + WriteTimeout +
// ReadTimeout), or the call's own deadline if that is sooner.
const (
	DefaultPoolSize     = 200
	DefaultPoolTimeout  = 200 * time.Millisecond
	DefaultDialTimeout  = 500 * time.Millisecond
	DefaultReadTimeout  = time.Second
	DefaultWriteTimeout = time.Second
	DefaultMaxRetries   = 1
)

// ConnectConfig says how to reach Redis.
type ConnectConfig struct {
	// Addrs are host:port. One is a standalone server, several are a cluster;
	// with Master they are the Sentinels. Required.
	Addrs []string
	// Cluster says that a single address is a node of a cluster.
	Cluster bool
	// Master is the name of the master that the Sentinels watch.
	Master string

	Username         string
	Password         string
	SentinelUsername string
	SentinelPassword string
	// DB is the number of the database; a cluster has only 0.
	DB  int
	TLS *tls.Config // nil: no TLS

	PoolSize     int           // connections per server; default DefaultPoolSize
	BlockingPool int           // the same of the client for blocking reads; default PoolSize
	PoolTimeout  time.Duration // longest wait for a free connection; default DefaultPoolTimeout
	DialTimeout  time.Duration // default DefaultDialTimeout
	ReadTimeout  time.Duration // default DefaultReadTimeout
	WriteTimeout time.Duration // default DefaultWriteTimeout
	// MaxRetries is how often the client repeats a failed call by itself; −1
	// is never. A cluster client repeats at least once per redirection.
	// Default DefaultMaxRetries.
	MaxRetries int
}

// Connect makes two clients of the same Redis: one for commands and one for
// blocking reads, which must not take the connections of the first. It opens
// no connection yet. The caller closes both.
func Connect(config ConnectConfig) (client, blocking redis.UniversalClient, err error) {
	switch {
	case len(config.Addrs) == 0:
		return nil, nil, domain.Invalid("addrs", "are missing")
	case config.Master != "" && config.Cluster:
		return nil, nil, domain.Invalid("master", "cannot be set for a cluster")
	case config.DB != 0 && config.Master == "" && (config.Cluster || len(config.Addrs) > 1):
		return nil, nil, domain.Invalid("db", "must be 0 on a cluster")
	case config.DB < 0:
		return nil, nil, domain.Invalid("db", "must not be negative")
	}
	pool := orDefault(config.PoolSize, DefaultPoolSize)
	options := func(pool int) *redis.UniversalOptions {
		return &redis.UniversalOptions{
			Addrs:            config.Addrs,
			IsClusterMode:    config.Cluster,
			MasterName:       config.Master,
			Username:         config.Username,
			Password:         config.Password,
			SentinelUsername: config.SentinelUsername,
			SentinelPassword: config.SentinelPassword,
			DB:               config.DB,
			TLSConfig:        config.TLS,

			PoolSize:              pool,
			PoolTimeout:           orDefault(config.PoolTimeout, DefaultPoolTimeout),
			DialTimeout:           orDefault(config.DialTimeout, DefaultDialTimeout),
			ReadTimeout:           orDefault(config.ReadTimeout, DefaultReadTimeout),
			WriteTimeout:          orDefault(config.WriteTimeout, DefaultWriteTimeout),
			MaxRetries:            orDefault(config.MaxRetries, DefaultMaxRetries),
			DialerRetries:         1,
			ContextTimeoutEnabled: true,

			DisableIdentity:          true,
			MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
		}
	}
	return redis.NewUniversalClient(options(pool)), redis.NewUniversalClient(options(orDefault(config.BlockingPool, pool))), nil
}

// LogTo has the Redis client's own messages go to a structured log, as warnings.
// It holds for the whole process.
func LogTo(log *slog.Logger) { redis.SetLogger(clientLog{log}) }

type clientLog struct{ log *slog.Logger }

func (c clientLog) Printf(ctx context.Context, format string, args ...any) {
	c.log.WarnContext(ctx, "redis client", "message", fmt.Sprintf(format, args...))
}
