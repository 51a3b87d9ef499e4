package redisstock_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"seckill/adapters/redisstock"
	"seckill/domain"
	"seckill/test/harness"
)

// interruption is a client's hook that does something once, right before a
// transaction with a certain command is sent, or cuts the client off there.
type interruption struct {
	command string // in lower case
	do      func() // before it; may be nil
	// dies: nothing is sent any more, from before that transaction on, or from
	// after it.
	dies string // "", "before" or "after"
	met  bool
	dead bool
}

var errDead = errors.New("the process has died")

func (b *interruption) DialHook(next redis.DialHook) redis.DialHook { return next }

func (b *interruption) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if b.dead {
			cmd.SetErr(errDead)
			return errDead
		}
		return next(ctx, cmd)
	}
}

func (b *interruption) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		meets := !b.met && slices.ContainsFunc(cmds, func(cmd redis.Cmder) bool { return cmd.Name() == b.command })
		if meets {
			b.met = true
			if b.do != nil {
				b.do()
			}
			b.dead = b.dies == "before"
		}
		if b.dead {
			for _, cmd := range cmds {
				cmd.SetErr(errDead)
			}
			return errDead
		}
		err := next(ctx, cmds)
		b.dead = b.dead || meets && b.dies == "after"
		return err
	}
}

// with is the strategy with a client that has the hook.
func (s strategy) with(t testing.TB, w *world, hook *interruption) domain.Stock {
	t.Helper()
	client := redis.NewClient(&redis.Options{
		Addr: harness.SharedRedis(t).Addr, ContextTimeoutEnabled: true, ReadTimeout: 10 * time.Second, MaxRetries: -1,
	})
	t.Cleanup(func() { _ = client.Close() })
	client.AddHook(hook)
	return s.on(t, w, client)
}

// steps are the transactions of the strategies' writes, by a command in them.
var steps = map[string][]string{
	"watch": {"xadd"},
	"lock":  {"xadd"},
	"incr":  {"hincrby", "hsetnx", "xadd"},
}

// An event is something that comes between a grab's read and its write. The
// grab is "new", of dave, for 2 units of what is left of 6; the limit is 5.
type event struct {
	name string
	do   func(t *testing.T, w *world)
	want map[string]domain.Verdict // by step that it comes before; "" is any other
	held int64                     // after it all, by others
}

