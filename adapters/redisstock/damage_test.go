package redisstock_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/redis/go-redis/v9"

	"seckill/domain"
)

// covers S5
func TestWrongTypeChangesNothing(t *testing.T) {
	var damages []damage
	for kind, used := range map[string]string{
		"sale":     "reserve reacquire release settle requeue adopt correct gate seal archive level audit holds",
		"holds":    "reserve reacquire release settle requeue adopt correct audit holds",
		"buyers":   "reserve reacquire release adopt correct audit",
		"requests": "reserve reacquire adopt audit",
		"queue":    "reserve requeue correct audit depth",
		"depth":    "reserve requeue audit depth",
	} {
		damages = append(damages, damage{kind, func(ctx context.Context, w *world) error {
			if err := w.client.Del(ctx, w.key(kind)).Err(); err != nil {
				return err
			}
			return w.client.RPush(ctx, w.key(kind), "not this").Err()
		}, used})
	}
	eachDamage(t, damages)
}

// covers S7
func TestUnreadableFiguresChangeNothing(t *testing.T) {
	var damages []damage
	for field, used := range map[string]string{
		"epoch":     "reserve requeue correct level audit",
		"total":     "release correct level audit",
		"available": "reserve reacquire release adopt correct level audit",
		"held":      "reserve reacquire release settle adopt correct seal archive level audit",
		"sold":      "settle adopt correct level audit",
		"queued":    "reserve requeue seal archive level audit",
		"limit":     "reserve reacquire",
		"starts":    "reserve",
		"ends":      "reserve",
		"fence":     "adopt correct gate seal archive",
	} {
		for _, figure := range []string{"1e3", "-1", "0x10", "9007199254740992"} {
			damages = append(damages, damage{field + "=" + figure, func(ctx context.Context, w *world) error {
				return w.client.HSet(ctx, w.key("sale"), field, figure).Err()
			}, used})
		}
	}
	eachDamage(t, damages)
}

// covers S7
func TestEveryOddFigureIsRefused(t *testing.T) {
	w := open(t)
	w.furnish(t)
	for _, figure := range []string{
		"1e3", "-1", "0x10", "9007199254740992", "", " 1", "1 ", "+1", "01", "00", "1.0", "1.", "nan", "inf", "-0",
		"1\n", "1\x00", "99999999999999999999", "１",
	} {
		for place, set := range map[string]func() error{
			"available": func() error { return w.client.HSet(t.Context(), w.key("sale"), "available", figure).Err() },
			"buyer":     func() error { return w.client.HSet(t.Context(), w.key("buyers"), "alice", figure).Err() },
			"depth":     func() error { return w.client.Set(t.Context(), w.key("depth"), figure, 0).Err() },
		} {
			w.furnish(t)
			must(t, w.client.Set(t.Context(), w.key("depth"), "3", 0).Err())
			must(t, set())
			before := w.snapshot(t)
			if err := operations["reserve"](t.Context(), w); err == nil {
				t.Errorf("%s = %q is taken for a figure", place, figure)
			}
			w.wantUnchanged(t, before)
			must(t, w.client.Set(t.Context(), w.key("depth"), "3", 0).Err())
		}
	}
}

// covers S5, S7
func TestUnreadableRecordsChangeNothing(t *testing.T) {
	var damages []damage
	for _, record := range []string{"", "x", "x1|2|alice|r", "h1|1e3|alice|r", "h1|-2|alice|r", "h1|9007199254740992|alice|r"} {
		damages = append(damages, damage{fmt.Sprintf("%q", record), func(ctx context.Context, w *world) error {
			return w.client.HSet(ctx, w.key("holds"), string(order("held")), record).Err()
		}, "release settle requeue correct audit holds"})
	}
	damages = append(damages, damage{"buyer", func(ctx context.Context, w *world) error {
		return w.client.HSet(ctx, w.key("buyers"), "alice", "0x10").Err()
	}, "reserve release audit"})
	eachDamage(t, damages)
}

// A sale whose figures cannot be read is brought back by loading it anew.
// covers N7, S1
func TestForcedPreheatBringsBackADamagedSale(t *testing.T) {
	w := open(t)
	w.furnish(t)
	for _, name := range []string{"epoch", "total", "available", "held", "sold", "queued", "limit", "starts", "ends"} {
		must(t, w.client.HSet(t.Context(), w.key("sale"), name, "0x10").Err())
	}
	for _, kind := range []string{"holds", "buyers", "requests"} {
		must(t, w.client.Del(t.Context(), w.key(kind)).Err())
		must(t, w.client.RPush(t.Context(), w.key(kind), "not this").Err())
	}
	w.preheat(t, domain.Hold{Order: order("held"), Buyer: "alice", Request: "r-held", Quantity: 2, State: domain.Held})
	if audit := w.audit(t); !audit.Balanced() || audit.Level.Available != 98 || audit.HeldUnits != 2 {
		t.Fatalf("audit is %+v", audit)
	}
	w.reserve(t, claim("new", "dave", 1))
}

