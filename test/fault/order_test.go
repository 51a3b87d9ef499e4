package fault

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/fx"

	"seckill/bootstrap"
	"seckill/domain"
	"seckill/test/history"
)

// Everything that can end an order is after it at the same moment, from two
// nodes: its buyer pays and cancels, two sweepers expire it, reconcile looks at it.
// One of them wins, and everybody hears of the same one.
// covers P2 P3 P6 N3
func TestPayCancelExpireReconcileAtOnce(t *testing.T) {
	for _, s := range []setup{{ledger: "mariadb"}, {ledger: "postgres"}, {hot: "memory", ledger: "sqlite"}} {
		t.Run(s.hot+"+"+s.ledger, func(t *testing.T) {
			t.Parallel()
			s.change = func(c *bootstrap.Config) { c.ExpireEvery = 10 * time.Millisecond }
			r := newRig(t, s)
			nodes := []*rig{r}
			if s.hot == "" {
				nodes = append(nodes, r.another())
			}
			sale := r.sellFor(300, 1, 300*time.Millisecond)
			crowd := r.storm(sale, "c", 300, 20, 3, 0)
			over := make(chan struct{})
			var others sync.WaitGroup
			others.Go(func() {
				for {
					select {
					case <-over:
						return
					default:
						_, _ = r.Reconcile(context.Background(), sale.Activity, true)
					}
				}
			})
			crowd.wait()
			var ending sync.WaitGroup
			calls := r.history.Calls()
			for i, call := range calls {
				at := time.Duration(rand.IntN(600)) * time.Millisecond
				for _, end := range []func(*rig){
					func(n *rig) {
						_, _ = r.history.Pay(context.Background(), n.Engine, call.Order, call.Buyer, domain.PaymentID(fmt.Sprint("p", i)))
					},
					func(n *rig) { _, _ = r.history.Cancel(context.Background(), n.Engine, call.Order, call.Buyer) },
					func(n *rig) {
						_, _ = r.history.Pay(context.Background(), n.Engine, call.Order, call.Buyer, domain.PaymentID(fmt.Sprint("q", i)))
					},
				} {
					ending.Go(func() {
						time.Sleep(at)
						end(nodes[rand.IntN(len(nodes))])
					})
				}
			}
			ending.Wait()
			close(over)
			others.Wait()
			r.expired(sale)
			v := r.settle(crowd)
			tally, err := r.Orders.Tally(t.Context(), sale.SaleID)
			r.must(err)
			t.Logf("%d confirmed: %d paid, %d cancelled, %d expired, %d to be refunded", v.Confirmed, tally.Paid, tally.Cancelled, tally.Expired, tally.RefundDue)
		})
	}
}

// expired waits until nobody's payment is waited for.
func (r *rig) expired(sale history.Sale) {
	r.t.Helper()
	r.eventually("expiry", func() error {
		tally, err := r.Orders.Tally(r.t.Context(), sale.SaleID)
		if err == nil && tally.Pending > 0 {
			err = fmt.Errorf("%d units wait for payment", tally.Pending)
		}
		return err
	})
}

// Buyers pay after their orders expired, while others grab the units that came
// back: each unit is one's or the other's, and who comes too late gets a refund.
// covers P5 T2
func TestLatePaymentsAgainstNewGrabs(t *testing.T) {
	for _, ledger := range []string{"mariadb", "postgres"} {
		t.Run(ledger, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, setup{ledger: ledger, change: func(c *bootstrap.Config) { c.ExpireEvery = 10 * time.Millisecond }})
			sale := r.sellFor(100, 1, 200*time.Millisecond)
			first := r.storm(sale, "first", 100, 20, 3, 0)
			first.wait()
			orders := r.history.Calls()
			r.eventually("expiry", func() error {
				tally, err := r.Orders.Tally(t.Context(), sale.SaleID)
				if err == nil && tally.Expired < 100 {
					err = fmt.Errorf("%d expired", tally.Expired)
				}
				return err
			})
			var paying sync.WaitGroup
			second := r.storm(sale, "second", 300, 20, 3, 0)
			for i, call := range orders {
				paying.Go(func() {
					_, _ = r.history.Pay(context.Background(), r.Engine, call.Order, call.Buyer, domain.PaymentID(fmt.Sprint("p", i)))
				})
			}
			paying.Wait()
			second.wait()
			r.expired(sale)
			v := r.settle(first, second)
			tally, err := r.Orders.Tally(t.Context(), sale.SaleID)
			r.must(err)
			t.Logf("%d paid late, %d to be refunded, %d confirmed in all", tally.Paid, tally.RefundDue, v.Confirmed)
			if tally.Paid+tally.RefundDue != 100 {
				t.Errorf("%d paid and %d to be refunded, want 100 together", tally.Paid, tally.RefundDue)
			}
		})
	}
}