var events = []event{
	{"nothing", func(*testing.T, *world) {}, map[string]domain.Verdict{"": domain.Accepted}, 0},
	{"the order's release", func(t *testing.T, w *world) {
		_, err := w.Release(t.Context(), sale, order("new"))
		must(t, err)
	}, map[string]domain.Verdict{"": domain.Withdrawn}, 0},
	{"the last units", func(t *testing.T, w *world) {
		w.reserve(t, claim("e1", "erin", 5))
	}, map[string]domain.Verdict{"": domain.SoldOut}, 5},
	{"some units", func(t *testing.T, w *world) {
		w.reserve(t, claim("e1", "erin", 1), claim("e2", "erin", 1))
	}, map[string]domain.Verdict{"": domain.Accepted}, 2},
	{"the buyer's limit", func(t *testing.T, w *world) {
		w.reserve(t, claim("d1", "dave", 4))
	}, map[string]domain.Verdict{"": domain.LimitReached}, 4},
	{"another order of the request", func(t *testing.T, w *world) {
		other := claim("other", "dave", 2)
		other.Request = claim("new", "dave", 2).Request
		w.reserve(t, other)
	}, map[string]domain.Verdict{"": domain.Accepted}, 2},
	{"the same order", func(t *testing.T, w *world) {
		w.reserve(t, claim("new", "dave", 2))
	}, map[string]domain.Verdict{"": domain.Accepted}, 2},
	{"a pause", func(t *testing.T, w *world) {
		paused := gate()
		paused.State = domain.Paused
		must(t, w.SetGate(t.Context(), sale, paused, 3))
	}, map[string]domain.Verdict{"": domain.SalePaused}, 0},
	{"a lower limit", func(t *testing.T, w *world) {
		lower := gate()
		lower.PerUserLimit = 1
		must(t, w.SetGate(t.Context(), sale, lower, 3))
	}, map[string]domain.Verdict{"": domain.LimitReached}, 0},
	{"a seal", func(t *testing.T, w *world) {
		must(t, w.Seal(t.Context(), sale, 3, true))
	}, map[string]domain.Verdict{"": domain.NotReady}, 0},
	{"a new load", func(t *testing.T, w *world) {
		must(t, w.Seal(t.Context(), sale, 3, true))
		must(t, w.Preheat(t.Context(), domain.Load{Sale: sale, Epoch: 2, Gate: gate(), Total: 6, Fence: 3}))
	}, map[string]domain.Verdict{"": domain.Accepted}, 0},
	{"a new load that has the order", func(t *testing.T, w *world) {
		must(t, w.Seal(t.Context(), sale, 3, true))
		must(t, w.Preheat(t.Context(), domain.Load{Sale: sale, Epoch: 2, Gate: gate(), Total: 6, Fence: 3, Holds: []domain.Hold{
			{Order: order("new"), Buyer: "dave", Request: "r-new", Quantity: 2, State: domain.Held},
		}}))
	}, map[string]domain.Verdict{"": domain.Accepted}, 2},
	{"an adopted order", func(t *testing.T, w *world) {
		hold := domain.Hold{Order: order("e1"), Buyer: "erin", Quantity: 2, State: domain.Held}
		_, err := w.Adopt(t.Context(), sale, hold, 3)
		must(t, err)
	}, map[string]domain.Verdict{"": domain.Accepted}, 2},
	{"a recount", func(t *testing.T, w *world) {
		must(t, w.client.HIncrBy(t.Context(), w.key("sale"), "sold", 1).Err()) // else there is nothing to repair
		_, err := w.Correct(t.Context(), sale, w.level(t), 3)
		must(t, err)
	}, map[string]domain.Verdict{"": domain.Accepted}, 0},
}

// late says what an event that comes after the units were taken changes: whoever
// looks afterwards finds them taken.
var late = map[string]domain.Verdict{
	"a pause":           domain.Accepted,
	"a lower limit":     domain.Accepted,
	"the last units":    0, // they are not the last any more
	"the buyer's limit": 0,
}

// Whatever comes between a grab's read and its write, the answer is one that the
// grab could have had before or after it, and the account is right.
// covers S12, S3, S5, N1
func TestNothingSlipsBetweenReadAndWrite(t *testing.T) {
	for _, s := range strategies {
		for n, step := range steps[s.name] {
			for _, e := range events {
				want := e.want[""]
				if verdict, ok := late[e.name]; ok && n > 0 {
					want = verdict
				}
				if want == 0 || n == 2 { // what comes after the record is after the grab
					continue
				}
				t.Run(fmt.Sprintf("%s/%s/%s", s.name, step, e.name), func(t *testing.T) {
					w := open(t)
					must(t, w.Seal(t.Context(), sale, 2, true))
					must(t, w.Preheat(t.Context(), domain.Load{Sale: sale, Epoch: 1, Gate: gate(), Total: 6, Fence: 2}))
					hook := &interruption{command: step, do: func() { e.do(t, w) }}
					stock := s.with(t, w, hook)
					c := claim("new", "dave", 2)
					outcomes, err := stock.Reserve(t.Context(), sale, []domain.Claim{c})
					must(t, err)
					if !hook.met {
						t.Fatal("nothing came between")
					}
					if outcomes[0].Verdict != want {
						t.Fatalf("outcome is %+v, want %v", outcomes[0], want)
					}
					if want == domain.NotReady {
						must(t, w.Preheat(t.Context(), domain.Load{Sale: sale, Epoch: 2, Gate: gate(), Total: 6, Fence: 3}))
					}
					held := e.held
					if want == domain.Accepted && !outcomes[0].Replayed {
						held += 2
					}
					audit := w.audit(t)
					if !audit.Balanced() || audit.Level.Held != held {
						t.Fatalf("audit is %+v, want %d held", audit, held)
					}
					w.wantIntents(t, audit.Level.Epoch)
				})
			}
		}
	}
}

