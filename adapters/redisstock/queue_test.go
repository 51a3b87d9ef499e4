package redisstock_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"seckill/adapters/redisstock"
	"seckill/domain"
)

func isUnavailable(err error) bool { return errors.Is(err, domain.ErrUnavailable) }

// receive reads the sale's partition until it has n entries.
func receive(t testing.TB, queue *redisstock.Queue, n int) []domain.Delivery {
	t.Helper()
	var all []domain.Delivery
	eventually(t, fmt.Sprintf("%d entries", n), func() bool {
		got, err := queue.Receive(t.Context(), redisstock.PartitionOf(sale, 3), n)
		must(t, err)
		all = append(all, got...)
		return len(all) >= n
	})
	return all
}

// reclaim asks until it has n entries.
func reclaim(t testing.TB, queue *redisstock.Queue, n int) []domain.Delivery {
	t.Helper()
	var all []domain.Delivery
	eventually(t, fmt.Sprintf("%d entries come back", n), func() bool {
		got, err := queue.Reclaim(t.Context(), redisstock.PartitionOf(sale, 3), n)
		must(t, err)
		all = append(all, got...)
		return len(all) >= n
	})
	return all
}

// covers Q6
func TestEntriesThatCannotBeReadAreTold(t *testing.T) {
	good := map[string]any{
		"sale": sale.String(), "epoch": "1", "time": "1700000000000", "units": "3", "count": "2",
		"orders": string(order("a")) + "\n1|alice|r-1\n" + string(order("b")) + "\n2|bob|",
	}
	other := domain.SaleID{Activity: 1, SKU: 1}
	for redisstock.PartitionOf(other, 3) == redisstock.PartitionOf(sale, 3) {
		other.SKU++
	}
	w := open(t)
	w.furnish(t)
	must(t, w.Queue().Ack(t.Context(), receive(t, w.Queue(), 1)...))
	add := func(values map[string]any) domain.Delivery {
		must(t, w.client.XAdd(t.Context(), &redis.XAddArgs{Stream: w.key("queue"), Values: values}).Err())
		return receive(t, w.Queue(), 1)[0]
	}
	with := func(name string, value any) map[string]any {
		values := map[string]any{}
		for n, v := range good {
			values[n] = v
		}
		values[name] = value
		return values
	}
	if d := add(good); d.Problem != "" || len(d.Intents) != 2 || d.Intents[1].Buyer != "bob" || d.Intents[0].Epoch != 1 {
		t.Fatalf("a good entry is %+v", d)
	}
	for name, values := range map[string]map[string]any{
		"nothing known":       {"hello": "world"},
		"no sale":             with("sale", ""),
		"odd sale":            with("sale", "1001:2001:3"),
		"odd epoch":           with("epoch", "1e3"),
		"odd time":            with("time", "-1"),
		"odd units":           with("units", "0x3"),
		"other units":         with("units", "4"),
		"other count":         with("count", "3"),
		"half an order":       with("orders", string(order("a"))),
		"empty":               with("orders", ""),
		"odd order id":        with("orders", "a b\n1|alice|r\nb\n2|bob|"),
		"odd buyer":           with("orders", "a\n1||r\nb\n2|bob|"),
		"odd quantity":        with("orders", "a\n1e0|alice|r\nb\n2|bob|"),
		"part too many":       with("orders", "a\n1|alice|r|x\nb\n2|bob|"),
		"quantity past bound": with("orders", "a\n1|alice|r\nb\n1001|bob|"),
	} {
		d := add(values)
		if d.Problem == "" || d.Raw == "" || d.ID == "" || len(d.Intents) != 0 || d.Attempts != 1 {
			t.Errorf("%s: delivery is %+v", name, d)
		}
		must(t, w.Queue().Ack(t.Context(), d, d))
	}
	if n := w.client.XLen(t.Context(), w.key("queue")).Val(); n != 1 {
		t.Errorf("%d entries are left, want the good one", n)
	}
	if pending := w.client.XPending(t.Context(), w.key("queue"), redisstock.DefaultGroup).Val().Count; pending != 1 {
		t.Errorf("%d entries are pending, want the good one", pending)
	}
	if level := w.level(t); level.Queued < 0 {
		t.Errorf("queued is %d", level.Queued)
	}
}

