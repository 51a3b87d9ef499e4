package e2e

import (
	"crypto/rand"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"seckill/test/harness"
)

const (
	// startBound is how long a program may take to serve, or to end.
	startBound = 30 * time.Second
	// settleBound is how long what is in flight may take to come to rest: an
	// entry of a dead consumer is taken over after 2 s, then 4 s, and so on.
	settleBound = 40 * time.Second

	token = "an-operator-of-the-tests"
	sku   = 2001
)

// pairing is one way to run the program.
type pairing struct{ hot, ledger string }

func (p pairing) String() string { return p.hot + "+" + p.ledger }

var pairings = []pairing{
	{"memory", "sqlite"}, {"memory", "mariadb"}, {"memory", "postgres"},
	{"lua", "sqlite"}, {"lua", "mariadb"}, {"lua", "postgres"},
	{"incr", "mariadb"}, {"watch", "postgres"}, {"lock", "mariadb"},
	{"sql", "sqlite"}, {"sql", "mariadb"}, {"sql", "postgres"},
}

// onRedis says whether the stock and the queue are in Redis.
func (p pairing) onRedis() bool { return p.hot != "memory" && p.hot != "sql" }

// nodes is how many processes may share the stores.
func (p pairing) nodes() int {
	if p.onRedis() && p.ledger != "sqlite" {
		return 2
	}
	return 1
}

// cell is a deployment of its own: a fresh database, keys that nobody else
// uses, and one or two serving processes.
type cell struct {
	pairing
	owner   *testing.T // its processes live as long as this test
	program string
	env     []string // of all nodes
	nodes   []*node
	redis   *harness.RedisServer // nil with memory
	prefix  string               // of the keys in redis
	client  *http.Client
	token   string
	turn    atomic.Uint64
	last    atomic.Int64 // activity id
}

type node struct {
	addr, admin string
	process     *harness.Process
}

// newCell migrates a fresh database; it starts nothing. More settings come
// last and win.
func newCell(t *testing.T, p pairing, env ...string) *cell {
	t.Helper()
	c := &cell{pairing: p, owner: t, program: harness.Seckill(t), client: newClient(), token: token, prefix: "t" + strings.ToLower(rand.Text()[:12])}
	t.Cleanup(c.client.CloseIdleConnections)
	c.last.Store(1000)
	c.env = []string{
		"SECKILL_STOCK=" + p.hot,
		"SECKILL_DATABASE=" + freshDatabase(t, p.ledger),
		"SECKILL_AUTH=body",
		"SECKILL_ADMIN_TOKEN=" + token,
		"SECKILL_REDIS_PREFIX=" + c.prefix,
		"SECKILL_RECLAIM_AFTER=2s",
		"SECKILL_EXPIRE_EVERY=100ms",
		"SECKILL_RELAY_EVERY=100ms",
		// Nothing may be put right behind the tests' backs.
		"SECKILL_RECONCILE_EVERY=0",
		// A slow machine is not what is tested.
		"SECKILL_REDIS_TIMEOUT=5s",
		"SECKILL_REDIS_GRAB_TIMEOUT=5s",
		"SECKILL_REDIS_POOL_WAIT=5s",
		"SECKILL_LOCK_WAIT=5s",
		"SECKILL_ACCEPT_WAIT=15s",
	}
	if p.onRedis() {
		c.redis = harness.SharedRedis(t)
		c.env = append(c.env, "SECKILL_REDIS_ADDRS="+c.redis.Addr)
	}
	c.env = append(c.env, env...)
	migrate := harness.Start(t, c.program, []string{"migrate"}, c.env)
	if code := migrate.Wait(t, startBound); code != 0 {
		t.Fatalf("seckill migrate: exit code %d", code)
	}
	for range p.nodes() {
		c.nodes = append(c.nodes, &node{addr: harness.FreeAddr(t), admin: harness.FreeAddr(t)})
	}
	return c
}

func freshDatabase(t *testing.T, ledger string) string {
	t.Helper()
	switch ledger {
	case "mariadb":
		return harness.SharedMariaDB(t).NewDatabase(t)
	case "postgres":
		return harness.SharedPostgres(t).NewDatabase(t)
	}
	return "sqlite://" + filepath.ToSlash(filepath.Join(t.TempDir(), "seckill.db"))
}

// serving is a cell with all its nodes started.
func serving(t *testing.T, p pairing, env ...string) *cell {
	t.Helper()
	c := newCell(t, p, env...)
	c.start(t)
	return c
}

// start starts the nodes that do not run, and waits until they can grab.
func (c *cell) start(t *testing.T) {
	t.Helper()
	// No connection to a process that is gone.
	c.client.CloseIdleConnections()
	var started []*node
	for _, n := range c.nodes {
		if n.process != nil && n.process.Running() {
			continue
		}
		n.process = harness.Start(c.owner, c.program, []string{"serve"}, n.environment(c))
		started = append(started, n)
	}
	for _, n := range started {
		n.process.WaitFor(t, "http://"+n.addr+"/readyz", startBound)
	}
}

func (n *node) environment(c *cell) []string {
	return append(slices.Clone(c.env), "SECKILL_ADDR="+n.addr, "SECKILL_ADMIN_ADDR="+n.admin)
}

// terminate asks all nodes to drain.
func (c *cell) terminate() {
	for _, n := range c.nodes {
		n.process.Signal(syscall.SIGTERM)
	}
}

// drained wants each node to end well.
func (c *cell) drained(t *testing.T) {
	t.Helper()
	for _, n := range c.nodes {
		if code := n.process.Wait(t, startBound); code != 0 {
			t.Errorf("exit code %d after SIGTERM", code)
		}
	}
}

// any takes the running nodes in turn, so that a load is spread over them.
func (c *cell) any() *node {
	turn := int(c.turn.Add(1) % uint64(len(c.nodes)))
	for i := range c.nodes {
		if n := c.nodes[(turn+i)%len(c.nodes)]; n.process.Running() {
			return n
		}
	}
	return c.nodes[turn]
}

// here and there are two nodes, or twice the only one.
func (c *cell) here() *node  { return c.nodes[0] }
func (c *cell) there() *node { return c.nodes[len(c.nodes)-1] }