// wantIntents fails unless each hold of the sale has its intent, and no other
// of that epoch stands in the queue.
func (w *world) wantIntents(t *testing.T, epoch int64) {
	t.Helper()
	queued := map[domain.OrderID]bool{}
	for _, entry := range w.client.XRange(t.Context(), w.key("queue"), "-", "+").Val() {
		lines := strings.Split(entry.Values["orders"].(string), "\n")
		for i := 0; i < len(lines); i += 2 {
			if entry.Values["epoch"] == fmt.Sprint(epoch) {
				queued[domain.OrderID(lines[i])] = true
			}
		}
	}
	holds, _, err := w.Holds(t.Context(), sale, "")
	must(t, err)
	for _, hold := range holds {
		loaded := hold.Order == order("new") && epoch == 2 && hold.CreatedAt.IsZero() || hold.Order == order("e1")
		if !queued[hold.Order] && !loaded {
			t.Errorf("hold %+v is not in the queue", hold)
		}
		delete(queued, hold.Order)
	}
	if len(queued) > 0 {
		t.Errorf("the queue has intents without a hold: %v", queued)
	}
}

// The lock's lease may run out before the write: then nothing is written.
// covers S12, L4
func TestAnOvertakenLockHolderWritesNothing(t *testing.T) {
	locked := strategies[slices.IndexFunc(strategies, func(s strategy) bool { return s.name == "lock" })]
	for name, change := range map[string]func(w *world, key string) error{
		"taken": func(w *world, key string) error {
			return w.client.Set(context.Background(), key, "somebody else", time.Minute).Err()
		},
		"run out": func(w *world, key string) error { return w.client.PExpire(context.Background(), key, 0).Err() },
	} {
		// Before the write, and before the read that decides it.
		for _, command := range []string{"xadd", "get"} {
			t.Run(name+" before "+command, func(t *testing.T) {
				w := open(t)
				w.preheat(t)
				key := w.key("sale") + ":lock"
				var before map[string]string
				hook := &interruption{command: command}
				hook.do = func() {
					if w.client.Exists(t.Context(), key).Val() == 0 {
						hook.met = false // that was the read before the lock
						return
					}
					must(t, change(w, key))
					before = w.snapshot(t)
				}
				_, err := locked.with(t, w, hook).Reserve(t.Context(), sale, []domain.Claim{claim("new", "dave", 1)})
				wantErr(t, err, domain.ErrUnavailable)
				if before == nil {
					t.Fatal("the lock was never held")
				}
				w.wantUnchanged(t, before)
			})
		}
	}
}

// covers S12, L2
func TestABusyLockIsNotSoldOut(t *testing.T) {
	locked := strategies[slices.IndexFunc(strategies, func(s strategy) bool { return s.name == "lock" })]
	w := open(t)
	w.furnish(t)
	stock := locked.on(t, w, nil)
	must(t, w.client.Set(t.Context(), w.key("sale")+":lock", "somebody else", time.Minute).Err())
	before := w.snapshot(t)
	_, err := stock.Reserve(t.Context(), sale, []domain.Claim{claim("new", "dave", 1)})
	wantErr(t, err, domain.ErrUnavailable)
	// What needs no write needs no lock.
	outcomes, err := stock.Reserve(t.Context(), sale, []domain.Claim{claim("held", "alice", 2), claim("more", "alice", 4)})
	must(t, err)
	if !outcomes[0].Replayed || outcomes[1].Verdict != domain.LimitReached {
		t.Errorf("outcomes are %+v", outcomes)
	}
	w.wantUnchanged(t, before)
}

