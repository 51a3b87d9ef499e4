package fault

import (
	"slices"
	"testing"
	"time"

	"seckill/bootstrap"
	"seckill/domain"
	"seckill/test/history"
)

// Redis is frozen for ten seconds in the middle of a sale: grabs are refused, none
// is told "sold out", and all goes on by itself.
// covers N6 T3
func TestRedisIsFrozenForTenSeconds(t *testing.T) {
	const frozen = 10 * time.Second
	r := newRig(t, setup{ledger: "mariadb", own: true, change: func(c *bootstrap.Config) {
		c.Redis.Timeout, c.Redis.GrabTimeout, c.Redis.PoolWait = // as they are by default
			bootstrap.Default().Redis.Timeout, bootstrap.Default().Redis.GrabTimeout, bootstrap.Default().Redis.PoolWait
	}})
	sale := r.sell(100_000, 1)
	crowd := r.storm(sale, "frozen", 6000, 50, 1, 100*time.Millisecond)
	crowd.reach(300)
	from := r.history.Now()
	r.redis.Pause()
	time.Sleep(frozen)
	until := r.history.Now()
	r.redis.Resume()
	late := r.storm(sale, "after", 500, 20, 1000, 5*time.Millisecond)
	late.wait()
	var refusals []time.Duration
	var first time.Duration
	for _, c := range r.history.Calls() {
		if c.Verdict == domain.SoldOut {
			t.Fatalf("%s was told that the sale is sold out", c.Buyer)
		}
		if c.Result == history.Unknown && c.Invoked > from && c.Invoked < until {
			refusals = append(refusals, c.Returned-c.Invoked)
		}
		if c.Result == history.OK && c.Returned > until && (first == 0 || c.Returned-until < first) {
			first = c.Returned - until
		}
	}
	slices.Sort(refusals)
	if len(refusals) < 100 || first == 0 {
		t.Fatalf("%d refusals, first grab after %s", len(refusals), first)
	}
	at := func(share float64) time.Duration {
		return refusals[int(share*float64(len(refusals)-1))].Round(time.Millisecond)
	}
	t.Logf("%d refusals: p50 %s, p99 %s, longest %s; first accepted %s after Redis was back",
		len(refusals), at(.5), at(.99), at(1), first.Round(time.Millisecond))
	r.settle(crowd, late)
}
