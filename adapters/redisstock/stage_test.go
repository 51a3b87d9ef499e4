package redisstock_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"seckill/adapters/redisstock"
	"seckill/domain"
)

var sale = domain.SaleID{Activity: 1001, SKU: 2001}

func order(name string) domain.OrderID { return domain.NewOrderID(sale, name) }

func claim(name, buyer string, quantity int64) domain.Claim {
	return domain.Claim{Order: order(name), Buyer: domain.BuyerID(buyer), Request: domain.RequestID("r-" + name), Quantity: quantity}
}

func gate() domain.Gate {
	return domain.Gate{
		State:        domain.Open,
		StartsAt:     time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC),
		EndsAt:       time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC),
		PerUserLimit: 5,
	}
}

// key is one of the sale's keys, or of its partition's.
func (w *world) key(kind string) string {
	tag := fmt.Sprintf("%s:{%d}:", w.prefix, redisstock.PartitionOf(sale, 3))
	if kind == "queue" || kind == "depth" {
		return tag + kind
	}
	return tag + kind + ":" + sale.String()
}

// preheat opens the sale with 100 units.
func (w *world) preheat(t testing.TB, holds ...domain.Hold) {
	t.Helper()
	must(t, w.Seal(t.Context(), sale, 2, true))
	must(t, w.Preheat(t.Context(), domain.Load{Sale: sale, Epoch: 1, Gate: gate(), Total: 100, Fence: 2, Holds: holds}))
}

// furnish makes a sale with a held, a sold and a released hold.
func (w *world) furnish(t testing.TB) {
	t.Helper()
	w.preheat(t)
	w.reserve(t, claim("held", "alice", 2), claim("sold", "bob", 3), claim("gone", "carol", 1))
	_, err := w.Settle(t.Context(), sale, order("sold"))
	must(t, err)
	_, err = w.Release(t.Context(), sale, order("gone"))
	must(t, err)
}

func (w *world) reserve(t testing.TB, claims ...domain.Claim) []domain.Outcome {
	t.Helper()
	outcomes, err := w.Reserve(t.Context(), sale, claims)
	must(t, err)
	for i, outcome := range outcomes {
		if outcome.Verdict != domain.Accepted {
			t.Fatalf("claim %d is %v", i, outcome.Verdict)
		}
	}
	return outcomes
}

func (w *world) level(t testing.TB) domain.Level {
	t.Helper()
	level, err := w.Level(t.Context(), sale)
	must(t, err)
	return level
}

func (w *world) audit(t testing.TB) domain.Audit {
	t.Helper()
	audit, err := w.Audit(t.Context(), sale)
	must(t, err)
	return audit
}

// keys lists all keys of the world. It asks every server of a cluster.
func (w *world) keys(t testing.TB) []string {
	t.Helper()
	var all []string
	list := func(ctx context.Context, client *redis.Client) error {
		keys, err := client.Keys(ctx, w.prefix+":*").Result()
		all = append(all, keys...)
		return err
	}
	switch client := w.client.(type) {
	case *redis.ClusterClient:
		for _, node := range clusterMasters(t, client) {
			must(t, list(t.Context(), node))
		}
	case *redis.Client:
		must(t, list(t.Context(), client))
	}
	slices.Sort(all)
	return all
}

// snapshot is everything that Redis holds of the world.
func (w *world) snapshot(t testing.TB) map[string]string {
	t.Helper()
	ctx := t.Context()
	all := map[string]string{}
	for _, key := range w.keys(t) {
		kind := w.client.Type(ctx, key).Val()
		switch kind {
		case "hash":
			fields := w.client.HGetAll(ctx, key).Val()
			for _, name := range slices.Sorted(maps.Keys(fields)) {
				all[key+" "+name] = fields[name]
			}
		case "stream":
			for _, entry := range w.client.XRange(ctx, key, "-", "+").Val() {
				all[key+" "+entry.ID] = fmt.Sprint(entry.Values)
			}
		case "string":
			all[key] = strconv.Quote(w.client.Get(ctx, key).Val())
		default:
			all[key] = kind
		}
	}
	return all
}