// covers N1, N3
func TestAuditNamesDamageAndCorrectRepairsIt(t *testing.T) {
	for _, d := range []struct {
		name      string
		do        func(ctx context.Context, w *world) error
		available int64 // after the repair
	}{
		{"three units too many", func(ctx context.Context, w *world) error {
			return w.client.HIncrBy(ctx, w.key("sale"), "available", 3).Err()
		}, 95},
		{"a unit lost", func(ctx context.Context, w *world) error {
			return w.client.HIncrBy(ctx, w.key("sale"), "held", -1).Err()
		}, 95},
		{"held and sold mixed up", func(ctx context.Context, w *world) error {
			return w.client.HSet(ctx, w.key("sale"), "held", 3, "sold", 2).Err()
		}, 95},
		{"a buyer counted too high", func(ctx context.Context, w *world) error {
			return w.client.HSet(ctx, w.key("buyers"), "alice", 5).Err()
		}, 95},
		{"a buyer forgotten", func(ctx context.Context, w *world) error {
			return w.client.HDel(ctx, w.key("buyers"), "bob").Err()
		}, 95},
		{"a buyer invented", func(ctx context.Context, w *world) error {
			return w.client.HSet(ctx, w.key("buyers"), "mallory", 1).Err()
		}, 95},
		{"units queued too many", func(ctx context.Context, w *world) error {
			return w.client.HIncrBy(ctx, w.key("sale"), "queued", 3).Err()
		}, 95},
		{"units queued too few", func(ctx context.Context, w *world) error {
			return w.client.HIncrBy(ctx, w.key("sale"), "queued", -1).Err()
		}, 95},
		{"a queue entry gone", func(ctx context.Context, w *world) error {
			entries, err := w.client.XRange(ctx, w.key("queue"), "-", "+").Result()
			if err != nil {
				return err
			}
			return w.client.XDel(ctx, w.key("queue"), entries[0].ID).Err()
		}, 95},
		{"a queue gone", func(ctx context.Context, w *world) error {
			return w.client.Del(ctx, w.key("queue")).Err()
		}, 95},
		{"a record gone", func(ctx context.Context, w *world) error {
			return w.client.HDel(ctx, w.key("holds"), string(order("held"))).Err()
		}, 97},
	} {
		t.Run(d.name, func(t *testing.T) {
			w := open(t)
			w.furnish(t)
			if audit := w.audit(t); !audit.Balanced() {
				t.Fatalf("before the damage: %+v", audit)
			}
			must(t, d.do(t.Context(), w))
			audit := w.audit(t)
			if audit.Balanced() {
				t.Fatalf("audit does not see it: %+v", audit)
			}

			stale := audit.Level
			w.reserve(t, claim("meanwhile", "erin", 1))
			before := w.snapshot(t)
			_, err := w.Correct(t.Context(), sale, stale, 2)
			wantErr(t, err, domain.ErrConflict)
			w.wantUnchanged(t, before)

			_, err = w.Correct(t.Context(), sale, w.level(t), 0)
			wantErr(t, err, domain.ErrFenced)
			w.wantUnchanged(t, before)

			fixed, err := w.Correct(t.Context(), sale, w.level(t), 2)
			must(t, err)
			if !fixed.Balanced() || fixed.Level.Available != d.available-1 {
				t.Fatalf("after the repair: %+v", fixed)
			}
			if again := w.audit(t); !again.Balanced() || again.Level != fixed.Level {
				t.Fatalf("audit after the repair: %+v", again)
			}
		})
	}
}

// unreadable are entries that say nothing readable of their units; nil is one
// that was removed by hand.
var unreadable = map[string]func(values map[string]any){
	"odd units":       func(values map[string]any) { values["units"] = "0x6" },
	"no units":        func(values map[string]any) { delete(values, "units") },
	"huge units":      func(values map[string]any) { values["units"] = "9007199254740991" },
	"too many units":  func(values map[string]any) { values["units"] = "1000001" },
	"another's sale":  func(values map[string]any) { values["sale"] = "7:7" },
	"no sale":         func(values map[string]any) { delete(values, "sale") },
	"nothing of ours": func(values map[string]any) { clear(values); values["hello"] = "world" },
	"gone":            nil,
}

