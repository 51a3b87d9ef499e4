package bootstrap

import (
	"fmt"
	"net"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/knadh/koanf/parsers/yaml"
	"github.com/knadh/koanf/providers/confmap"
	"github.com/knadh/koanf/providers/file"
	"github.com/knadh/koanf/v2"
	"github.com/spf13/pflag"

	"seckill/application"
	"seckill/domain"
)

// Config is the configuration of the service. The table in settings.go has the
// meaning, unit and default of each field. Load it, or start from Default.
type Config struct {
	Addr  string `koanf:"addr"`
	Admin struct {
		Addr  string `koanf:"addr"`
		Token string `koanf:"token"`
	} `koanf:"admin"`
	Auth         string             `koanf:"auth"`
	Stock        string             `koanf:"stock"`
	Accept       application.Accept `koanf:"accept"`
	AcceptWait   time.Duration      `koanf:"accept_wait"`
	Database     string             `koanf:"database"`
	DatabasePool int                `koanf:"database_pool"`
	// The two that let an unsafe store be used all the same.
	AllowLossyDatabase bool `koanf:"allow_lossy_database"`
	AllowEviction      bool `koanf:"allow_eviction"`
	Redis              struct {
		Addrs       []string      `koanf:"addrs"`
		Cluster     bool          `koanf:"cluster"`
		Master      string        `koanf:"master"`
		Username    string        `koanf:"username"`
		Password    string        `koanf:"password"`
		DB          int           `koanf:"db"`
		Pool        int           `koanf:"pool"`
		PoolWait    time.Duration `koanf:"pool_wait"`
		Timeout     time.Duration `koanf:"timeout"`
		GrabTimeout time.Duration `koanf:"grab_timeout"`
		Prefix      string        `koanf:"prefix"`
		Partitions  int           `koanf:"partitions"`
		Batch       int           `koanf:"batch"`
		Calls       int           `koanf:"calls"`
	} `koanf:"redis"`
	Consumers    int           `koanf:"consumers"`
	Batch        int           `koanf:"batch"`
	ReclaimAfter time.Duration `koanf:"reclaim_after"`
	Lock         struct {
		TTL    time.Duration `koanf:"ttl"`
		Wait   time.Duration `koanf:"wait"`
		Scope  string        `koanf:"scope"`
		Quorum []string      `koanf:"quorum"`
	} `koanf:"lock"`
	PaymentWindow   time.Duration `koanf:"payment_window"`
	ExpireEvery     time.Duration `koanf:"expire_every"`
	RelayEvery      time.Duration `koanf:"relay_every"`
	WatchEvery      time.Duration `koanf:"watch_every"`
	LagAlarm        time.Duration `koanf:"lag_alarm"`
	ReconcileEvery  time.Duration `koanf:"reconcile_every"`
	ReconcileRepair bool          `koanf:"reconcile_repair"`
	ShutdownTimeout time.Duration `koanf:"shutdown_timeout"`
	Log             struct {
		Level  string `koanf:"level"`
		Format string `koanf:"format"`
	} `koanf:"log"`
}

// Default is the configuration when nothing is set.
func Default() Config {
	config, err := read("", nil, nil, nil)
	if err != nil {
		panic(err) // the table of defaults is wrong
	}
	return config
}

// AddFlags defines a flag for each of the named settings, or for all.
func AddFlags(flags *pflag.FlagSet, keys ...string) {
	for _, s := range settings {
		if len(keys) > 0 && !contains(keys, s.key) {
			continue
		}
		usage := s.meaning + " (" + s.env() + ")"
		switch value := s.value.(type) {
		case int:
			flags.Int(s.flag(), value, usage)
		case bool:
			flags.Bool(s.flag(), value, usage)
		default:
			flags.String(s.flag(), value.(string), usage)
		}
	}
}

func contains(keys []string, key string) bool {
	for _, k := range keys {
		if k == key {
			return true
		}
	}
	return false
}

// Load reads the configuration: flag beats environment beats file beats
// default. An empty path means no file. Fixed settings, by key, beat them all;
// nil: there are none. It validates; the error names the setting.
func Load(path string, flags *pflag.FlagSet, fixed map[string]any) (Config, error) {
	config, err := read(path, os.LookupEnv, flags, fixed)
	if err != nil {
		return Config{}, err
	}
	return config, config.Validate()
}

