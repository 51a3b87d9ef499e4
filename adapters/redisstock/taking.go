package redisstock

import (
	"context"
	"crypto/rand"
	"errors"
	"math"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"seckill/domain"
)

// takingPrefix starts the id of a taking. It ends like the id of a second hold
// (OrderID.Late): one that is left over is released by a reconciliation, and
// not queued.
const takingPrefix = "taking."

// taking is units that a claim has taken and no order has yet.
type taking struct {
	place  int // of the claim
	claim  domain.Claim
	id     string // of its record
	record string
	paid   bool  // available had the units, and has lost them
	left   int64 // available after it
	fits   bool  // the gate is open and the buyer within the limit
}

// attempt is one try to get what was judged acceptable. All of it runs on one
// connection: a crowd that waited for second ones would hold the first.
type attempt struct {
	tx    *redis.Tx
	keys  saleKeys
	epoch int64 // that the claims were judged under
	now   int64 // of the taking, Redis TIME in ms
}

// grab takes the units of what was judged acceptable, records and queues what
// it got, and puts back the rest. It adds the outcomes to won.
//
// Once begun, it does not end with the caller: what is cut off is left for a
// reconciliation.
func (s *Incr) grab(ctx context.Context, keys saleKeys, claims []domain.Claim, epoch int64, d *decision, won map[domain.OrderID]domain.Outcome) error {
	if len(d.accepted) == 0 {
		return nil
	}
	if ctx.Err() != nil {
		return unavailable(context.Cause(ctx))
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanTime)
	defer cancel()
	return orUnavailable(s.session(ctx, keys.sale, func(tx *redis.Tx) error {
		a := &attempt{tx: tx, keys: keys, epoch: epoch}
		takings, err := a.take(ctx, claims, d)
		if err != nil || takings == nil {
			return err
		}
		var good, paid, unpaid []taking
		for _, t := range takings {
			switch {
			case t.paid && t.fits:
				good = append(good, t)
			case t.paid:
				paid = append(paid, t)
			default:
				unpaid = append(unpaid, t)
			}
		}
		// First what others may be waiting for: the units that go back.
		if err := errors.Join(a.giveBack(ctx, idsOf(paid)...), a.drop(ctx, unpaid)); err != nil {
			return err
		}
		good, problem := a.record(ctx, good)
		if err := a.queue(ctx, claims, good); err != nil {
			return errors.Join(err, problem)
		}
		for _, t := range good {
			won[t.claim.Order] = domain.Outcome{
				Verdict: domain.Accepted, Order: t.claim.Order, Before: t.left + t.claim.Quantity, After: t.left,
			}
		}
		return problem
	}))
}

// take is step 1. The takings are nil when the sale turned out not to be ready.
//
// Available must not become negative, not even for a moment: every script would
// take that for damage. HINCRBY refuses what would overflow, so available is
// first moved down to where nothing is smaller than 0 units, and back up at the
// end of the same transaction: in between, just those decrements fail that there
// are too few units for.
func (a *attempt) take(ctx context.Context, claims []domain.Claim, d *decision) ([]taking, error) {
	takings := make([]taking, len(d.accepted))
	token := takingPrefix + rand.Text() + "."
	records := make([]any, 0, 2*len(takings))
	for n, i := range d.accepted {
		takings[n] = taking{
			place: i, claim: claims[i], record: record(claims[i], d.now),
			id: string(domain.OrderID(token + strconv.Itoa(n)).Late()),
		}
		records = append(records, takings[n].id, takings[n].record)
	}
	left, has := make([]*redis.IntCmd, len(takings)), make([]*redis.IntCmd, len(takings))
	var clock *redis.TimeCmd
	var sale *redis.SliceCmd
	var sure []redis.Cmder // the commands that must not fail
	_, err := a.tx.TxPipelined(ctx, func(pipe redis.Pipeliner) error {
		clock, sale = pipe.Time(ctx), pipe.HMGet(ctx, a.keys.sale, saleFields...)
		sure = append(sure, clock, sale, pipe.HIncrBy(ctx, a.keys.sale, "available", math.MinInt64))
		for n, t := range takings {
			left[n] = pipe.HIncrBy(ctx, a.keys.sale, "available", -t.claim.Quantity)
		}
		// The way back is one more than the largest integer.
		sure = append(sure,
			pipe.HIncrBy(ctx, a.keys.sale, "available", math.MaxInt64),
			pipe.HIncrBy(ctx, a.keys.sale, "available", 1),
			pipe.HIncrBy(ctx, a.keys.sale, "held", d.taken),
			pipe.HSet(ctx, a.keys.holds, records...))
		for n, t := range takings {
			has[n] = pipe.HIncrBy(ctx, a.keys.buyers, string(t.claim.Buyer), t.claim.Quantity)
			sure = append(sure, has[n])
		}
		return nil
	})
	for _, cmd := range sure {
		if cmd.Err() != nil {
			return nil, unavailable(errors.Join(err, cmd.Err()))
		}
	}
	then := snapshot{now: clock.Val().UnixMilli()}
	err = then.parseSale(sale.Val())
	split := errors.Is(err, errSplit) // loaded anew since the claims were judged
	if err != nil && !split {
		return nil, err
	}
	a.now = then.now
	if !then.ready && !split {
		// Sealed: the load sets the sale's figures. A record would stay, and if
		// the load has passed the buyer by already, so do the buyer's units: too
		// many, until a recount.
		return nil, orUnavailable(a.tx.HDel(ctx, a.keys.holds, idsOf(takings)...).Err())
	}
	open := !split && then.epoch == a.epoch && then.gate.Judge(moment(then.now)) == domain.Accepted
	lost := map[domain.BuyerID]int64{} // units of this attempt that do not count
	for n := range takings {
		t := &takings[n]
		if t.paid = left[n].Err() == nil; t.paid {
			t.left = left[n].Val() - math.MinInt64
		}
		t.fits = open && has[n].Val()-lost[t.claim.Buyer] <= then.gate.PerUserLimit
		if !t.paid || !t.fits {
			lost[t.claim.Buyer] += t.claim.Quantity
		}
	}
	return takings, nil
}