// covers Q5
func TestALostGroupBeginsAtTheBeginning(t *testing.T) {
	w := open(t)
	w.preheat(t)
	w.reserve(t, claim("one", "alice", 1))
	w.reserve(t, claim("two", "bob", 1))
	if got := receive(t, w.Queue(), 2); len(got) != 2 {
		t.Fatalf("received %d entries", len(got))
	}
	must(t, w.client.XGroupDestroy(t.Context(), w.key("queue"), redisstock.DefaultGroup).Err())
	got, err := w.Queue().Reclaim(t.Context(), redisstock.PartitionOf(sale, 3), 10)
	must(t, err)
	if len(got) != 0 {
		t.Fatalf("reclaimed %+v from a fresh group", got)
	}
	again := receive(t, w.Queue(), 2)
	if again[0].Intents[0].Order != order("one") || again[1].Intents[0].Order != order("two") {
		t.Fatalf("received %+v", again)
	}
	must(t, w.Queue().Ack(t.Context(), again...))
}

// covers Q5, N6
func TestAStreamThatVanishesUnderAReaderIsMadeAgain(t *testing.T) {
	w := open(t)
	w.preheat(t)
	partition := redisstock.PartitionOf(sale, 3)
	done := make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	got := make(chan domain.Delivery, 1)
	go func() {
		for ctx.Err() == nil {
			deliveries, err := w.Queue().Receive(ctx, partition, 1)
			if err != nil && ctx.Err() == nil {
				done <- err
				return
			}
			for _, d := range deliveries {
				got <- d
			}
		}
		done <- nil
	}()
	for range 20 {
		must(t, w.client.Del(t.Context(), w.key("queue")).Err())
		time.Sleep(10 * time.Millisecond) // so that reader and removal meet in different moments
	}
	w.reserve(t, claim("after", "alice", 1))
	select {
	case d := <-got:
		if d.Intents[0].Order != order("after") {
			t.Errorf("received %+v", d)
		}
	case err := <-done:
		t.Fatalf("reader ended: %v", err)
	case <-time.After(30 * time.Second):
		t.Fatal("nothing was received")
	}
	cancel()
	must(t, <-done)
}

// covers Q5
func TestADeadConsumersEntriesAreReclaimedByAnother(t *testing.T) {
	w := open(t)
	w.preheat(t)
	w.reserve(t, claim("one", "alice", 1))
	dead := w.another(t, redisstock.Config{Consumer: "dead"})
	receive(t, dead.Queue(), 1)
	back := reclaim(t, w.Queue(), 1)
	if back[0].Attempts != 2 || back[0].Intents[0].Order != order("one") {
		t.Fatalf("reclaimed %+v", back[0])
	}
	partition := redisstock.PartitionOf(sale, 3)
	names := func() []string {
		consumers, err := w.client.XInfoConsumers(t.Context(), w.key("queue"), redisstock.DefaultGroup).Result()
		must(t, err)
		var all []string
		for _, c := range consumers {
			all = append(all, c.Name)
		}
		return all
	}
	must(t, w.Queue().Tidy(t.Context(), partition, time.Hour))
	if !slices.Contains(names(), "dead") {
		t.Fatal("a consumer was removed before its time")
	}
	must(t, dead.Queue().Tidy(t.Context(), partition, 0))
	if len(names()) != 2 {
		t.Fatalf("consumers are %v: one with entries, or the caller's own, was removed", names())
	}
	must(t, w.Queue().Tidy(t.Context(), partition, 0))
	if all := names(); len(all) != 1 || all[0] == "dead" {
		t.Fatalf("consumers are %v", all)
	}
}