// Whenever a process dies: no unit is sold twice, no accepted order is lost,
// and what it left is put right by what a reconciliation does.
// covers S12, N1, N2, N3, Q5
func TestDyingInTheMiddleOnlyStrandsUnits(t *testing.T) {
	for _, s := range strategies {
		for _, step := range steps[s.name] {
			for _, dies := range []string{"before", "after"} {
				for _, meanwhile := range []string{"", "sold out", "same request", "withdrawn", "limit"} {
					if s.name == "incr" && step == "xadd" && meanwhile == "withdrawn" {
						continue // the grab has come before the release
					}
					name := fmt.Sprintf("%s/%s %s %s", s.name, dies, step, meanwhile)
					t.Run(name, func(t *testing.T) { dyingStrands(t, s, step, dies, meanwhile) })
				}
			}
		}
	}
}

func dyingStrands(t *testing.T, s strategy, step, dies, meanwhile string) {
	const total = 6
	w := open(t)
	must(t, w.Seal(t.Context(), sale, 2, true))
	must(t, w.Preheat(t.Context(), domain.Load{Sale: sale, Epoch: 1, Gate: gate(), Total: total, Fence: 2}))
	stock := s.with(t, w, &interruption{command: step, dies: dies, do: func() {
		switch meanwhile {
		case "sold out":
			_, err := w.Reserve(t.Context(), sale, []domain.Claim{claim("e1", "erin", 5), claim("e2", "erin", 4)})
			must(t, err)
		case "same request":
			other := claim("other", "dave", 2)
			other.Request = claim("new", "dave", 2).Request
			w.reserve(t, other)
		case "withdrawn":
			_, err := w.Release(t.Context(), sale, order("new"))
			must(t, err)
		case "limit":
			_, err := w.Reserve(t.Context(), sale, []domain.Claim{claim("d1", "dave", 4)})
			must(t, err)
		}
	}})
	c := claim("new", "dave", 2)
	outcomes, err := stock.Reserve(t.Context(), sale, []domain.Claim{c})
	if err == nil && outcomes[0].Verdict == domain.Accepted && !outcomes[0].Replayed {
		t.Logf("answered before the end: %+v", outcomes)
	} else if err != nil {
		wantErr(t, err, domain.ErrUnavailable)
	}

	must(t, w.client.Del(t.Context(), w.key("sale")+":lock").Err()) // as the end of its lease does
	w.reconcile(t, s)

	// The account is whole again, and all of it can be sold, once.
	audit := w.audit(t)
	if !audit.Balanced() {
		t.Fatalf("audit is %+v", audit)
	}
	w.wantIntents(t, 1)
	rest := s.on(t, w, nil)
	for i := range total + 1 {
		_, err := untilAnswered(t.Context(), rest, claim(fmt.Sprint("rest", i), fmt.Sprint("b", i), 1))
		must(t, err)
	}
	audit = w.audit(t)
	if !audit.Balanced() || audit.Level.Held != total || audit.Level.Available != 0 {
		t.Fatalf("audit is %+v, want all of %d held", audit, total)
	}
	w.wantIntents(t, 1)
}

