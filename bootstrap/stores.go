package bootstrap

import (
	"seckill/adapters/redisstock"
	"seckill/adapters/sqlstore"
)

// RedisConfig is how the configuration reaches Redis.
func (c Config) RedisConfig() redisstock.ConnectConfig {
	return redisstock.ConnectConfig{
		Addrs: c.Redis.Addrs, Cluster: c.Redis.Cluster, Master: c.Redis.Master,
		Username: c.Redis.Username, Password: c.Redis.Password, DB: c.Redis.DB,
		PoolSize: c.Redis.Pool, PoolTimeout: c.Redis.PoolWait,
		BlockingPool: c.Redis.Partitions + 1, // each partition has one reader
		DialTimeout:  c.Redis.Timeout, ReadTimeout: c.Redis.Timeout, WriteTimeout: c.Redis.Timeout,
	}
}

// LedgerConfig is where the configuration has the ledger.
func (c Config) LedgerConfig() sqlstore.Config {
	return sqlstore.Config{URL: c.Database, MaxOpen: c.DatabasePool}
}