func read(path string, lookupEnv func(string) (string, bool), flags *pflag.FlagSet, fixed map[string]any) (Config, error) {
	k := koanf.New(".")
	defaults := map[string]any{}
	for _, s := range settings {
		defaults[s.key] = s.value
	}
	if err := k.Load(confmap.Provider(defaults, "."), nil); err != nil {
		return Config{}, err
	}
	if path != "" {
		if err := loadFile(k, path); err != nil {
			return Config{}, err
		}
	}
	set := map[string]any{}
	for _, s := range settings {
		if lookupEnv != nil {
			if value, ok := lookupEnv(s.env()); ok {
				set[s.key] = value
			}
		}
		if flags != nil {
			if f := flags.Lookup(s.flag()); f != nil && f.Changed {
				set[s.key] = f.Value.String()
			}
		}
	}
	for key, value := range fixed {
		set[key] = value
	}
	if err := k.Load(confmap.Provider(set, "."), nil); err != nil {
		return Config{}, err
	}
	return decode(k)
}

// UnknownEnv lists the variables that look like settings and are none.
func UnknownEnv(environ []string) []string {
	known := map[string]bool{}
	for _, s := range settings {
		known[s.env()] = true
	}
	var unknown []string
	for _, entry := range environ {
		name, _, _ := strings.Cut(entry, "=")
		if strings.HasPrefix(name, "SECKILL_") && !strings.HasPrefix(name, "SECKILL_TEST_") && !known[name] {
			unknown = append(unknown, name)
		}
	}
	return unknown
}

// loadFile refuses keys that no setting has: a typing error must not become a default.
func loadFile(k *koanf.Koanf, path string) error {
	own := koanf.New(".")
	if err := own.Load(file.Provider(path), yaml.Parser()); err != nil {
		return fmt.Errorf("configuration file %s: %w", path, err)
	}
	known := map[string]bool{}
	for _, s := range settings {
		known[s.key] = true
	}
	for _, key := range own.Keys() {
		if !known[key] {
			return domain.Invalid(key, "is no setting (in %s)", path)
		}
	}
	return k.Merge(own)
}

// decode turns text into the types of Config, one key at a time, so that an
// error can name the key.
func decode(k *koanf.Koanf) (Config, error) {
	for _, key := range []string{"redis.addrs", "lock.quorum"} {
		if text, ok := k.Get(key).(string); ok {
			list := strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' })
			if err := k.Set(key, list); err != nil {
				return Config{}, err
			}
		}
	}
	for _, s := range settings {
		one := koanf.New(".")
		if err := one.Load(confmap.Provider(map[string]any{s.key: k.Get(s.key)}, "."), nil); err != nil {
			return Config{}, err
		}
		if err := one.Unmarshal("", &Config{}); err != nil {
			return Config{}, domain.Invalid(s.key, "cannot be read (%s): %s", s.env(), kind(s.value))
		}
	}
	var config Config
	err := k.Unmarshal("", &config)
	return config, err
}

func kind(value any) string {
	switch v := value.(type) {
	case int:
		return "it must be an integer"
	case bool:
		return "it must be true or false"
	case string:
		if _, err := time.ParseDuration(v); err == nil {
			return "it must be a duration such as " + v
		}
	}
	return "it has the wrong type"
}

