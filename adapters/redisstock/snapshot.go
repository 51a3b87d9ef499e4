package redisstock

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"seckill/domain"
)

// What the strategies that decide in the client have in common: they read what
// grab.lua reads, and judge as it does. The scripts keep their account, so all
// of them live on the same keys.

// errSplit says that a sale was loaded with several segments.
var errSplit = errors.New("the sale's stock is split: only lua sells from it")

// saleFields are the fields of a sale's hash that a decision needs.
var saleFields = []string{"state", "epoch", "available", "held", "queued", "limit", "starts", "ends", "segments"}

// unsplit is a Stock of which every sale has one segment: the strategies that
// decide in the client look at one.
type unsplit struct{ *Stock }

// Preheat implements domain.StockSetup.
func (s unsplit) Preheat(ctx context.Context, load domain.Load) error {
	load.Segments = 1
	return s.Stock.Preheat(ctx, load)
}

// snapshot is what Redis had of a sale and of some claims, all at one moment.
type snapshot struct {
	ready                          bool // nothing else is set when it is not
	gate                           domain.Gate
	epoch, available, held, queued int64
	now                            int64 // Redis TIME in ms

	records []any // of the claims' orders: text, or nil
	asked   []any // order ids of the claims' requests; empty when no claim has one
	units   []any // of the claims' buyers
	// quantities are those of the orders in asked that have a record.
	quantities map[string]int64
	// broken is what stands in the way of a write; replays do not mind.
	broken error
}

// session runs fn on one connection to the server that holds the key. There,
// the client does not repeat by itself what it has sent, and TIME is that
// server's. Keys of one sale are all on it.
func (s *Stock) session(ctx context.Context, key string, fn func(*redis.Tx) error) error {
	switch client := s.config.Client.(type) {
	case *redis.Client:
		return client.Watch(ctx, fn)
	case *redis.ClusterClient:
		node, err := client.MasterForKey(ctx, key)
		if err != nil {
			return unavailable(err)
		}
		err = node.Watch(ctx, fn)
		if err != nil && (strings.Contains(err.Error(), "MOVED ") || strings.Contains(err.Error(), "READONLY ")) {
			client.ReloadState(ctx) // the key has moved: the next call finds it
		}
		return err
	default:
		return s.config.Client.Watch(ctx, fn, key)
	}
}

// look takes a snapshot by itself, at one moment.
func (s *Stock) look(ctx context.Context, keys saleKeys, claims []domain.Claim) (found snapshot, err error) {
	err = s.session(ctx, keys.sale, func(tx *redis.Tx) error {
		found, err = readSnapshot(ctx, tx, tx.TxPipelined, keys, claims)
		return err
	})
	return found, orUnavailable(err)
}

// pipelined is Pipelined or TxPipelined.
type pipelined func(context.Context, func(redis.Pipeliner) error) ([]redis.Cmder, error)

// readSnapshot reads in one round trip, and in a second one where a request id
// was used before. It is of one moment if run is TxPipelined, or if the
// transaction watches the sale and its holds and comes to its end.
func readSnapshot(ctx context.Context, tx *redis.Tx, run pipelined, keys saleKeys, claims []domain.Claim) (snapshot, error) {
	n := len(claims)
	orders, buyers, fields := make([]string, n), make([]string, n), make([]string, n)
	asks := false
	for i, claim := range claims {
		orders[i], buyers[i] = string(claim.Order), string(claim.Buyer)
		fields[i] = requestField(claim.Buyer, claim.Request)
		asks = asks || fields[i] != ""
	}
	var sale, records, asked, units *redis.SliceCmd
	var clock *redis.TimeCmd
	var queue *redis.IntCmd
	var depth *redis.StringCmd
	_, err := run(ctx, func(pipe redis.Pipeliner) error {
		clock = pipe.Time(ctx)
		sale = pipe.HMGet(ctx, keys.sale, saleFields...)
		records = pipe.HMGet(ctx, keys.holds, orders...)
		if asks {
			asked = pipe.HMGet(ctx, keys.requests, fields...)
		}
		units = pipe.HMGet(ctx, keys.buyers, buyers...)
		queue = pipe.XLen(ctx, keys.queue)
		depth = pipe.Get(ctx, keys.depth)
		return nil
	})
	if errors.Is(err, errGuard) {
		return snapshot{}, unavailable(err)
	}
	if clock.Err() != nil { // nothing was answered, or not in a transaction
		return snapshot{}, unavailable(errors.Join(err, clock.Err()))
	}
	if sale.Err() != nil {
		return snapshot{}, unavailable(sale.Err())
	}
	found := snapshot{now: clock.Val().UnixMilli()}
	if err := found.parseSale(sale.Val()); err != nil || !found.ready {
		return found, err
	}
	if records.Err() != nil {
		return found, unavailable(records.Err())
	}
	found.records, found.units = records.Val(), units.Val()
	if asks {
		if asked.Err() != nil {
			return found, unavailable(asked.Err())
		}
		found.asked = asked.Val()
	}
	found.broken = writable(units, queue, depth)
	return found, found.readQuantities(ctx, tx, keys)
}