// wantUnchanged fails when anything differs from the snapshot.
func (w *world) wantUnchanged(t testing.TB, before map[string]string) {
	t.Helper()
	if diff := cmp.Diff(before, w.snapshot(t)); diff != "" {
		t.Fatalf("something was written (-before +after):\n%s", diff)
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantErr(t testing.TB, err, sentinel error) {
	t.Helper()
	if !errors.Is(err, sentinel) {
		t.Fatalf("error is %v, want %v", err, sentinel)
	}
}

// operations are the port's methods, called so that each has something to do
// on a furnished sale.
var operations = map[string]func(ctx context.Context, w *world) error{
	"reserve": func(ctx context.Context, w *world) error {
		_, err := w.Reserve(ctx, sale, []domain.Claim{claim("new", "dave", 1), claim("newer", "alice", 2)})
		return err
	},
	"reacquire": func(ctx context.Context, w *world) error {
		_, err := w.Reacquire(ctx, sale, claim("gone", "carol", 1))
		return err
	},
	"release": func(ctx context.Context, w *world) error {
		_, err := w.Release(ctx, sale, order("held"), order("never"))
		return err
	},
	"settle": func(ctx context.Context, w *world) error {
		_, err := w.Settle(ctx, sale, order("held"))
		return err
	},
	"requeue": func(ctx context.Context, w *world) error {
		_, err := w.Requeue(ctx, sale, order("held"))
		return err
	},
	"adopt": func(ctx context.Context, w *world) error {
		_, err := w.Adopt(ctx, sale, domain.Hold{Order: order("lost"), Buyer: "dave", Request: "r", Quantity: 1, State: domain.Sold}, 2)
		return err
	},
	"correct": func(ctx context.Context, w *world) error {
		seen := domain.Level{Epoch: 1, Total: 100, Available: 95, Held: 2, Sold: 3}
		_, err := w.Correct(ctx, sale, seen, 2)
		return err
	},
	"gate":    func(ctx context.Context, w *world) error { return w.SetGate(ctx, sale, gate(), 2) },
	"seal":    func(ctx context.Context, w *world) error { return w.Seal(ctx, sale, 2, false) },
	"archive": func(ctx context.Context, w *world) error { return w.Archive(ctx, sale, 2) },
	"level":   func(ctx context.Context, w *world) error { _, err := w.Level(ctx, sale); return err },
	"audit":   func(ctx context.Context, w *world) error { _, err := w.Audit(ctx, sale); return err },
	"depth":   func(ctx context.Context, w *world) error { _, err := w.Queue().Depth(ctx); return err },
	"holds": func(ctx context.Context, w *world) error {
		_, _, err := w.Holds(ctx, sale, "")
		return err
	},
}

// eachDamage runs every operation on a damaged furnished sale. It must fail and
// change nothing where it uses what is damaged, and leave that alone elsewhere.
func eachDamage(t *testing.T, damages []damage) {
	for _, d := range damages {
		t.Run(d.name, func(t *testing.T) {
			for _, name := range slices.Sorted(maps.Keys(operations)) {
				t.Run(name, func(t *testing.T) {
					w := open(t)
					w.furnish(t)
					must(t, d.do(t.Context(), w))
					before := w.snapshot(t)
					err := operations[name](t.Context(), w)
					used := slices.Contains(strings.Fields(d.used), name)
					switch {
					case err == nil && used:
						t.Fatal("no error")
					case err == nil || errors.Is(err, domain.ErrHasHolds):
						return
					case !errors.Is(err, domain.ErrUnavailable):
						t.Fatalf("error is %v, want ErrUnavailable", err)
					case !used:
						t.Fatalf("error %v, though it needs nothing of that", err)
					}
					w.wantUnchanged(t, before)
				})
			}
		})
	}
}

// damage is something that nobody but an operator's hand does to a sale.
type damage struct {
	name string
	do   func(ctx context.Context, w *world) error
	used string // the operations that need what is damaged
}
