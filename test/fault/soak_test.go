package fault

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"seckill/application"
	"seckill/domain"
)

var (
	soakGrabs = flag.Int("soak.grabs", 10_000, "TestSoak: how many buyers come")
	soakSeed  = flag.Uint64("soak.seed", 0, "TestSoak: of the faults and of who pays; 0: a new one, which is printed")
)

const (
	soakSales   = 5
	soakCallers = 200
	soakFaults  = 25 // over a long load; half as many over a short one
)

// TestSoak sends a crowd to several sales and injects faults at random, by the
// seed: which ones, and after how many buyers each. With a seed it can be run
// again. A long one:
//
//	go test ./test/fault -run TestSoak -v -timeout 30m -soak.grabs 1000000
//
// covers N1 N2 N6 N7 Q5
func TestSoak(t *testing.T) {
	t.Parallel()
	seed := *soakSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("-soak.seed %d -soak.grabs %d", seed, *soakGrabs)
	s := &soak{rig: newRig(t, setup{ledger: "mariadb", own: true}), random: rand.New(rand.NewPCG(seed, 1)), seed: seed}
	total := int64(*soakGrabs / soakSales * 9 / 10)
	for range soakSales - 1 {
		s.sell(total, 1)
	}
	s.sellFor(total/10, 1, 2*time.Second) // units come back, and are sold again
	start := time.Now()
	s.load()
	loaded := time.Since(start)
	for i, sale := range s.sales {
		s.repaired(sale) // as a service does once a minute
		s.sales[i].Total += s.edited[sale.SaleID]
	}
	s.expired(s.sales[soakSales-1])
	v := s.settle()
	t.Logf("%d buyers in %s, all settled in %s: %d accepted, %d confirmed, %d rejected (of them %d lost with Redis and told so), %d without an answer; lost %d, doubled %d, oversold %d, stranded %d",
		*soakGrabs, loaded.Round(time.Second), time.Since(start).Round(time.Second), v.Accepted, v.Confirmed, v.Rejected, v.Gone,
		v.Unknown, v.Lost, v.Doubled, v.Oversold, v.Stranded)
	if v.Unknown > 0 || v.Confirmed == 0 {
		t.Errorf("%+v", v)
	}
}

type soak struct {
	*rig
	seed   uint64
	random *rand.Rand // of the faults; the buyers have their own
	next   atomic.Int64
	done   atomic.Int64
	edited map[domain.SaleID]int64
}

// load returns when every buyer has an answer and every fault is over.
func (s *soak) load() {
	s.edited = map[domain.SaleID]int64{}
	var callers sync.WaitGroup
	for range soakCallers {
		callers.Go(func() {
			for i := s.next.Add(1) - 1; i < int64(*soakGrabs); i = s.next.Add(1) - 1 {
				s.buyer(i)
				s.done.Add(1)
			}
		})
	}
	faults := int64(soakFaults)
	if *soakGrabs < 100_000 {
		faults /= 2
	}
	for n := range faults {
		at := (n + 1) * int64(*soakGrabs) / (faults + 1)
		for s.done.Load() < at {
			time.Sleep(time.Millisecond)
		}
		name := s.fault()
		s.t.Logf("after %d buyers: %s", at, name)
	}
	callers.Wait()
}

// buyer asks until there is an answer. A few pay, a few cancel.
func (s *soak) buyer(i int64) {
	choice := rand.New(rand.NewPCG(s.seed, uint64(i)))
	sale := s.sales[choice.IntN(soakSales)].SaleID
	req := application.GrabRequest{Sale: sale, Buyer: domain.BuyerID(fmt.Sprint("b", i)), Request: domain.RequestID(fmt.Sprint("r", i))}
	var outcome domain.Outcome
	for {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		got, err := s.history.Grab(ctx, s.Engine, req)
		cancel()
		if err == nil && got.Verdict != domain.NotReady {
			outcome = got
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	what := choice.IntN(100)
	if outcome.Verdict != domain.Accepted || what > 3 {
		return
	}
	// One try: the order may still be queued, or a store away. That is life.
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if _, err := s.AwaitOrder(ctx, outcome.Order, req.Buyer, 5*time.Second); err != nil {
		return
	}
	if what < 2 {
		_, _ = s.history.Pay(ctx, s.Engine, outcome.Order, req.Buyer, domain.PaymentID(req.Request))
		return
	}
	_, _ = s.history.Cancel(ctx, s.Engine, outcome.Order, req.Buyer)
}

// fault does one harm, waits a while, and heals it.
func (s *soak) fault() string {
	pause := time.Duration(100+s.random.IntN(900)) * time.Millisecond
	redis := s.redis.Client(s.t)
	switch s.random.IntN(12) {
	case 0:
		s.must(redis.ScriptFlush(s.t.Context()).Err())
		return "SCRIPT FLUSH"
	case 1:
		s.redis.Pause()
		time.Sleep(pause)
		s.redis.Resume()
		return fmt.Sprintf("Redis frozen for %s", pause)
	case 2:
		s.redis.Kill()
		time.Sleep(pause)
		s.redis.Restart()
		return "Redis killed and started again"
	case 3:
		s.must(redis.FlushAll(s.t.Context()).Err())
		return "FLUSHALL"
	case 4:
		s.toRedis.Cut()
		time.Sleep(pause)
		s.toRedis.Mend()
		return fmt.Sprintf("connections to Redis cut for %s", pause)
	case 5:
		heal := s.toRedis.Harm("latency", "downstream", map[string]int64{"latency": 20, "jitter": 20})
		time.Sleep(pause)
		heal()
		return fmt.Sprintf("Redis 20±20 ms slower for %s", pause)
	case 6:
		heal := s.toRedis.Harm("timeout", "downstream", map[string]int64{"timeout": 50})
		time.Sleep(pause / 4)
		heal()
		return fmt.Sprintf("answers of Redis lost for %s", pause/4)
	case 7:
		s.database.Pause()
		time.Sleep(pause)
		s.database.Resume()
		return fmt.Sprintf("database frozen for %s", pause)
	case 8:
		s.database.Kill()
		time.Sleep(pause)
		s.database.Restart()
		return "database killed and started again"
	case 9:
		for range 5 {
			s.toSQL.Cut()
			time.Sleep(pause / 20)
			s.toSQL.Mend()
			time.Sleep(pause / 20)
		}
		return "connections to the database cut five times"
	case 10:
		sale := s.sales[s.random.IntN(soakSales)]
		edit := domain.StockEdit{Sale: sale.SaleID, Delta: 1 + s.random.Int64N(20), Reason: "soak", Key: domain.RequestID(fmt.Sprint("e", s.random.Uint64()))}
		s.eventually("an edit", func() error { _, err := s.EditStock(s.t.Context(), edit); return err })
		s.edited[sale.SaleID] += edit.Delta
		return fmt.Sprintf("stock +%d", edit.Delta)
	default:
		sale := s.sales[s.random.IntN(soakSales)]
		s.repaired(sale)
		return "reconcile with repair"
	}
}