// covers Q5
func TestAnAcknowledgedEntryIsNotReclaimed(t *testing.T) {
	w := open(t)
	w.preheat(t)
	w.reserve(t, claim("one", "alice", 1))
	w.reserve(t, claim("two", "alice", 1))
	entries := receive(t, w.Queue(), 2)
	// Deleted, but still pending: as after a half-done acknowledgement of another program.
	must(t, w.client.XDel(t.Context(), w.key("queue"), entries[0].ID).Err())
	back := reclaim(t, w.Queue(), 1)
	if len(back) != 1 || back[0].ID != entries[1].ID {
		t.Fatalf("reclaimed %+v", back)
	}
	must(t, w.Queue().Ack(t.Context(), entries...))
	if pending := w.client.XPending(t.Context(), w.key("queue"), redisstock.DefaultGroup).Val().Count; pending != 0 {
		t.Fatalf("%d entries are pending", pending)
	}
}

// A read that a caller gave up leaves no entry with a consumer that does not
// know of it.
// covers Q5, Q8
func TestCancelledReadsLoseNothing(t *testing.T) {
	w := open(t)
	w.preheat(t)
	stock := w.another(t, redisstock.Config{ReclaimAfter: time.Hour})
	const entries = 60
	go func() {
		for i := range entries {
			if _, err := w.Reserve(t.Context(), sale, []domain.Claim{claim(fmt.Sprint("c", i), fmt.Sprint("b", i), 1)}); err != nil {
				t.Error(err)
			}
		}
	}()
	seen := map[domain.OrderID]bool{}
	eventually(t, "all entries", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(rand.IntN(3000))*time.Microsecond)
		defer cancel()
		got, err := stock.Queue().Receive(ctx, redisstock.PartitionOf(sale, 3), 1)
		if err != nil && ctx.Err() == nil {
			t.Fatal(err)
		}
		for _, d := range got {
			seen[d.Intents[0].Order] = true
		}
		return len(seen) == entries
	})
}

func TestAckRefusesWhatIsNoEntry(t *testing.T) {
	w := open(t)
	for _, d := range []domain.Delivery{{ID: "x", Partition: 0}, {ID: "", Partition: 0}, {ID: "1-", Partition: 0}, {ID: "1-1", Partition: 3}, {ID: "1-1", Partition: -1}} {
		wantErr(t, w.Queue().Ack(t.Context(), d), domain.ErrInvalid)
	}
}

// covers Q4
func TestManyEntriesAreAcknowledgedInParts(t *testing.T) {
	w := open(t)
	must(t, w.Seal(t.Context(), sale, 1, true))
	must(t, w.Preheat(t.Context(), domain.Load{Sale: sale, Epoch: 1, Gate: gate(), Total: 5000, Fence: 1}))
	pipe := w.client.Pipeline()
	for i := range 2500 {
		pipe.XAdd(t.Context(), &redis.XAddArgs{Stream: w.key("queue"), Values: map[string]any{
			"sale": sale.String(), "epoch": 1, "time": 1, "units": 2, "count": 1, "orders": fmt.Sprintf("%s\n2|alice|", order(fmt.Sprint(i))),
		}})
	}
	pipe.HSet(t.Context(), w.key("sale"), "queued", 5000)
	pipe.Set(t.Context(), w.key("depth"), 2500, 0)
	_, err := pipe.Exec(t.Context())
	must(t, err)
	all := receive(t, w.Queue(), 2500)
	must(t, w.Queue().Ack(t.Context(), all...))
	depth, err := w.Queue().Depth(t.Context())
	must(t, err)
	if level := w.level(t); depth.Orders != 0 || level.Queued != 0 {
		t.Fatalf("depth is %+v, queued %d", depth, level.Queued)
	}
}
