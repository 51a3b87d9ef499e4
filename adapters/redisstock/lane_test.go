package redisstock_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"seckill/adapters/redisstock"
	"seckill/domain"
	"seckill/test/harness"
)

// covers T4: a crowd over several sales shares calls, and every caller hears the
// outcome of its own claim.
func TestCoalescedClaimsKeepApart(t *testing.T) {
	w := open(t)
	const sales, buyers, total = 7, 60, 20
	for i := range sales {
		preheat(t, w.Stock, saleNumber(i), total)
	}
	before := calls(t, w)
	accepted := make([]int, sales)
	var mu sync.Mutex
	crowd(sales*buyers, func(n int) {
		id, claim := saleNumber(n%sales), numbered(int64(n))
		outcomes, err := w.Reserve(t.Context(), id, []domain.Claim{claim})
		switch {
		case err != nil:
			t.Error(err)
		case outcomes[0].Verdict == domain.Accepted:
			hold, err := w.Hold(t.Context(), id, outcomes[0].Order)
			if err != nil || outcomes[0].Order != claim.Order || hold.Buyer != claim.Buyer {
				t.Errorf("claim %v: outcome %+v, hold %+v, %v", claim, outcomes[0], hold, err)
			}
			mu.Lock()
			accepted[n%sales]++
			mu.Unlock()
		case outcomes[0].Verdict != domain.SoldOut:
			t.Errorf("claim %v: %v", claim, outcomes[0].Verdict)
		}
	})
	for i, n := range accepted {
		audit, err := w.Audit(t.Context(), saleNumber(i))
		if n != total || err != nil || !audit.Balanced() || audit.Level.Held != total {
			t.Errorf("sale %d: %d accepted, %+v, %v", i, n, audit, err)
		}
	}
	if n := calls(t, w) - before; n >= sales*buyers {
		t.Errorf("%d calls for %d claims: nothing was shared", n, sales*buyers)
	}
}

// covers T4: what is wrong with one sale does not touch the others in its call.
func TestADamagedSaleFailsAlone(t *testing.T) {
	w := open(t)
	stock := w.another(t, redisstock.Config{Partitions: 1, Calls: 1})
	good, missing, damaged, broken := saleNumber(0), saleNumber(1), saleNumber(2), saleNumber(3)
	for _, id := range []domain.SaleID{good, damaged, broken} {
		preheat(t, stock, id, 1000)
	}
	key := func(kind string, id domain.SaleID) string { return w.prefix + ":{0}:" + kind + ":" + id.String() }
	must(t, w.client.HSet(t.Context(), key("sale", damaged), "available", "-1").Err())
	must(t, w.client.Set(t.Context(), key("holds", broken), "text", 0).Err())

	var wrong sync.Map
	crowd(400, func(n int) {
		id := []domain.SaleID{good, missing, damaged, broken}[n%4]
		outcomes, err := stock.Reserve(t.Context(), id, []domain.Claim{numbered(int64(n))})
		ok := false
		switch id {
		case good:
			ok = err == nil && outcomes[0].Verdict == domain.Accepted
		case missing:
			ok = err == nil && outcomes[0].Verdict == domain.NotReady
		case damaged, broken:
			ok = errors.Is(err, domain.ErrCorrupt)
		}
		if !ok {
			wrong.Store(n, fmt.Sprint(id, outcomes, err))
		}
	})
	wrong.Range(func(n, what any) bool {
		t.Errorf("claim %v: %v", n, what)
		return true
	})
}

// covers T4: a caller that gives up leaves at once; what it had not sent yet is
// never sent, and its neighbours get their units.
func TestACancelledCallerHarmsNobody(t *testing.T) {
	w := openAt(t, redisstock.ConnectConfig{Addrs: []string{harness.Redis(t).Addr}}) // which it holds up
	stock := w.another(t, redisstock.Config{Calls: 1})
	preheat(t, stock, sale, 1000)
	must(t, w.client.Do(t.Context(), "client", "pause", "60000", "write").Err())
	unpaused := false
	unpause := func() {
		if !unpaused {
			unpaused = true
			must(t, w.client.Do(context.WithoutCancel(t.Context()), "client", "unpause").Err())
		}
	}
	defer unpause()

	var group sync.WaitGroup
	reserve := func(ctx context.Context, n int64, check func([]domain.Outcome, error)) {
		group.Go(func() { check(stock.Reserve(ctx, sale, []domain.Claim{numbered(n)})) })
	}
	accepted := func(outcomes []domain.Outcome, err error) {
		if err != nil || outcomes[0].Verdict != domain.Accepted {
			t.Errorf("a neighbour got %v, %v", outcomes, err)
		}
	}
	reserve(t.Context(), 1, accepted) // is on its way, and held up
	eventually(t, "the first call is on its way", func() bool { return redisstock.Calls(stock, sale) == 1 && redisstock.Waiting(stock, sale) == 0 })

	ctx, cancel := context.WithCancel(t.Context())
	var leavers sync.WaitGroup
	for n := int64(2); n <= 21; n++ {
		leavers.Add(1)
		reserve(ctx, n, func(outcomes []domain.Outcome, err error) {
			defer leavers.Done()
			if !errors.Is(err, domain.ErrUnavailable) || !errors.Is(err, context.Canceled) {
				t.Errorf("a caller that gave up got %v, %v", outcomes, err)
			}
		})
	}
	for n := int64(22); n <= 31; n++ {
		reserve(t.Context(), n, accepted)
	}
	eventually(t, "all wait", func() bool { return redisstock.Waiting(stock, sale) == 30 })
	cancel()
	leavers.Wait() // although the server is still held up
	unpause()
	group.Wait()
	level, err := stock.Level(t.Context(), sale)
	if err != nil || level.Held != 11 {
		t.Errorf("held %d, %v; want the 11 of those who stayed", level.Held, err)
	}
}

// covers T5
func TestTheLaneIsBounded(t *testing.T) {
	w := open(t)
	stock := w.another(t, redisstock.Config{Calls: 1})
	preheat(t, stock, sale, 1)
	defer redisstock.Crowd(stock, sale)()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	_, err := stock.Reserve(ctx, sale, []domain.Claim{numbered(1)})
	if !errors.Is(err, domain.ErrUnavailable) || ctx.Err() != nil {
		t.Errorf("a full lane answered %v", err)
	}
}

// crowd runs n callers at the same moment.
func crowd(n int, do func(int)) {
	start := make(chan struct{})
	var group sync.WaitGroup
	for i := range n {
		group.Go(func() {
			<-start
			do(i)
		})
	}
	close(start)
	group.Wait()
}

// calls is how many scripts the server has run by digest.
func calls(t testing.TB, w *world) int {
	t.Helper()
	var n int
	info, err := w.client.Info(t.Context(), "commandstats").Result()
	must(t, err)
	for _, line := range strings.Split(info, "\r\n") {
		_, _ = fmt.Sscanf(line, "cmdstat_evalsha:calls=%d,", &n)
	}
	return n
}
