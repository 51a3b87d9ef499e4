package bench

import (
	"slices"

	"seckill/adapters/memory"
	"seckill/adapters/redisstock"
	"seckill/adapters/sqlstore"
	"seckill/adapters/system"
	"seckill/domain"
)

// strategy is one way to decide grabs.
type strategy struct {
	name, mode string
	needsRedis bool
	open       func(*rig, string) (domain.Stock, error) // with a prefix for keys
}

// The modes of an entry.
const (
	single    = "single"
	coalesced = "coalesced"
)

var strategies = []strategy{
	{"lua", coalesced, true, func(r *rig, prefix string) (domain.Stock, error) {
		return redisstock.New(r.redis(prefix))
	}},
	{"lua", single, true, func(r *rig, prefix string) (domain.Stock, error) {
		return redisstock.New(alone(r.redis(prefix)))
	}},
	{"incr", single, true, func(r *rig, prefix string) (domain.Stock, error) {
		return redisstock.NewIncr(r.redis(prefix))
	}},
	{"watch", single, true, func(r *rig, prefix string) (domain.Stock, error) {
		return redisstock.NewWatch(r.redis(prefix))
	}},
	{"lock", single, true, func(r *rig, prefix string) (domain.Stock, error) {
		return redisstock.NewLocked(r.redis(prefix))
	}},
	{"sql", single, false, func(r *rig, _ string) (domain.Stock, error) {
		return sqlstore.NewStock(r.store, sqlstore.StockConfig{Partitions: 2 * quietFrom})
	}},
	{"memory", single, false, func(*rig, string) (domain.Stock, error) {
		return memory.NewStock(system.Clock{}), nil
	}},
}

// Names lists the strategies that can be compared.
func Names() []string {
	var names []string
	for _, s := range strategies {
		if !slices.Contains(names, s.name) {
			names = append(names, s.name)
		}
	}
	return names
}

// redis is the configuration of a Stock whose keys start with the prefix.
func (r *rig) redis(prefix string) redisstock.Config {
	return redisstock.Config{Client: r.client, Blocking: r.blocking, Prefix: prefix}
}

// alone has no claims share a call, but for those that come in one slice.
func alone(config redisstock.Config) redisstock.Config {
	config.Batch = 1
	return config
}

// openLimit opens the stock whose script is driven straight.
func openLimit(r *rig, prefix string) (domain.Stock, error) {
	return redisstock.New(alone(r.redis(prefix)))
}
