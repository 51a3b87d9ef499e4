package fault

import (
	"testing"
	"time"
)

// Without a fault everything is kept, on each pair of stores; and the check sees
// what the other tests rely on.
// covers N1 N2
func TestCalm(t *testing.T) {
	for _, s := range []setup{{hot: "memory", ledger: "sqlite"}, {ledger: "mariadb"}, {ledger: "postgres"}} {
		t.Run(s.hot+"+"+s.ledger, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, s)
			crowd := r.storm(r.sell(150, 1), "calm", 200, 20, 3, time.Millisecond)
			v := r.settle(crowd)
			if v.Accepted != 150 || v.Confirmed != 150 || v.Unknown != 0 {
				t.Errorf("%+v", v)
			}
		})
	}
}
