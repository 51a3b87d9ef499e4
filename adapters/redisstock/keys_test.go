package redisstock_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"seckill/adapters/redisstock"
	"seckill/domain"
)

// covers S2
func TestNoKeyExpires(t *testing.T) {
	w := open(t)
	w.furnish(t)
	for _, name := range slices.Sorted(maps.Keys(operations)) {
		if name == "archive" {
			continue
		}
		if err := operations[name](t.Context(), w); err != nil && !errors.Is(err, domain.ErrHasHolds) && !errors.Is(err, domain.ErrConflict) {
			t.Fatalf("%s: %v", name, err)
		}
	}
	keys := w.keys(t)
	if len(keys) != 6 {
		t.Fatalf("keys are %v, want six", keys)
	}
	for _, key := range keys {
		if ttl := w.client.TTL(t.Context(), key).Val(); ttl != -1 {
			t.Errorf("%s lives for %v", key, ttl)
		}
	}
}

// covers S2
func TestArchiveLeavesNothing(t *testing.T) {
	w := open(t)
	w.preheat(t)
	must(t, w.Archive(t.Context(), sale, 2))
	if keys := w.keys(t); len(keys) != 0 {
		t.Fatalf("keys are left: %v", keys)
	}
}

// covers S10
func TestKeysOfACallShareATag(t *testing.T) {
	w := open(t)
	w.furnish(t)
	watch := &keyWatch{calls: map[string]bool{}}
	w.client.AddHook(watch)
	for _, name := range slices.Sorted(maps.Keys(operations)) {
		_ = operations[name](t.Context(), w)
	}
	w.preheat(t, domain.Hold{Order: order("a"), Buyer: "alice", Request: "r", Quantity: 1, State: domain.Held})
	must(t, w.Queue().Ack(t.Context(), domain.Delivery{ID: "1-1", Partition: redisstock.PartitionOf(sale, 3), Sale: sale}))
	if len(watch.calls) < 15 {
		t.Fatalf("only %d scripts were seen", len(watch.calls))
	}
	for _, problem := range watch.problems {
		t.Error(problem)
	}
}

// keyWatch looks at the keys of every script call.
type keyWatch struct {
	mu       sync.Mutex
	calls    map[string]bool
	problems []string
}

var tagOf = regexp.MustCompile(`^[^{}]+:(\{\d+\}):[^{}]+$`)

func (k *keyWatch) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if strings.HasPrefix(cmd.Name(), "eval") {
			k.look(cmd.Args())
		}
		return next(ctx, cmd)
	}
}

func (k *keyWatch) look(args []any) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.calls[fmt.Sprint(args[1])] = true
	tags := map[string]bool{}
	for _, key := range args[3 : 3+args[2].(int)] {
		match := tagOf.FindStringSubmatch(key.(string))
		if match == nil {
			k.problems = append(k.problems, fmt.Sprintf("key %v has no tag", key))
			return
		}
		tags[match[1]] = true
	}
	if len(tags) != 1 {
		k.problems = append(k.problems, fmt.Sprintf("keys have tags %v", tags))
	}
}

func (k *keyWatch) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

func (k *keyWatch) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// Where a sale's keys are must not change with a release of this program.
// covers S10
func TestPartitionsAreStable(t *testing.T) {
	for _, c := range []struct {
		sale domain.SaleID
		want int
	}{
		{domain.SaleID{Activity: 1001, SKU: 2001}, 9},
		{domain.SaleID{Activity: 1, SKU: 1}, 5},
		{domain.SaleID{Activity: domain.MaxInteger, SKU: domain.MaxInteger}, 5},
	} {
		if got := redisstock.PartitionOf(c.sale, 16); got != c.want {
			t.Errorf("sale %s is in partition %d, want %d", c.sale, got, c.want)
		}
	}
	seen := map[int]int{}
	for sku := range 1600 {
		seen[redisstock.PartitionOf(domain.SaleID{Activity: 7, SKU: domain.SKUID(sku + 1)}, 16)]++
	}
	for p := range 16 {
		if seen[p] < 50 {
			t.Errorf("partition %d has %d of 1600 sales", p, seen[p])
		}
	}
}