// A client that hears nothing and asks again by itself must not write twice:
// a transaction is worth what it was decided on.
// covers S12, N5
func TestStrategiesAreNotRepeatedByTheClient(t *testing.T) {
	for _, s := range strategies {
		for _, step := range steps[s.name] {
			t.Run(s.name+"/"+step, func(t *testing.T) {
				server := harness.Redis(t)
				w := openAt(t, redisstock.ConnectConfig{Addrs: []string{server.Addr}})
				w.preheat(t)
				hasty := redis.NewClient(&redis.Options{
					Addr: server.Addr, ReadTimeout: 150 * time.Millisecond, MaxRetries: 3,
					MinRetryBackoff: time.Millisecond, MaxRetryBackoff: time.Millisecond,
				})
				defer hasty.Close()
				hasty.AddHook(&interruption{command: step, do: server.Pause})
				c := claim("new", "dave", 2)
				_, err := s.on(t, w, hasty).Reserve(t.Context(), sale, []domain.Claim{c})
				wantErr(t, err, domain.ErrUnavailable)
				server.Resume()
				eventually(t, "what was sent has been done", func() bool {
					stats, err := w.client.Info(t.Context(), "commandstats").Result()
					return err == nil && strings.Contains(stats, "cmdstat_"+step+":")
				})
				must(t, w.client.Del(t.Context(), w.key("sale")+":lock").Err())
				if s.name == "incr" {
					if level := w.level(t); level.Held > 2 || level.Available < 98 {
						t.Errorf("taken more than once: level is %+v", level)
					}
					w.reconcile(t, s)
				}
				outcome, err := untilAnswered(t.Context(), s.on(t, w, nil), c)
				must(t, err)
				if outcome.Verdict != domain.Accepted {
					t.Errorf("outcome is %+v", outcome)
				}
				if audit := w.audit(t); !audit.Balanced() || audit.Level.Held != 2 || audit.Level.Queued != 2 {
					t.Fatalf("audit is %+v", audit)
				}
			})
		}
	}
}

// A taking without units may be somebody's who is about to put it back. Only an
// old one is dropped by a recount that cannot add up with it.
// covers S12, N3
func TestARecountDropsOldTakingsOnly(t *testing.T) {
	for name, c := range map[string]struct {
		age  time.Duration
		want error
	}{
		"young": {time.Second, domain.ErrUnbalanced},
		"old":   {time.Minute, nil},
	} {
		t.Run(name, func(t *testing.T) {
			w := open(t)
			w.preheat(t, domain.Hold{Order: order("all"), Buyer: "alice", Quantity: 99, State: domain.Sold})
			incr, err := redisstock.NewIncr(redisstock.Config{Client: w.client, Prefix: w.prefix, Partitions: 3})
			must(t, err)
			made := w.clock(t)().Add(-c.age).UnixMilli()
			must(t, w.client.HSet(t.Context(), w.key("holds"), "taking.x.0-late", fmt.Sprintf("h%d|2|dave|r", made)).Err())
			must(t, w.client.HIncrBy(t.Context(), w.key("sale"), "held", 2).Err())
			must(t, w.client.HIncrBy(t.Context(), w.key("buyers"), "dave", 2).Err())
			before := w.snapshot(t)
			_, err = incr.Correct(t.Context(), sale, w.level(t), 2)
			if c.want != nil {
				wantErr(t, err, c.want)
				w.wantUnchanged(t, before)
				return
			}
			must(t, err)
			if audit := w.audit(t); !audit.Balanced() || audit.Level.Available != 1 {
				t.Fatalf("audit is %+v", audit)
			}
		})
	}
}

// reconcile does what a reconciliation does with a sale whose orders are not in
// the ledger yet, later than anybody can be at work on a taking.
func (w *world) reconcile(t *testing.T, s strategy) {
	t.Helper()
	ctx, stock := t.Context(), s.on(t, w, nil)
	for id, record := range w.client.HGetAll(ctx, w.key("holds")).Val() {
		if strings.HasPrefix(id, "taking.") {
			_, rest, _ := strings.Cut(record, "|")
			must(t, w.client.HSet(ctx, w.key("holds"), id, record[:1]+"1|"+rest).Err())
		}
	}
	if audit := w.audit(t); !audit.Balanced() {
		_, err := stock.Correct(ctx, sale, audit.Level, 3)
		must(t, err)
	}
	var orphans []domain.OrderID
	var units int64
	holds, _, err := stock.Holds(ctx, sale, "")
	must(t, err)
	for _, hold := range holds {
		if hold.Order != hold.Order.Order() {
			_, err := stock.Release(ctx, sale, hold.Order)
			must(t, err)
			continue
		}
		orphans = append(orphans, hold.Order)
		units += hold.Quantity
	}
	if level := w.level(t); units > level.Queued {
		_, err := stock.Requeue(ctx, sale, orphans...)
		must(t, err)
	}
}