// damageEntry furnishes a sale, and makes the entry with its 6 units unreadable
// while another one has 4. It returns how many entries are left.
func (w *world) damageEntry(t *testing.T, damage func(map[string]any)) (entries int) {
	t.Helper()
	w.furnish(t)
	w.reserve(t, claim("sound", "dave", 4))
	entry := w.client.XRange(t.Context(), w.key("queue"), "-", "+").Val()[0]
	must(t, w.client.XDel(t.Context(), w.key("queue"), entry.ID).Err())
	if damage != nil {
		damage(entry.Values)
		must(t, w.client.XAdd(t.Context(), &redis.XAddArgs{Stream: w.key("queue"), Values: entry.Values}).Err())
		entries++
	}
	if audit := w.audit(t); audit.Balanced() || audit.Level.Queued != 10 || audit.QueuedUnits != 4 {
		t.Fatalf("audit is %+v, want 10 units on the counter and 4 in the queue", audit)
	}
	return entries + 1
}

// correct repairs the sale and checks what is queued then.
func (w *world) correct(t *testing.T, queued int64) {
	t.Helper()
	fixed, err := w.Correct(t.Context(), sale, w.level(t), 2)
	must(t, err)
	again := w.audit(t)
	if !fixed.Balanced() || fixed.Level.Queued != queued || !again.Balanced() || again.Level != fixed.Level {
		t.Fatalf("after the repair: %+v, then %+v; want %d units queued", fixed, again, queued)
	}
}

// What an unreadable entry would have taken off must not keep its sale from
// being sealed and archived for ever.
// covers N2, N3, S2
func TestUnreadableEntriesDoNotKeepASaleForEver(t *testing.T) {
	for name, damage := range unreadable {
		t.Run(name, func(t *testing.T) {
			w := open(t)
			entries := w.damageEntry(t, damage)
			must(t, w.Queue().Ack(t.Context(), receive(t, w.Queue(), entries)...))
			_, err := w.Settle(t.Context(), sale, order("held"), order("sound"))
			must(t, err)
			// A figure that is too large has taken the other entries' units off too.
			if audit := w.audit(t); audit.Level.Queued != 0 {
				if audit.Balanced() || audit.Level.Queued != 6 || audit.QueuedUnits != 0 {
					t.Fatalf("audit is %+v, want 6 units on the counter and none in the queue", audit)
				}
				wantErr(t, w.Seal(t.Context(), sale, 2, false), domain.ErrHasHolds)
				wantErr(t, w.Archive(t.Context(), sale, 2), domain.ErrHasHolds)
				w.correct(t, 0)
			}
			must(t, w.Seal(t.Context(), sale, 2, false))
			must(t, w.Archive(t.Context(), sale, 2))
		})
	}
}

// covers N3
func TestCorrectCountsEntriesThatCanBeRead(t *testing.T) {
	for name, damage := range unreadable {
		t.Run(name, func(t *testing.T) {
			w := open(t)
			entries := w.damageEntry(t, damage)
			w.correct(t, 4)
			w.reserve(t, claim("more", "erin", 1))
			w.correct(t, 5)
			must(t, w.Queue().Ack(t.Context(), receive(t, w.Queue(), entries+1)...))
			if audit := w.audit(t); !audit.Balanced() || audit.Level.Queued != 0 {
				t.Fatalf("audit is %+v, want nothing queued", audit)
			}
		})
	}
}

// covers S1, N7
func TestPreheatCountsTheQueueAnew(t *testing.T) {
	for name, figure := range map[string]string{"too high": "99", "too low": "1", "unreadable": "x"} {
		t.Run(name, func(t *testing.T) {
			w := open(t)
			w.furnish(t)
			other := map[string]any{"sale": "1:1", "units": "5"}
			must(t, w.client.XAdd(t.Context(), &redis.XAddArgs{Stream: w.key("queue"), Values: other}).Err())
			must(t, w.client.HSet(t.Context(), w.key("sale"), "queued", figure).Err())
			w.preheat(t)
			if audit := w.audit(t); !audit.Balanced() || audit.Level.Queued != 6 {
				t.Fatalf("audit is %+v, want 6 units in the queue", audit)
			}
		})
	}
}