// covers A6, S10
func TestIDsThatCouldBreakOutAreRefused(t *testing.T) {
	w := open(t)
	w.furnish(t)
	before := w.snapshot(t)
	good := claim("good", "alice", 1)
	for _, id := range []string{"a|b", "a\nb", "a b", "a\x00", "{1}", "a:b", "é", strings.Repeat("a", 200)} {
		for _, bad := range []domain.Claim{
			{Order: domain.OrderID(id), Buyer: "alice", Quantity: 1},
			{Order: order("x"), Buyer: domain.BuyerID(id), Quantity: 1},
			{Order: order("x"), Buyer: "alice", Request: domain.RequestID(id), Quantity: 1},
		} {
			_, err := w.Reserve(t.Context(), sale, []domain.Claim{good, bad})
			wantErr(t, err, domain.ErrInvalid)
			_, err = w.Reacquire(t.Context(), sale, bad)
			wantErr(t, err, domain.ErrInvalid)
			hold := domain.Hold{Order: bad.Order, Buyer: bad.Buyer, Request: bad.Request, Quantity: 1, State: domain.Held}
			_, err = w.Adopt(t.Context(), sale, hold, 2)
			wantErr(t, err, domain.ErrInvalid)
		}
		_, err := w.Release(t.Context(), sale, order("held"), domain.OrderID(id))
		wantErr(t, err, domain.ErrInvalid)
		_, err = w.Settle(t.Context(), sale, order("held"), domain.OrderID(id))
		wantErr(t, err, domain.ErrInvalid)
		_, err = w.Requeue(t.Context(), sale, order("held"), domain.OrderID(id))
		wantErr(t, err, domain.ErrInvalid)
	}
	w.wantUnchanged(t, before)
}

// covers A6
func TestLegalIDsComeThroughWhole(t *testing.T) {
	w := open(t)
	w.preheat(t)
	longest := strings.Repeat("Z", domain.MaxNameBytes)
	names := []string{"-", ".", "@", "_", "0", "h1", "nil", "false", "%d", "1e3", "..", "__index", longest}
	names = slices.DeleteFunc(names, func(name string) bool { _, err := domain.ParseBuyerID(name); return err != nil })
	var claims []domain.Claim
	for i, name := range names {
		claims = append(claims, domain.Claim{
			Order: order(fmt.Sprint("n", i)), Buyer: domain.BuyerID(name), Request: domain.RequestID(name), Quantity: 2,
		})
	}
	w.reserve(t, claims...)
	deliveries := receive(t, w.Queue(), 1)
	for i, c := range claims {
		hold, err := w.Hold(t.Context(), sale, c.Order)
		must(t, err)
		if hold.Buyer != c.Buyer || hold.Request != c.Request || hold.Quantity != 2 || hold.State != domain.Held {
			t.Errorf("hold is %+v, want that of %+v", hold, c)
		}
		intent := deliveries[0].Intents[i]
		if intent.Order != c.Order || intent.Buyer != c.Buyer || intent.Request != c.Request || intent.Quantity != 2 {
			t.Errorf("intent is %+v, want that of %+v", intent, c)
		}
	}
}

func TestConfigIsChecked(t *testing.T) {
	client := redis.NewClient(&redis.Options{})
	defer client.Close()
	for name, config := range map[string]redisstock.Config{
		"client":       {},
		"prefix":       {Client: client, Prefix: "a{b}"},
		"partitions":   {Client: client, Partitions: -1},
		"group":        {Client: client, Group: "a b"},
		"consumer":     {Client: client, Consumer: "a\nb"},
		"reclaimAfter": {Client: client, ReclaimAfter: time.Microsecond},
		"reclaimMax":   {Client: client, ReclaimAfter: time.Minute, ReclaimMax: time.Second},
	} {
		_, err := redisstock.New(config)
		var field *domain.FieldError
		if !errors.As(err, &field) || field.Field != name {
			t.Errorf("error is %v, want one that names %s", err, name)
		}
	}
}

func TestConnectSettingsAreChecked(t *testing.T) {
	for name, config := range map[string]redisstock.ConnectConfig{
		"addrs":  {},
		"master": {Addrs: []string{"127.0.0.1:1"}, Cluster: true, Master: "m"},
		"db":     {Addrs: []string{"127.0.0.1:1", "127.0.0.1:2"}, DB: 1},
	} {
		_, _, err := redisstock.Connect(config)
		var field *domain.FieldError
		if !errors.As(err, &field) || field.Field != name {
			t.Errorf("error is %v, want one that names %s", err, name)
		}
	}
}
