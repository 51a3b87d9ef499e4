package fault

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"seckill/application"
	"seckill/bootstrap"
	"seckill/domain"
	"seckill/test/harness"
	"seckill/test/history"
)

var everyHit = flag.Bool("crash.all", false, "TestCrashMatrix: every point at every hit, not only at one of them")

// TestCrashMatrix has a process die at every point of the engine, with each pair
// of stores, and another one take over: every promise that a client was given is
// kept, and what it never heard the end of is done once when it asks again.
// covers N2 N5 P4 Q5 S1 S13
func TestCrashMatrix(t *testing.T) {
	for pair, s := range []setup{
		{hot: "memory", ledger: "sqlite"}, {hot: "lua", ledger: "mariadb"}, {hot: "lua", ledger: "postgres"},
	} {
		t.Run(s.hot+"+"+s.ledger, func(t *testing.T) {
			t.Parallel()
			s.change = crashConfig
			r := newRig(t, s)
			r.stop()
			runs := 0
			for at, point := range crashPoints() {
				if harness.Race && !*everyHit && at%3 != pair {
					continue // each point with one of the pairs: it takes four times as long
				}
				hits := []int{hitOf(point, pair)}
				if *everyHit {
					hits = crashHits
				}
				for _, hit := range hits {
					runs++
					ok := t.Run(fmt.Sprintf("%s, hit %d", point, hit), func(t *testing.T) {
						r.in(t).crash(point, hit)
					})
					if !ok && !*everyHit {
						return // what is broken costs a minute each time
					}
				}
			}
			t.Logf("%d runs, all came to their point", runs)
		})
	}
}

// crashConfig makes a survivor take over soon.
func crashConfig(c *bootstrap.Config) {
	c.ReclaimAfter, c.Lock.TTL = 500*time.Millisecond, time.Second
	c.ExpireEvery = 20 * time.Millisecond
	if c.Stock == "memory" {
		c.Accept = application.AcceptCommitted
	}
}

// needsReconcile has the points at which only the next reconcile can know what was
// left undone. All others are put right by what runs all the time: the queue's
// redelivery, the relay, the sweeper, and who asks again.
var needsReconcile = map[string]bool{
	// The ledger has the state, the hot store has not heard of it, or not of all SKUs.
	"after set state": true, "before lock": true, "before locked work": true, "after locked work": true, "after lock": true,
	"before seal": true, "after seal": true, "before begin epoch": true, "after begin epoch": true,
	"before preheat": true, "after preheat": true, "before set gate": true, "after set gate": true,
	// A late payment has its units, the ledger knows of no payment.
	"after reacquire": true, "before pay late": true,
}

// in is the rig for a subtest: new clients and sales on the same stores. A file is
// a new one each time, since a stock in memory is rebuilt from all that is in it.
func (r *rig) in(t *testing.T) *rig {
	part := &rig{t: t, config: r.config, history: history.New(), log: &harness.Buffer{}}
	part.last.Store(r.last.Add(2))
	if r.database == nil {
		part.config.Database = part.openLedger(setup{ledger: "sqlite"})
		part.must(bootstrap.Migrate(t.Context(), part.config, slog.New(slog.DiscardHandler)))
	}
	return part
}

// crash runs one process into its point and then checks what a second one makes
// of it.
func (r *rig) crash(point string, hit int) {
	first := domain.ActivityID(r.last.Load())
	lines, died := r.runChild(crashTask{Config: r.config, First: first, Point: point, Hit: hit})
	if !died {
		r.t.Errorf("the point was not reached")
	}
	r.start()
	defer r.stop()
	r.opened(first)
	edited := r.repeat(lines)
	for id := first; id < first+2; id++ {
		for n := range crashSKUs {
			sale := history.Sale{SaleID: domain.SaleID{Activity: id, SKU: domain.SKUID(2001 + n)}, Total: crashTotal, Limit: 1}
			if id == first && n == 0 {
				sale.Total += edited
			}
			r.sales = append(r.sales, sale)
		}
		if needsReconcile[point] {
			r.repaired(history.Sale{SaleID: domain.SaleID{Activity: id}})
		}
	}
	r.eventually("expiry", func() error {
		tally, err := r.Orders.Tally(r.t.Context(), domain.SaleID{Activity: first + 1, SKU: 2001})
		if err == nil && tally.Pending > 0 {
			err = fmt.Errorf("%d units wait for payment", tally.Pending)
		}
		return err
	})
	r.settle()
}