// recording is what came back for one taking in step 2.
type recording struct {
	taking       taking
	field        string           // of its request, or ""
	mine         *redis.StringCmd // the taking's record
	first        *redis.BoolCmd   // whether the order's record is ours
	order        *redis.StringCmd // the order's record now
	firstRequest *redis.BoolCmd   // whether the request is recorded by us
	request      *redis.StringCmd // the order that has the request now
}

// record is step 2. It returns the takings that have become orders, and puts
// back whatever the others took.
func (a *attempt) record(ctx context.Context, takings []taking) ([]taking, error) {
	if len(takings) == 0 {
		return nil, nil
	}
	list := make([]recording, len(takings))
	var sale *redis.SliceCmd
	_, err := a.tx.TxPipelined(ctx, func(pipe redis.Pipeliner) error {
		sale = pipe.HMGet(ctx, a.keys.sale, saleFields...)
		for n, t := range takings {
			r, order := &list[n], string(t.claim.Order)
			r.taking, r.field = t, requestField(t.claim.Buyer, t.claim.Request)
			r.mine = pipe.HGet(ctx, a.keys.holds, t.id)
			r.first = pipe.HSetNX(ctx, a.keys.holds, order, record(t.claim, a.now))
			r.order = pipe.HGet(ctx, a.keys.holds, order)
			if r.field != "" {
				r.firstRequest = pipe.HSetNX(ctx, a.keys.requests, r.field, order)
				r.request = pipe.HGet(ctx, a.keys.requests, r.field)
			}
			pipe.HDel(ctx, a.keys.holds, t.id)
		}
		return nil
	})
	if err != nil && !errors.Is(err, redis.Nil) {
		return nil, unavailable(err)
	}
	var then snapshot
	if err := then.parseSale(sale.Val()); err != nil && !errors.Is(err, errSplit) {
		return nil, err
	}
	same := then.ready && then.epoch == a.epoch
	var recorded []taking
	var problems []error
	for _, r := range list {
		done, err := a.check(ctx, r, same)
		if done {
			recorded = append(recorded, r.taking)
		}
		problems = append(problems, err)
	}
	return recorded, errors.Join(problems...)
}

// check says whether a taking has become an order, and cleans up if not.
func (a *attempt) check(ctx context.Context, r recording, same bool) (bool, error) {
	claim, newRequest := r.taking.claim, r.field != "" && r.firstRequest.Val()
	switch {
	case !same || r.mine.Val() != r.taking.record:
		// Loaded anew, or released by who took us for dead: the units are not ours
		// any more, and what was just written stands for nothing.
		return false, a.erase(ctx, claim, r.first.Val(), newRequest)
	case !r.first.Val():
		// Another grab under the same order id was faster, or its release.
		released := strings.HasPrefix(r.order.Val(), stateLetters[domain.Released])
		return false, errors.Join(a.erase(ctx, claim, false, newRequest && released), a.returnUnrecorded(ctx, claim))
	case r.field != "" && r.request.Val() != string(claim.Order):
		// Another grab of the same request was faster: its order counts.
		return false, a.giveBack(ctx, string(claim.Order))
	}
	return true, nil
}

// queue is step 3.
func (a *attempt) queue(ctx context.Context, claims []domain.Claim, takings []taking) error {
	if len(takings) == 0 {
		return nil
	}
	var places []int
	var units int64
	for _, t := range takings {
		places = append(places, t.place)
		units += t.claim.Quantity
	}
	_, err := a.tx.TxPipelined(ctx, func(pipe redis.Pipeliner) error {
		pipe.XAdd(ctx, queueEntry(a.keys, a.epoch, a.now, claims, places))
		pipe.HIncrBy(ctx, a.keys.sale, "queued", units)
		pipe.IncrBy(ctx, a.keys.depth, int64(len(places)))
		return nil
	})
	return orUnavailable(err)
}

func idsOf(takings []taking) []string {
	ids := make([]string, len(takings))
	for i, t := range takings {
		ids[i] = t.id
	}
	return ids
}
