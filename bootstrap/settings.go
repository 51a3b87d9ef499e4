package bootstrap

import "strings"

// setting is one key of the configuration: the flag, the environment variable
// and the file entry all come from this table, and so does the reference.
type setting struct {
	key     string // path in the file; env and flag are derived from it
	value   any    // default
	meaning string // with its unit and special values
	source  string // where the default comes from
}

// settings is the whole configuration of the service.
var settings = []setting{
	{"addr", "127.0.0.1:8080", "address of the buyers' listener", "loopback: what faces the world is a decision"},
	{"admin.addr", "127.0.0.1:8081", "address of the operators' listener; must differ from addr", "loopback: operators only"},
	{"admin.token", "", "bearer token of the operators; empty: one is made at start and logged", "no secret has a default"},
	{"auth", "body", "where a buyer's identity comes from: body (the request says it: only behind a gateway that checks)", "the only one so far"},

	{"stock", "lua", "how stock is deducted: lua, incr, watch or lock (in Redis), sql (in the database) or memory (in this process; one node only)", "the fastest that survives the process"},
	{"accept", "", "when a grab is answered: queued (hold and queue entry exist) or committed (the ledger has the order); empty: queued with Redis, committed with memory", "memory does not survive the process"},
	{"accept_wait", "5s", "with accept=committed: how long a grab waits for the commit before it is answered 503", "longer than a slow commit, shorter than clients' patience"},
	{"database", "", "ledger: sqlite:///file, mysql://user:password@host:port/name or postgres://…", "required"},
	{"database_pool", 32, "connections to the database", "eight for each consumer"},

	{"allow_lossy_database", false, "start although a crash of the database can lose commits (fsync, innodb_flush_log_at_trx_commit and the like)", "a confirmed order is never lost"},
	{"allow_eviction", false, "start although Redis may drop keys when its memory is full (maxmemory-policy allkeys-…)", "stock does not vanish"},

	{"redis.addrs", "127.0.0.1:6379", "Redis: one address is standalone, several (comma) are a Cluster, or Sentinels with redis.master", "Redis' own port"},
	{"redis.cluster", false, "whether a single address is a node of a Cluster", ""},
	{"redis.master", "", "name of the Sentinel master; empty: no Sentinel", ""},
	{"redis.username", "", "Redis user", ""},
	{"redis.password", "", "Redis password", ""},
	{"redis.db", 0, "Redis database number; 0 on a Cluster", ""},
	{"redis.pool", 200, "connections to Redis", "field reports: 200 carry 10,000 callers"},
	{"redis.pool_wait", "200ms", "wait for a free connection, then 503", "a buyer had better hear no than hang"},
	{"redis.timeout", "500ms", "time-out of a Redis call", "a hundred times a slow script"},
	{"redis.grab_timeout", "250ms", "time-out of a call that grabs share; after one, grabs are answered 503 at once until Redis answers again (strategy lua)", "a buyer had better hear no than hang"},
	{"redis.prefix", "seckill", "start of every key; deployments that share a Redis must differ here", ""},
	{"redis.partitions", 16, "hash tags that sales are spread over; all nodes must agree, and it cannot change while orders are queued", "a few for each Redis node"},
	{"redis.batch", 256, "grabs that share one script call at most; 1: each has its own", "measured: more add little speed"},
	{"redis.calls", 2, "such calls of a partition on their way at a time; grabs that come meanwhile wait for the next", "one is decided while the next is on its way"},

	{"consumers", 4, "batches on their way to the database at the same time, each in up to two transactions, as far as half of database_pool allows; more than half of database_pool is warned of", "a database commits faster in few large batches"},
	{"batch", 4000, "orders taken from the queue at a time, about; they are written in transactions of 500", "beyond it larger batches gain little"},
	{"reclaim_after", "10s", "age at which an unacknowledged queue entry is taken over; doubles with each try", "several times a slow commit"},

	{"lock.ttl", "3s", "lease of preheat, expiry, relay and reconcile, renewed every third; at least 1s", "long enough for a commit, short enough to wait for after a crash"},
	{"lock.wait", "200ms", "how long to wait for a lock", "two round trips on a bad day"},
	{"lock.quorum", "", "independent Redis servers (comma), three or five, on whose majority the lock is had; all nodes must agree; empty: the lock is in the Redis of the stock", "one Redis is enough where the fencing numbers guard what is written"},
	{"lock.scope", "sale", "what one lock covers: sale or activity", "the smallest that is safe"},

	{"payment_window", "30m", "time to pay, for activities that do not say", "common practice of shops"},
	{"expire_every", "1s", "how often unpaid orders past their deadline are looked for", "units come back within a second"},
	{"relay_every", "500ms", "how often decisions that have not reached the hot store are looked for", "half of the age at which they are taken on"},
	{"watch_every", "250ms", "how often Redis is asked whether it may have lost data (a restart, a failover, a flush); then its sales are not ready until they are loaded from the ledger", "a buyer's patience"},
	{"lag_alarm", "30s", "age of the oldest order that is not in the ledger from which on it is logged as an error", "a buyer still waits for the order's page"},
	{"reconcile_every", "1m", "how often hot store, queue and ledger are compared; 0: on demand only", "an operator should know within a minute"},
	{"reconcile_repair", true, "whether that comparison also repairs", "each repair is harmless where it is not needed"},

	{"shutdown_timeout", "20s", "time to drain requests and batches after SIGTERM", "less than an orchestrator's 30s"},
	{"log.level", "info", "debug (a line for every grab), info (for every accepted one), warn or error", "refusals are a thousand times as many"},
	{"log.format", "json", "json or text", "machines read it"},
}

// env is the environment variable of a setting.
func (s setting) env() string {
	return "SECKILL_" + strings.ToUpper(strings.ReplaceAll(s.key, ".", "_"))
}

// flag is the command-line flag of a setting.
func (s setting) flag() string {
	return strings.NewReplacer(".", "-", "_", "-").Replace(s.key)
}