// runChild returns what the process has reported, and whether it was killed.
func (r *rig) runChild(task crashTask) (lines []crashLine, died bool) {
	text, err := json.Marshal(task)
	r.must(err)
	path, err := os.Executable()
	r.must(err)
	process := harness.Start(r.t, path, []string{"-test.run=^TestCrashChild$", "-test.timeout=2m"}, []string{crashVariable + "=" + string(text)})
	code := process.Wait(r.t, patience)
	done := false
	for line := range strings.Lines(process.Stdout.String()) {
		text, ours := strings.CutPrefix(strings.TrimSpace(line), crashPrefix)
		if !ours {
			continue
		}
		if text == crashDone {
			done = true
			continue
		}
		var one crashLine
		r.must(json.Unmarshal([]byte(text), &one))
		lines = append(lines, one)
	}
	if !done && code > 0 {
		r.t.Fatalf("the process failed with exit code %d", code)
	}
	return lines, !done
}

// opened does what the operator had not come to.
func (r *rig) opened(first domain.ActivityID) {
	ctx := r.t.Context()
	for id := first; id < first+2; id++ {
		r.eventually("an open sale", func() error {
			activity, err := r.Activities.Activity(ctx, id)
			switch {
			case errors.Is(err, domain.ErrNotFound):
				_, err = r.SaveActivity(ctx, crashActivity(id, first))
			case err != nil:
				return err
			case activity.State == domain.Open:
				return nil
			case activity.State == domain.Draft:
				_, err = r.Preheat(ctx, id)
			case activity.State == domain.Paused:
				_, err = r.SetState(ctx, id, "resume")
			default:
				_, err = r.SetState(ctx, id, "open")
			}
			return errors.Join(err, errors.New("not yet"))
		})
	}
}

// repeat takes over the history and asks again for what has no answer. It returns
// by how much the stock was edited.
func (r *rig) repeat(lines []crashLine) (edited int64) {
	ctx := r.t.Context()
	type key struct {
		kind    history.Kind
		sale    domain.SaleID
		request domain.RequestID
		order   domain.OrderID
	}
	keyOf := func(c history.Call) key {
		if c.Kind == history.Grab {
			return key{c.Kind, c.Sale, c.Request, ""}
		}
		return key{c.Kind, c.Sale, "", c.Order}
	}
	open := map[key]history.Call{}
	for _, line := range lines {
		switch {
		case line.Edit != nil:
			edited += line.Edit.Delta
			r.eventually("an edit", func() error { _, err := r.EditStock(ctx, *line.Edit); return err })
		case line.Begun:
			open[keyOf(line.Call)] = line.Call
		default:
			delete(open, keyOf(line.Call))
			r.history.Add(line.Call)
		}
	}
	for _, c := range open {
		r.history.Add(c)
		r.eventually("an answer to "+string(c.Kind), func() (err error) {
			switch c.Kind {
			case history.Grab:
				_, err = r.history.Grab(ctx, r.Engine, application.GrabRequest{Sale: c.Sale, Buyer: c.Buyer, Request: c.Request, Quantity: c.Quantity})
			case history.Pay:
				_, err = r.history.Pay(ctx, r.Engine, c.Order, c.Buyer, c.Payment)
			case history.Cancel:
				_, err = r.history.Cancel(ctx, r.Engine, c.Order, c.Buyer)
			}
			var closed *domain.ClosedError
			if errors.As(err, &closed) {
				return nil // somebody was faster, its own expiry for example
			}
			return err
		})
	}
	return edited
}