func TestAuditReadsALongQueueToItsEnd(t *testing.T) {
	w := open(t)
	w.preheat(t)
	want := int64(0)
	for _, more := range []int{9, 1, 1, 150} { // around the size of a page
		for range more {
			values := map[string]any{"sale": sale.String(), "units": "3"}
			must(t, w.client.XAdd(t.Context(), &redis.XAddArgs{Stream: w.key("queue"), Values: values}).Err())
			values = map[string]any{"sale": "1:1", "units": "5"}
			must(t, w.client.XAdd(t.Context(), &redis.XAddArgs{Stream: w.key("queue"), Values: values}).Err())
			want += 3
		}
		if got := w.audit(t).QueuedUnits; got != want {
			t.Fatalf("%d units are counted, want %d", got, want)
		}
	}
}

// covers S5, S7
func TestReleasedRecordsThatCannotBeReadAreNotTakenAgain(t *testing.T) {
	for _, record := range []string{"r", "r1", "r1|x|carol|", "r1|-1|carol|", "x1|1|carol|", "r1|1|carol|r|x"} {
		w := open(t)
		w.furnish(t)
		id := order("gone")
		must(t, w.client.HSet(t.Context(), w.key("holds"), string(id.Late()), record).Err())
		before := w.snapshot(t)
		_, err := w.Reacquire(t.Context(), sale, claim("gone", "carol", 1))
		wantErr(t, err, domain.ErrUnavailable)
		w.wantUnchanged(t, before)
	}
	w := open(t)
	w.furnish(t)
	must(t, w.client.HSet(t.Context(), w.key("holds"), string(order("lost")), "x1|1|dave|").Err())
	before := w.snapshot(t)
	wantErr(t, operations["adopt"](t.Context(), w), domain.ErrUnavailable)
	w.wantUnchanged(t, before)
}

func TestCorrectReplacesABuyerThatIsNoNumber(t *testing.T) {
	w := open(t)
	w.furnish(t)
	must(t, w.client.HSet(t.Context(), w.key("buyers"), "alice", "0x10").Err())
	audit, err := w.Correct(t.Context(), sale, w.level(t), 2)
	must(t, err)
	if !audit.Balanced() {
		t.Fatalf("audit is %+v", audit)
	}
	if got := w.client.HGet(t.Context(), w.key("buyers"), "alice").Val(); got != "2" {
		t.Fatalf("alice has %q", got)
	}
}

func TestCorrectRefusesMoreUnitsThanTheTotal(t *testing.T) {
	w := open(t)
	w.furnish(t)
	must(t, w.client.HSet(t.Context(), w.key("holds"), string(order("forged")), "h1|99|mallory|").Err())
	before := w.snapshot(t)
	_, err := w.Correct(t.Context(), sale, w.level(t), 2)
	wantErr(t, err, domain.ErrUnbalanced)
	w.wantUnchanged(t, before)
}

// covers P3
func TestReleaseNeverExceedsTheTotal(t *testing.T) {
	w := open(t)
	w.furnish(t)
	must(t, w.client.HSet(t.Context(), w.key("sale"), "available", 99).Err())
	_, err := w.Release(t.Context(), sale, order("held"))
	must(t, err)
	if got := w.level(t).Available; got != 100 {
		t.Fatalf("%d units available of 100", got)
	}
}

func TestAuditNamesAtMostAHundredBuyers(t *testing.T) {
	w := open(t)
	w.preheat(t)
	for i := range 250 {
		must(t, w.client.HSet(t.Context(), w.key("buyers"), fmt.Sprintf("b%d", i), 1).Err())
	}
	if got := len(w.audit(t).Buyers); got != 100 {
		t.Fatalf("%d buyers are named", got)
	}
}

// A record that cannot be read is told as such, so that reconcile can tell it
// from a server that does not answer. covers S7, N4
func TestACorruptRecordIsNamed(t *testing.T) {
	for field, ask := range map[string]func(ctx context.Context, w *world) error{
		"available": func(ctx context.Context, w *world) error { _, err := w.Level(ctx, sale); return err },
		"limit":     func(ctx context.Context, w *world) error { _, err := w.Gate(ctx, sale); return err },
		"held":      func(ctx context.Context, w *world) error { _, err := w.Audit(ctx, sale); return err },
		"queued": func(ctx context.Context, w *world) error {
			_, err := w.Reserve(ctx, sale, []domain.Claim{claim("new", "dave", 1)})
			return err
		},
	} {
		t.Run(field, func(t *testing.T) {
			w := open(t)
			w.furnish(t)
			must(t, ask(t.Context(), w))
			must(t, w.client.HSet(t.Context(), w.key("sale"), field, "-5").Err())
			err := ask(t.Context(), w)
			wantErr(t, err, domain.ErrCorrupt)
			wantErr(t, err, domain.ErrUnavailable)
		})
	}
}
