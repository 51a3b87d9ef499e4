package fault

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"seckill/application"
	"seckill/domain"
)

// Somebody reaches into Redis while a sale runs. Reconcile names what is wrong,
// puts right just that, says so in the report and the log, and leaves what is only
// on its way alone.
// covers N1 N3
func TestReconcileOfADamagedStore(t *testing.T) {
	for _, ledger := range []string{"mariadb", "postgres"} {
		for _, damage := range []struct {
			name   string
			do     func(d *damaged) error
			repair func(d *damaged) []string // what is put right, in order
		}{
			{"stock +3", func(d *damaged) error { return d.client.HIncrBy(d.t.Context(), d.key("sale"), "available", 3).Err() },
				func(*damaged) []string { return []string{"corrected"} }},
			{"stock −3", func(d *damaged) error { return d.client.HIncrBy(d.t.Context(), d.key("sale"), "available", -3).Err() },
				func(*damaged) []string { return []string{"corrected"} }},
			{"held units vanish", func(d *damaged) error { return d.client.HIncrBy(d.t.Context(), d.key("sale"), "held", -2).Err() },
				func(*damaged) []string { return []string{"corrected"} }},
			{"a hold removed", func(d *damaged) error { return d.client.HDel(d.t.Context(), d.key("holds"), string(d.pending)).Err() },
				func(d *damaged) []string { return []string{"corrected", "adopted " + string(d.pending)} }},
			{"a sold hold removed", func(d *damaged) error { return d.client.HDel(d.t.Context(), d.key("holds"), string(d.paid)).Err() },
				func(d *damaged) []string { return []string{"corrected", "adopted " + string(d.paid)} }},
			{"a buyer's count wrong", func(d *damaged) error { return d.client.HSet(d.t.Context(), d.key("buyers"), "calm-0", 7).Err() },
				func(*damaged) []string { return []string{"corrected"} }},
			{"a buyer's count gone", func(d *damaged) error { return d.client.HDel(d.t.Context(), d.key("buyers"), "calm-0").Err() },
				func(*damaged) []string { return []string{"corrected"} }},
			{"total −5, with more held than that", func(d *damaged) error { return d.client.HSet(d.t.Context(), d.key("sale"), "total", 1).Err() },
				func(*damaged) []string { return []string{"total set", "corrected"} }},
		} {
			t.Run(ledger+", "+damage.name, func(t *testing.T) {
				t.Parallel()
				r := newRig(t, setup{ledger: ledger})
				sale := r.sell(2000, 1)
				calm := r.storm(sale, "calm", 20, 5, 3, 0)
				calm.wait()
				r.quiet()
				d := &damaged{rig: r, client: r.redis.Client(t)}
				d.pending, d.paid = r.history.Calls()[0].Order, r.history.Calls()[1].Order
				_, err := r.history.Pay(t.Context(), r.Engine, d.paid, "", "p-1")
				r.must(err)
				r.quiet()

				load := r.storm(sale, "load", 400, 4, 3, time.Millisecond)
				load.reach(20)
				r.must(damage.do(d))
				report := r.repaired(sale)
				load.wait()
				var done []string
				for _, repair := range report.Sales[0].Repairs {
					done = append(done, strings.TrimSpace(fmt.Sprint(repair.What, " ", repair.Order)))
				}
				if got, want := strings.Join(done, ", "), strings.Join(damage.repair(d), ", "); got != want {
					t.Errorf("repairs: %s; want %s", got, want)
				}
				d.logged(report)
				r.settle(calm, load)
				if audit, err := r.stock.Audit(t.Context(), sale.SaleID); err != nil || !audit.Balanced() {
					t.Errorf("audit is %+v, %v", audit, err)
				}
			})
		}
	}
}

type damaged struct {
	*rig
	client        *redis.Client
	pending, paid domain.OrderID
}

// key is one of the sale's.
func (d *damaged) key(kind string) string {
	d.t.Helper()
	keys, err := d.client.Keys(d.t.Context(), d.config.Redis.Prefix+":{*}:"+kind+":"+d.sales[0].String()).Result()
	d.must(err)
	if len(keys) != 1 {
		d.t.Fatalf("%s: %d keys", kind, len(keys))
	}
	return keys[0]
}

// logged wants the trail: what was found, and each repair.
func (d *damaged) logged(report application.Report) {
	d.t.Helper()
	log := d.log.String()
	if !strings.Contains(log, `"msg":"the stores disagree"`) || !strings.Contains(log, `"level":"ERROR"`) {
		d.t.Error("the log does not say that the stores disagree")
	}
	for _, repair := range report.Sales[0].Repairs {
		if !strings.Contains(log, fmt.Sprintf(`"msg":"repaired","sale":"%s","what":"%s"`, report.Sales[0].Sale, repair.What)) {
			d.t.Errorf("the log does not tell the repair %+v", repair)
		}
	}
}
