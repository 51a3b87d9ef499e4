package fault

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"seckill/application"
	"seckill/bootstrap"
	"seckill/domain"
)

// Two consumers take each other's entries all the time, since each takes the other
// for dead at once. An order is placed once all the same.
// covers Q3 Q5
func TestLivingConsumersStealFromEachOther(t *testing.T) {
	for _, ledger := range []string{"mariadb", "postgres"} {
		t.Run(ledger, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, setup{ledger: ledger, change: func(c *bootstrap.Config) { c.ReclaimAfter = 100 * time.Millisecond }})
			r.another()
			// Slower than the others' patience.
			heal := r.toSQL.Harm("latency", "downstream", map[string]int64{"latency": 60})
			crowd := r.storm(r.sell(2000, 1), "c", 1500, 30, 1, 10*time.Millisecond)
			crowd.wait()
			heal()
			if v := r.settle(crowd); v.Confirmed != 1500 {
				t.Errorf("%+v", v)
			}
		})
	}
}

// Entries that nobody can read become dead letters, and hold up nothing.
// covers Q6
func TestPoisonUnderLoad(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{ledger: "postgres"})
	sale := r.sell(2000, 1)
	crowd := r.storm(sale, "c", 1000, 20, 1, 5*time.Millisecond)
	crowd.reach(100)
	admin := r.redis.Client(t)
	streams := admin.Keys(t.Context(), r.config.Redis.Prefix+":*:queue").Val()
	const poison = 10
	for n := range poison {
		for _, stream := range streams {
			what := fmt.Sprint(stream, n) // of two that are alike, one is kept
			r.must(admin.XAdd(t.Context(), &redis.XAddArgs{Stream: stream, Values: map[string]any{"what": what}}).Err())
		}
	}
	if v := r.settle(crowd); v.Confirmed != 1000 {
		t.Errorf("%+v", v)
	}
	letters, err := r.ListDeadLetters(t.Context(), 0, 1000)
	r.must(err)
	if len(letters) != poison*len(streams) {
		t.Errorf("%d dead letters, want %d", len(letters), poison*len(streams))
	}
}

// A consumer that slept through a rebuild has an entry of the old epoch: the
// ledger refuses it, and says why.
// covers N7 L5
func TestAConsumerOfTheOldEpochIsRefused(t *testing.T) {
	for _, ledger := range []string{"mariadb", "postgres"} {
		t.Run(ledger, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, setup{ledger: ledger, still: true, change: func(c *bootstrap.Config) { c.Redis.Partitions = 1 }})
			sale := r.sell(10, 1)
			crowd := r.storm(sale, "old", 5, 5, 1, 0)
			crowd.wait()
			var deliveries []domain.Delivery
			for len(intents(deliveries)) < 5 {
				got, err := r.queue.Receive(t.Context(), 0, 100)
				r.must(err)
				deliveries = append(deliveries, got...)
			}
			r.must(r.redis.Client(t).Del(t.Context(), (&damaged{rig: r, client: r.redis.Client(t)}).key("sale")).Err())
			r.must(r.Rebuild(t.Context()))
			r.must(r.Persist(t.Context(), deliveries))
			for _, call := range r.history.Calls() {
				order, err := r.Order(t.Context(), call.Order, call.Buyer)
				r.must(err)
				if order.Status != domain.Rejected || order.Reason != domain.ReasonStaleEpoch {
					t.Errorf("order is %s, %s", order.Status, order.Reason)
				}
			}
			r.eventually("the relay", func() error { // no loop does it here
				_, err := r.Relay(t.Context())
				r.must(err)
				tally, err := r.Orders.Tally(t.Context(), sale.SaleID)
				if err == nil && tally.Releasing > 0 {
					err = fmt.Errorf("%d units to be released", tally.Releasing)
				}
				return err
			})
			if v := r.settle(crowd); v.Rejected != 5 {
				t.Errorf("%+v", v)
			}
		})
	}
}

func intents(deliveries []domain.Delivery) (all []domain.Intent) {
	for _, d := range deliveries {
		all = append(all, d.Intents...)
	}
	return all
}

// A fencing number from before a flush is older than any from after it.
// covers L5 N7
func TestFencesDoNotRegressAfterAFlush(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{ledger: "mariadb", own: true, still: true})
	sale := r.sell(10, 1)
	var old domain.Lease
	r.must(r.Lock.Do(t.Context(), "sale:"+sale.String(), time.Second, func(_ context.Context, lease domain.Lease) error {
		old = lease
		return nil
	}))
	r.must(r.redis.Client(t).FlushAll(t.Context()).Err())
	r.must(r.Rebuild(t.Context()))
	gate, err := r.stock.Gate(t.Context(), sale.SaleID)
	r.must(err)
	gate.State = domain.Paused
	if err := r.stock.SetGate(t.Context(), sale.SaleID, gate, old.Fence.Number); !errors.Is(err, domain.ErrFenced) {
		t.Errorf("an old owner writes after the flush: %v", err)
	}
	r.settle()
}

// Preheat of a sale that runs is refused; of two at once both end, and there is
// one stock.
// covers S1
func TestPreheatUnderLoad(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{ledger: "postgres"})
	sale := r.sell(500, 1)
	other := r.another()
	crowd := r.storm(sale, "c", 600, 20, 1, 5*time.Millisecond)
	crowd.reach(50)
	for range 5 {
		errs := make(chan error, 2)
		for _, engine := range []*application.Engine{r.Engine, other.Engine} {
			go func() { _, err := engine.Preheat(t.Context(), sale.Activity); errs <- err }()
		}
		for range 2 {
			if err := <-errs; !errors.Is(err, domain.ErrHasHolds) {
				t.Errorf("preheat of a running sale: %v", err)
			}
		}
	}
	draft := r.draft(100)
	errs := make(chan error, 2)
	for _, engine := range []*application.Engine{r.Engine, other.Engine} {
		go func() { _, err := engine.Preheat(t.Context(), draft.Activity); errs <- err }()
	}
	if one, two := <-errs, <-errs; one != nil && two != nil {
		t.Errorf("two preheats at once: %v; %v", one, two)
	}
	_, err := r.SetState(t.Context(), draft.Activity, "open")
	r.must(err)
	late := r.storm(draft, "d", 150, 20, 1, 0)
	if v := r.settle(crowd, late); v.Confirmed != 600 {
		t.Errorf("%+v", v)
	}
}
