package fault

import (
	"errors"
	"testing"
	"time"

	"seckill/domain"
	"seckill/test/history"
)

// Redis loses everything in the middle of a sale. The engine sees it by itself,
// and the sale goes on with what the ledger knows; who was told an order id that
// is gone, hears so.
// covers N7
func TestFlushInTheMiddleOfASale(t *testing.T) {
	for _, ledger := range []string{"mariadb", "postgres"} {
		t.Run(ledger, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, setup{ledger: ledger, own: true})
			sale := r.sell(700, 1)
			crowd := r.storm(sale, "flush", 900, 30, 200, 2*time.Millisecond)
			crowd.reach(300)
			r.must(r.redis.Client(t).FlushAll(t.Context()).Err())
			v := r.settle(crowd)
			t.Logf("%+v", v)
			if v.Confirmed < 500 {
				t.Errorf("%d orders, the sale did not go on", v.Confirmed)
			}
			report, err := r.Report(t.Context(), sale.Activity)
			r.must(err)
			if report.Sales[0].Ledger.Epoch < 2 {
				t.Errorf("epoch %d: the sale was not loaded anew", report.Sales[0].Ledger.Epoch)
			}
		})
	}
}

// With the ledger away orders wait in Redis alone. When that loses them, their
// ids are answered for good, and one that nobody ever had is not found.
// covers N7 N2
func TestALostOrderIsToldSo(t *testing.T) {
	r := newRig(t, setup{ledger: "mariadb", own: true})
	sale := r.sell(300, 1)
	r.toSQL.Cut()
	crowd := r.storm(sale, "lost", 300, 20, 1, 0)
	crowd.wait()
	r.must(r.redis.Client(t).FlushAll(t.Context()).Err())
	r.toSQL.Mend()
	v := r.settle()
	if v.Rejected == 0 {
		t.Errorf("%+v: nothing was lost", v)
	}
	for _, call := range r.history.Calls() {
		if call.Kind != history.Grab {
			continue
		}
		order, err := r.Order(t.Context(), call.Order, call.Buyer)
		r.must(err)
		if order.Status == domain.Rejected && order.Reason != domain.ReasonLost && order.Reason != domain.ReasonStaleEpoch {
			t.Fatalf("order is %+v", order)
		}
	}
	if _, err := r.Order(t.Context(), domain.NewOrderID(sale.SaleID, "abc"), "lost-0"); !errors.Is(err, domain.ErrNotFound) {
		t.Errorf("an id that was never minted: %v", err)
	}
}

// Everything is started again at once, Redis and the only node, while Redis has
// orders that are not in the ledger: they get there, none is taken for lost.
// covers N7 Q5
func TestRestartOfEverything(t *testing.T) {
	for _, ledger := range []string{"mariadb", "postgres"} {
		t.Run(ledger, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, setup{ledger: ledger, own: true})
			crowd := r.storm(r.sell(1000, 1), "c", 500, 20, 1, 0)
			crowd.reach(200)
			r.toSQL.Cut()
			crowd.wait()
			r.stop()
			r.redis.Restart()
			r.toSQL.Mend()
			r.start()
			if v := r.settle(crowd); v.Confirmed != 500 {
				t.Errorf("%+v", v)
			}
		})
	}
}