// The engine is asked to end in every stage, under load, and started again: what
// it has accepted is there.
// covers Q8
func TestEndedInEveryStage(t *testing.T) {
	for _, stage := range []struct {
		name string
		do   func(r *rig)
		loss bool
	}{
		{name: "grabs and batches under way", do: func(r *rig) { r.stop() }},
		{name: "database away", do: func(r *rig) { r.toSQL.Cut(); r.stop(); r.toSQL.Mend() }},
		{name: "Redis away", do: func(r *rig) { r.toRedis.Cut(); r.stop(); r.toRedis.Mend() }},
		{name: "rebuild under way", loss: true, do: func(r *rig) {
			r.must(r.redis.Client(r.t).FlushAll(r.t.Context()).Err())
			r.stop()
		}},
		{name: "reconcile under way", do: func(r *rig) {
			ctx, cancel := context.WithCancel(r.t.Context())
			done := make(chan struct{})
			go func() {
				defer close(done)
				for ctx.Err() == nil {
					_, _ = r.Reconcile(ctx, r.sales[0].Activity, true)
				}
			}()
			r.stop()
			cancel()
			<-done
		}},
	} {
		t.Run(stage.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, setup{ledger: "mariadb", own: true})
			crowd := r.storm(r.sell(3000, 1), "c", 2000, 20, 1, 10*time.Millisecond)
			for n := range 3 {
				crowd.reach(200 + 300*n)
				stage.do(r)
				r.start()
			}
			v := r.settle(crowd)
			if !stage.loss && v.Confirmed != 2000 {
				t.Errorf("%+v", v)
			}
		})
	}
}

// The node's clock is an hour off, and jumps. Windows go by Redis, deadlines by the
// database: nobody is refused, nothing expires early.
// covers S3 P2 P6
func TestClockIsOffAndJumps(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{ledger: "mariadb"})
	r.stop()
	clock := &jumpingClock{}
	r.start(fx.Decorate(func(domain.Clock) domain.Clock { return clock }))
	sale := r.sellFor(3000, 1, 10*time.Minute)
	crowd := r.storm(sale, "c", 1500, 20, 1, 5*time.Millisecond)
	for n, off := range []time.Duration{time.Hour, -time.Hour, 24 * time.Hour, 0, -time.Minute} {
		crowd.reach(100 + 200*n)
		clock.off.Store(int64(off))
	}
	if v := r.settle(crowd); v.Confirmed != 1500 || r.history.Count(history.Grab, history.Refused) > 0 {
		t.Errorf("%+v, %d refused", v, r.history.Count(history.Grab, history.Refused))
	}
	tally, err := r.Orders.Tally(t.Context(), sale.SaleID)
	r.must(err)
	if tally.Expired > 0 {
		t.Errorf("%d orders expired early", tally.Expired)
	}
}

type jumpingClock struct{ off atomic.Int64 }

func (c *jumpingClock) Now() time.Time { return time.Now().Add(time.Duration(c.off.Load())) }

// Ten times as many callers as the way to Redis can carry, each of whom asks again
// at once when refused. When the way is wide again, the storm ends by itself.
// covers N6 T3
func TestRetryStorm(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{ledger: "mariadb", change: func(c *bootstrap.Config) {
		c.Redis.Timeout, c.Redis.GrabTimeout, c.Redis.PoolWait = // as they are by default
			bootstrap.Default().Redis.Timeout, bootstrap.Default().Redis.GrabTimeout, bootstrap.Default().Redis.PoolWait
	}})
	sale := r.sell(3000, 1)
	narrow := r.toRedis.Harm("bandwidth", "upstream", map[string]int64{"rate": 8}) // kB/s
	crowd := r.storm(sale, "c", 2000, 500, 20, time.Millisecond)
	r.eventually("refusals", func() error {
		if r.history.Count(history.Grab, history.Unknown) < 500 {
			return errors.New("too few")
		}
		return nil
	})
	narrow()
	v := r.settle(crowd)
	t.Logf("%d refusals", r.history.Count(history.Grab, history.Unknown))
	for _, call := range r.history.Calls() {
		if call.Verdict == domain.SoldOut {
			t.Fatal("somebody was told that the sale is sold out")
		}
	}
	if v.Confirmed != 2000 {
		t.Errorf("%+v", v)
	}
}

// The servers' clocks are an hour off, each to its own side, and jump in the middle
// of the sale. Windows and deadlines are a day long here, so none of that is a reason
// to refuse or to expire.
// covers S3 P2 P6 Q3
func TestServersClocksAreOffAndJump(t *testing.T) {
	for _, ledger := range []string{"mariadb", "postgres"} {
		t.Run(ledger, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, setup{ledger: ledger, own: true})
			r.stop()
			r.redis.FalseClock(t)
			r.database.FalseClock(t)
			r.redis.ShiftClock(t, time.Hour)
			r.database.ShiftClock(t, -time.Hour)
			r.start()
			if now := r.redis.Client(t).Time(t.Context()).Val(); time.Until(now) < 59*time.Minute {
				t.Fatalf("Redis has %s", now)
			}
			sale := r.sellFor(3000, 1, 24*time.Hour)
			crowd := r.storm(sale, "c", 2500, 20, 1, 30*time.Millisecond)
			for n, off := range []time.Duration{-time.Hour, time.Hour, 0} {
				crowd.reach(300 + 700*n)
				r.redis.ShiftClock(t, off)
				r.database.ShiftClock(t, -off)
			}
			v := r.settle(crowd)
			if v.Confirmed != 2500 || r.history.Count(history.Grab, history.Refused) > 0 {
				t.Errorf("%+v, %d refused", v, r.history.Count(history.Grab, history.Refused))
			}
			tally, err := r.Orders.Tally(t.Context(), sale.SaleID)
			r.must(err)
			if tally.Expired > 0 {
				t.Errorf("%d orders expired early", tally.Expired)
			}
			var soonest, latest time.Time
			for _, order := range r.orders() {
				if soonest.IsZero() || order.CreatedAt.Before(soonest) {
					soonest = order.CreatedAt
				}
				if order.CreatedAt.After(latest) {
					latest = order.CreatedAt
				}
			}
			if latest.Sub(soonest) < 110*time.Minute {
				t.Errorf("orders from %s to %s: the database's clock did not jump", soonest, latest)
			}
		})
	}
}