// parseSale reads the fields of the sale's hash.
func (f *snapshot) parseSale(values []any) error {
	state, _ := values[0].(string)
	if state == "" || state == sealedState {
		return nil
	}
	if segments, _ := values[len(saleFields)-1].(string); segments != "1" {
		return unavailable(errSplit)
	}
	var starts, ends int64
	f.gate.State = domain.State(state)
	for i, figure := range []*int64{&f.epoch, &f.available, &f.held, &f.queued, &f.gate.PerUserLimit, &starts, &ends} {
		text, _ := values[i+1].(string)
		var err error
		if *figure, err = parseFigure(text); err != nil {
			return corrupt(saleFields[i+1])
		}
	}
	f.gate.StartsAt, f.gate.EndsAt = moment(starts), moment(ends)
	f.ready = true
	return nil
}

// writable checks what is only needed to accept.
func writable(units *redis.SliceCmd, queue *redis.IntCmd, depth *redis.StringCmd) error {
	if units.Err() != nil {
		return unavailable(units.Err())
	}
	if queue.Err() != nil {
		return unavailable(queue.Err())
	}
	if errors.Is(depth.Err(), redis.Nil) {
		return nil
	}
	if depth.Err() != nil {
		return unavailable(depth.Err())
	}
	if _, err := parseFigure(depth.Val()); err != nil {
		return corrupt("depth")
	}
	return nil
}

// readQuantities finds how many units the earlier orders of the claims'
// requests have. An order's quantity never changes, so it may be read later.
func (f *snapshot) readQuantities(ctx context.Context, tx *redis.Tx, keys saleKeys) error {
	var earlier []string
	for _, order := range f.asked {
		if id, ok := order.(string); ok {
			earlier = append(earlier, id)
		}
	}
	if len(earlier) == 0 {
		return nil
	}
	records, err := tx.HMGet(ctx, keys.holds, earlier...).Result()
	if err != nil {
		return unavailable(err)
	}
	f.quantities = make(map[string]int64, len(earlier))
	for i, record := range records {
		text, _ := record.(string)
		if hold, err := decodeHold(domain.OrderID(earlier[i]), text); err == nil {
			f.quantities[earlier[i]] = hold.Quantity
		}
	}
	return nil
}

func corrupt(what string) error { return unavailable(fmt.Errorf("SECKILL corrupt %s", what)) }

// orUnavailable marks an error that is not marked yet.
func orUnavailable(err error) error {
	if err == nil || errors.Is(err, domain.ErrUnavailable) {
		return err
	}
	return unavailable(err)
}

// Pauses between tries: longer each time, and never in step with others.
const (
	firstPause   = 500 * time.Microsecond
	longestPause = 16 * time.Millisecond
)

// pause waits before try number n, counted from 0, or until ctx ends.
func pause(ctx context.Context, n int) error {
	longest := min(firstPause<<min(n, 10), longestPause)
	timer := time.NewTimer(rand.N(longest))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return unavailable(context.Cause(ctx))
	}
}
