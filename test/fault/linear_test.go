package fault

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"seckill/application"
	"seckill/domain"
	"seckill/test/history"
)

// Each strategy decides as if one grab came after the other, at a moment at which
// it was under way; and so it does when replies of Redis get lost, and nobody can
// say which grabs it has decided.
//
// incr promises less: while grabs are under way its account is off for moments,
// and it may refuse what it had for sale. What it accepts must fit all the same.
// covers S5 S12 T6 N1
func TestGrabsAreLinearizable(t *testing.T) {
	for _, hot := range []string{"memory", "lua", "incr", "watch", "lock", "sql"} {
		t.Run(hot, func(t *testing.T) {
			t.Parallel()
			for range 3 {
				newRig(t, setup{hot: hot}).linear(t, nil)
			}
		})
	}
	for _, hot := range []string{"lua", "incr", "watch", "lock"} {
		t.Run(hot+" loses replies", func(t *testing.T) {
			t.Parallel()
			unknown := 0
			for range 3 {
				r := newRig(t, setup{hot: hot})
				unknown += r.linear(t, r.loseReplies)
			}
			if unknown == 0 {
				t.Error("no outcome was unknown")
			}
		})
	}
}

// What a linear run is made of: few enough calls to be judged, and enough at a
// time to get into each other's way.
const (
	linearClients = 6
	linearBuyers  = 4 // so that some clients grab for the same one
	linearGrabs   = 8 // of each client
	linearTotal   = 12
	linearLimit   = 5
)

// linear has a few clients grab and cancel, while something is done to the rig,
// and checks the history. It returns how many grabs had an unknown outcome.
func (r *rig) linear(t *testing.T, harm func() []history.Span) int {
	sale := r.sell(linearTotal, linearLimit)
	rule := history.Linear{Sale: sale, LooseRefusals: r.config.Stock == "incr"}
	var running sync.WaitGroup
	if harm != nil {
		running.Go(func() { rule.Harmed = harm() })
	}
	for client := range linearClients {
		running.Go(func() { r.grabAndCancel(sale, client) })
	}
	running.Wait()
	unknown := r.history.Count(history.Grab, history.Unknown)
	r.arrived(sale) // cancellations that got lost wait for the relay
	if rule.LooseRefusals && harm != nil {
		r.repaired(sale) // incr may leave units taken, until the sale is reconciled
	}
	r.settle()
	rule.Orders = r.orders()
	if err := r.history.Linearizable(rule); err != nil {
		t.Error(err)
	}
	t.Logf("accepted %d, refused %d, unknown %d, cancelled %d", r.history.Count(history.Grab, history.OK),
		r.history.Count(history.Grab, history.Refused), unknown, r.history.Count(history.Cancel, history.OK))
	return unknown
}

// arrived waits until nothing is on its way between the stores.
func (r *rig) arrived(sale history.Sale) {
	r.eventually("arrival", func() error {
		level, err := r.stock.Level(r.t.Context(), sale.SaleID)
		if err != nil {
			return err
		}
		tally, err := r.store.Tally(r.t.Context(), sale.SaleID)
		if err == nil && level.Queued+tally.Releasing+tally.Settling > 0 {
			err = fmt.Errorf("%+v, %+v", level, tally)
		}
		return err
	})
}

// grabAndCancel is one client. Two clients of a buyer use the same request ids.
func (r *rig) grabAndCancel(sale history.Sale, client int) {
	buyer := domain.BuyerID(fmt.Sprint("b", client%linearBuyers))
	for i := range linearGrabs {
		time.Sleep(rand.N(10 * time.Millisecond))
		request := application.GrabRequest{
			Sale: sale.SaleID, Buyer: buyer, Request: domain.RequestID(fmt.Sprint("r", i)), Quantity: int64(1 + i%2),
		}
		outcome, err := r.history.Grab(context.Background(), r.Engine, request)
		for tries := 0; err != nil && tries < 3; tries++ {
			time.Sleep(300 * time.Millisecond) // until Redis is asked again
			outcome, err = r.history.Grab(context.Background(), r.Engine, request)
		}
		if err != nil || outcome.Verdict != domain.Accepted || rand.N(2) == 0 {
			continue
		}
		if _, err := r.AwaitOrder(context.Background(), outcome.Order, buyer, 5*time.Second); err == nil {
			_, _ = r.history.Cancel(context.Background(), r.Engine, outcome.Order, buyer)
		}
	}
}

// loseReplies lets commands reach Redis and their answers get lost, now and then
// until some grabs have an unknown outcome.
func (r *rig) loseReplies() (harmed []history.Span) {
	for range 10 {
		time.Sleep(10 * time.Millisecond)
		span := history.Span{From: r.history.Now()}
		heal := r.toRedis.Harm("limit_data", "downstream", map[string]int64{"bytes": 1})
		time.Sleep(20 * time.Millisecond)
		heal()
		span.Until = r.history.Now() + 300*time.Millisecond // grabs wait for the next try
		harmed = append(harmed, span)
		if r.history.Count(history.Grab, history.Unknown) >= 3 {
			break
		}
	}
	return harmed
}
