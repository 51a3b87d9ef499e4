package fault

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"seckill/application"
	"seckill/domain"
	"seckill/test/history"
)

// crowd is a load of buyers, each of whom wants one unit under a request id of
// their own, some of them at a time.
type crowd struct {
	r      *rig
	sale   history.Sale
	name   string
	buyers int
	done   atomic.Int64 // buyers that have an answer, or have given up
	over   sync.WaitGroup
}

// storm lets buyers grab, so many at a time and each with some tries, with a
// pause after each grab: the load lasts about buyers / atOnce × pause. It returns
// at once.
func (r *rig) storm(sale history.Sale, name string, buyers, atOnce, tries int, pause time.Duration) *crowd {
	c := &crowd{r: r, sale: sale, name: name, buyers: buyers}
	next := atomic.Int64{}
	for range atOnce {
		c.over.Go(func() {
			for i := next.Add(1) - 1; i < int64(buyers); i = next.Add(1) - 1 {
				c.grab(int(i), tries, pause)
				c.done.Add(1)
				time.Sleep(pause)
			}
		})
	}
	return c
}

func (c *crowd) request(i int) application.GrabRequest {
	return application.GrabRequest{
		Sale: c.sale.SaleID, Buyer: domain.BuyerID(fmt.Sprint(c.name, "-", i)), Request: domain.RequestID(fmt.Sprint("r-", c.name, "-", i)),
	}
}

// grab asks until it has an answer or the tries are over.
func (c *crowd) grab(i, tries int, pause time.Duration) bool {
	for range tries {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		outcome, err := c.r.history.Grab(ctx, c.r.engine(), c.request(i))
		cancel()
		if err == nil && outcome.Verdict != domain.NotReady {
			return true
		}
		time.Sleep(pause)
	}
	return false
}

// reach waits until so many buyers are done.
func (c *crowd) reach(n int) {
	c.r.t.Helper()
	c.r.eventually("the crowd goes on", func() error {
		if at := int(c.done.Load()); at < n {
			return fmt.Errorf("%d of %d buyers are done", at, n)
		}
		return nil
	})
}

// wait waits for the load's end.
func (c *crowd) wait() { c.over.Wait() }

// settle has every buyer without an answer ask once more, waits until nothing is
// on its way, and holds the stores against the history.
func (r *rig) settle(crowds ...*crowd) history.Verdict {
	r.t.Helper()
	for _, c := range crowds {
		c.wait()
		for i := range c.buyers {
			r.eventually("an answer for everybody", func() error {
				if !c.answered(i) && !c.grab(i, 1, 0) {
					return fmt.Errorf("buyer %d has none", i)
				}
				return nil
			})
		}
	}
	r.quiet()
	orders := r.orders()
	placed := map[domain.OrderID]bool{}
	for _, order := range orders {
		placed[order.ID] = true
	}
	for _, call := range r.history.Calls() {
		if call.Kind == history.Grab && call.Result == history.OK && !placed[call.Order] {
			r.eventually("a final answer", func() error {
				if _, err := r.Order(r.t.Context(), call.Order, call.Buyer); errors.Is(err, domain.ErrNotReady) {
					return err
				}
				return nil
			})
		}
	}
	verdict := r.history.Check(r.t.Context(), r.Engine, r.sales, orders)
	if err := verdict.Err(); err != nil {
		r.t.Errorf("%+v\n%v", verdict, err)
	}
	return verdict
}

// answered looks a buyer up in the history.
func (c *crowd) answered(i int) bool {
	request := c.request(i)
	return c.r.history.Answered(request.Sale, request.Buyer, request.Request)
}

// quiet waits until no sale is due to be loaded anew, the queue is empty and the
// stores agree, with nothing on its way between them. The stores may agree before
// the engine has seen that Redis was away; what is loaded later is not quiet yet.
func (r *rig) quiet() {
	r.t.Helper()
	if r.Continuity != nil && !r.still {
		r.eventually("no doubt about the hot store", func() error {
			doubts, err := r.Continuity.Doubts(r.t.Context())
			if err == nil && len(doubts) > 0 {
				err = fmt.Errorf("%d parts are in doubt", len(doubts))
			}
			return err
		})
	}
	r.eventually("an empty queue", func() error {
		depth, err := r.queue.Depth(r.t.Context())
		if err == nil && depth.Orders > 0 {
			err = fmt.Errorf("%d orders are queued", depth.Orders)
		}
		return err
	})
	for _, sale := range r.sales {
		r.eventually("balance", func() error {
			report, err := r.Report(r.t.Context(), sale.Activity)
			if err != nil {
				return err
			}
			for _, s := range report.Sales {
				if !s.Balanced || s.Level.Held != s.Ledger.Pending || s.Level.Sold != s.Ledger.Paid || s.Ledger.Releasing+s.Ledger.Settling > 0 {
					return fmt.Errorf("%+v", s)
				}
			}
			return nil
		})
	}
}

// orders are all that the ledger has of the rig's sales.
func (r *rig) orders() []domain.Order {
	r.t.Helper()
	var all []domain.Order
	for _, sale := range r.sales {
		var after domain.OrderID
		for {
			page, err := r.store.Holds(r.t.Context(), sale.SaleID, after, 500)
			r.must(err)
			if len(page) == 0 {
				break
			}
			all = append(all, page...)
			after = page[len(page)-1].ID
		}
	}
	return all
}

// repaired reconciles until the stores agree.
func (r *rig) repaired(sale history.Sale) application.Report {
	r.t.Helper()
	var report application.Report
	r.eventually("a repair", func() error {
		got, err := r.Reconcile(r.t.Context(), sale.Activity, true)
		if err == nil && !got.Balanced() {
			err = errors.New("not balanced")
		}
		report = got
		return err
	})
	return report
}
