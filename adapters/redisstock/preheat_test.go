package redisstock_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"seckill/adapters/redisstock"
	"seckill/domain"
	"seckill/test/harness"
)

func manyHolds(n int) []domain.Hold {
	holds := make([]domain.Hold, n)
	for i := range holds {
		holds[i] = domain.Hold{
			Order: order(fmt.Sprint("o", i)), Buyer: domain.BuyerID(fmt.Sprint("b", i/2)),
			Request: domain.RequestID(fmt.Sprint("r", i)), Quantity: 1, State: domain.Held,
		}
		if i%3 == 0 {
			holds[i].State = domain.Sold
		}
	}
	return holds
}

// covers S1, N7
func TestAPreheatThatDiedHalfWayIsRunAgain(t *testing.T) {
	w := open(t)
	w.furnish(t)
	load := domain.Load{Sale: sale, Epoch: 2, Gate: gate(), Total: 4000, Fence: 2, Holds: manyHolds(3500)}

	// After each number of calls the process dies.
	for calls := range 5 {
		must(t, w.Seal(t.Context(), sale, 2, true))
		client := redis.NewClient(&redis.Options{Addr: harness.SharedRedis(t).Addr, MaxRetries: -1})
		client.AddHook(&dying{calls: calls})
		err := w.another(t, redisstock.Config{Client: client}).Preheat(t.Context(), load)
		_ = client.Close()
		wantErr(t, err, domain.ErrUnavailable)
		_, err = w.Level(t.Context(), sale)
		wantErr(t, err, domain.ErrNotReady)
		outcomes, err := w.Reserve(t.Context(), sale, []domain.Claim{claim("x", "x", 1)})
		must(t, err)
		if outcomes[0].Verdict != domain.NotReady {
			t.Fatalf("after %d calls a grab is %v", calls, outcomes[0].Verdict)
		}
	}
	for range 2 {
		must(t, w.Seal(t.Context(), sale, 2, true))
		must(t, w.Preheat(t.Context(), load))
		audit := w.audit(t)
		if !audit.Balanced() || audit.Level.Available != 500 || audit.HeldUnits != 2333 || audit.SoldUnits != 1167 || audit.Level.Epoch != 2 {
			t.Fatalf("audit is %+v", audit)
		}
	}
}

// dying fails every call after the first few.
type dying struct {
	keyWatch
	calls int
}

func (d *dying) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if strings.HasPrefix(cmd.Name(), "evalsha") {
			if d.calls--; d.calls < 0 {
				return context.Canceled
			}
		}
		return next(ctx, cmd)
	}
}

// covers S1
func TestOfTwoPreheatsTheLaterGoesOn(t *testing.T) {
	w := open(t)
	must(t, w.Seal(t.Context(), sale, 1, false))
	first := domain.Load{Sale: sale, Epoch: 1, Gate: gate(), Total: 9000, Fence: 1, Holds: manyHolds(2500)}
	second := domain.Load{Sale: sale, Epoch: 2, Gate: gate(), Total: 100, Fence: 1}

	// The second load comes between two parts of the first.
	client := redis.NewClient(&redis.Options{Addr: harness.SharedRedis(t).Addr})
	defer client.Close()
	client.AddHook(&between{after: 2, do: func() { must(t, w.Preheat(t.Context(), second)) }})
	err := w.another(t, redisstock.Config{Client: client}).Preheat(t.Context(), first)
	wantErr(t, err, domain.ErrState)
	if audit := w.audit(t); !audit.Balanced() || audit.Level.Total != 100 || audit.Level.Available != 100 {
		t.Fatalf("audit is %+v", audit)
	}
}

// between does something after some script calls.
type between struct {
	keyWatch
	after int
	do    func()
}

func (b *between) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		if strings.HasPrefix(cmd.Name(), "eval") && err == nil {
			if b.after--; b.after == 0 {
				b.do()
			}
		}
		return err
	}
}

// covers L5, S1
func TestAPreheatStopsWhenANewerHolderSeals(t *testing.T) {
	load := domain.Load{Sale: sale, Epoch: 1, Gate: gate(), Total: 9000, Fence: 1, Holds: manyHolds(2500)}
	for after := 1; after <= 4; after++ { // begin and three parts come before the end
		w := open(t)
		must(t, w.Seal(t.Context(), sale, 1, false))
		client := redis.NewClient(&redis.Options{Addr: harness.SharedRedis(t).Addr})
		client.AddHook(&between{after: after, do: func() { must(t, w.Seal(t.Context(), sale, 2, true)) }})
		err := w.another(t, redisstock.Config{Client: client}).Preheat(t.Context(), load)
		_ = client.Close()
		wantErr(t, err, domain.ErrFenced)
		_, err = w.Level(t.Context(), sale)
		wantErr(t, err, domain.ErrNotReady)
	}
}