// Validate names the first setting that is out of bounds.
func (c *Config) Validate() error {
	if c.Accept == "" {
		c.Accept = application.AcceptQueued
		if c.Stock == "memory" {
			c.Accept = application.AcceptCommitted
		}
	}
	for _, check := range []struct {
		ok      bool
		key     string
		problem string
	}{
		{isAddr(c.Addr), "addr", "must be host:port"},
		{isAddr(c.Admin.Addr), "admin.addr", "must be host:port"},
		{c.Addr != c.Admin.Addr || strings.HasSuffix(c.Addr, ":0"), "admin.addr", "must differ from addr"},
		{c.Auth == "body", "auth", "must be body"},
		{c.Stock == "memory" || c.Stock == "sql" || c.onRedis(), "stock", "must be lua, incr, watch, lock, sql or memory"},
		{c.Accept == application.AcceptQueued || c.Accept == application.AcceptCommitted, "accept", "must be queued or committed"},
		{between(c.AcceptWait, time.Millisecond, time.Minute), "accept_wait", "must be from 1ms to 1m"},
		{c.Database != "", "database", "is not set: give sqlite:///file, mysql://… or postgres://…"},
		{c.DatabasePool >= 1 && c.DatabasePool <= 10_000, "database_pool", "must be from 1 to 10000"},
		{!c.onRedis() || len(c.Redis.Addrs) > 0 && areAddrs(c.Redis.Addrs), "redis.addrs", "must be host:port, several separated by commas"},
		{c.Redis.Master == "" || !c.Redis.Cluster, "redis.cluster", "cannot go with redis.master"},
		{c.Redis.DB >= 0, "redis.db", "must be 0 or more"},
		{c.Redis.Pool >= 1 && c.Redis.Pool <= 100_000, "redis.pool", "must be from 1 to 100000"},
		{between(c.Redis.PoolWait, time.Millisecond, time.Minute), "redis.pool_wait", "must be from 1ms to 1m"},
		{between(c.Redis.Timeout, time.Millisecond, time.Minute), "redis.timeout", "must be from 1ms to 1m"},
		{between(c.Redis.GrabTimeout, time.Millisecond, time.Minute), "redis.grab_timeout", "must be from 1ms to 1m"},
		{isPrefix.MatchString(c.Redis.Prefix), "redis.prefix", "must have 1 to 64 characters of A-Z a-z 0-9 . _ : -"},
		{c.Redis.Partitions >= 1 && c.Redis.Partitions <= 1024, "redis.partitions", "must be from 1 to 1024"},
		{c.Redis.Batch >= 1 && c.Redis.Batch <= 1000, "redis.batch", "must be from 1 to 1000"},
		{c.Redis.Calls >= 1 && c.Redis.Calls <= 16, "redis.calls", "must be from 1 to 16"},
		{c.Consumers >= 1 && c.Consumers <= 1024, "consumers", "must be from 1 to 1024"},
		{c.Batch >= 1 && c.Batch <= 10_000, "batch", "must be from 1 to 10000"},
		{between(c.ReclaimAfter, 100*time.Millisecond, time.Hour), "reclaim_after", "must be from 100ms to 1h"},
		{between(c.Lock.TTL, domain.MinLockTTL, time.Hour), "lock.ttl", "must be from 1s to 1h"},
		{between(c.Lock.Wait, time.Millisecond, time.Minute), "lock.wait", "must be from 1ms to 1m"},
		{isQuorum(c.Lock.Quorum), "lock.quorum", "must be empty, or an odd number of host:port, 3 to 9, separated by commas"},
		{c.Lock.Scope == "sale" || c.Lock.Scope == "activity", "lock.scope", "must be sale or activity"},
		{between(c.PaymentWindow, time.Millisecond, domain.MaxPayWindow), "payment_window", "must be from 1ms to 720h"},
		{between(c.ExpireEvery, 10*time.Millisecond, time.Hour), "expire_every", "must be from 10ms to 1h"},
		{between(c.RelayEvery, 10*time.Millisecond, time.Hour), "relay_every", "must be from 10ms to 1h"},
		{between(c.WatchEvery, 10*time.Millisecond, time.Minute), "watch_every", "must be from 10ms to 1m"},
		{between(c.LagAlarm, time.Second, 24*time.Hour), "lag_alarm", "must be from 1s to 24h"},
		{c.ReconcileEvery == 0 || between(c.ReconcileEvery, time.Second, 24*time.Hour), "reconcile_every", "must be 0 or from 1s to 24h"},
		{between(c.ShutdownTimeout, time.Second, time.Hour), "shutdown_timeout", "must be from 1s to 1h"},
		{logLevels[c.Log.Level] != nil, "log.level", "must be debug, info, warn or error"},
		{c.Log.Format == "json" || c.Log.Format == "text", "log.format", "must be json or text"},
	} {
		if !check.ok {
			return domain.Invalid(check.key, "%s", check.problem)
		}
	}
	return nil
}

// onRedis says whether the hot store is in Redis.
func (c *Config) onRedis() bool {
	return c.Stock == "lua" || c.Stock == "incr" || c.Stock == "watch" || c.Stock == "lock"
}

var isPrefix = regexp.MustCompile(`^[A-Za-z0-9._:-]{1,64}$`)

func isAddr(text string) bool {
	_, port, err := net.SplitHostPort(text)
	return err == nil && port != ""
}

func areAddrs(list []string) bool {
	for _, addr := range list {
		if !isAddr(addr) {
			return false
		}
	}
	return true
}

// isQuorum accepts what has a majority when one server is down.
func isQuorum(list []string) bool {
	return len(list) == 0 || len(list) >= 3 && len(list) <= 9 && len(list)%2 == 1 && areAddrs(list)
}

func between(d, low, high time.Duration) bool { return d >= low && d <= high }
