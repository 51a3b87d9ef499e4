package redisstock

import (
	"context"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"seckill/domain"
)

// decision is what the rule says to some claims.
type decision struct {
	outcomes []domain.Outcome
	now      int64                    // Redis TIME in ms
	accepted []int                    // places of the claims that are to be written
	taken    int64                    // their units
	buyers   map[domain.BuyerID]int64 // their buyers' units after them
	requests []any                    // request fields and order ids of them, in turn
	// overLimit says that some buyer has more than the limit, as they may for a
	// moment when units are taken first and looked at later.
	overLimit bool
}

// judge decides the claims in their order, as grab.lua does: replay, gate,
// limit, stock. What it accepts still has to be written.
func (f *snapshot) judge(claims []domain.Claim) (decision, error) {
	d := decision{now: f.now, outcomes: make([]domain.Outcome, len(claims)), buyers: map[domain.BuyerID]int64{}}
	if !f.ready {
		for i := range d.outcomes {
			d.outcomes[i].Verdict = domain.NotReady
		}
		return d, nil
	}
	gate := f.gate.Judge(moment(f.now))
	if gate == domain.Accepted && f.broken != nil {
		return d, f.broken
	}
	available := f.available
	fresh, first := map[string]int64{}, map[string]string{} // of this batch, as in grab.lua
	for i, claim := range claims {
		letter, earlier, err := f.replay(i, claim, fresh, first)
		if err != nil {
			return d, err
		}
		if letter == 0 && gate != domain.Accepted {
			d.outcomes[i] = domain.Outcome{Verdict: gate, Before: available, After: available}
			if gate == domain.NotStarted {
				d.outcomes[i].StartsAt = f.gate.StartsAt
			}
			continue
		}
		if letter == 0 {
			has, err := f.has(i, claim, d.buyers)
			if err != nil {
				return d, err
			}
			switch {
			case has+claim.Quantity > f.gate.PerUserLimit:
				letter = 'L'
				d.overLimit = d.overLimit || has > f.gate.PerUserLimit
			case available < claim.Quantity:
				letter = 'S'
			default:
				letter = 'A'
				d.accept(i, claim, has)
				fresh[string(claim.Order)] = claim.Quantity
				if field := requestField(claim.Buyer, claim.Request); field != "" {
					first[field] = string(claim.Order)
				}
			}
		}
		if d.outcomes[i], err = outcome(letter, claim, available); err != nil {
			return d, err
		}
		if letter == 'X' {
			d.outcomes[i].Order = domain.OrderID(earlier).Order()
		}
		available = d.outcomes[i].After
	}
	return d, nil
}

// replay finds a claim's answer among those that were given before. The letter
// is 0 when there is none; earlier is the order of the claim's request.
func (f *snapshot) replay(i int, claim domain.Claim, fresh map[string]int64, first map[string]string) (letter byte, earlier string, err error) {
	if _, known := fresh[string(claim.Order)]; known {
		return 'R', "", nil
	}
	if record, known := f.records[i].(string); known {
		state := domain.HoldState("")
		if record != "" {
			state = letterStates[record[:1]]
		}
		switch state {
		case domain.Held, domain.Sold:
			return 'R', "", nil
		case domain.Released:
			return 'W', "", nil
		}
		return 0, "", corrupt("hold")
	}
	field := requestField(claim.Buyer, claim.Request)
	if field == "" {
		return 0, "", nil
	}
	earlier, known := first[field]
	if !known {
		if earlier, known = f.asked[i].(string); !known {
			return 0, "", nil
		}
	}
	had, known := fresh[earlier]
	if !known {
		had, known = f.quantities[earlier]
	}
	if known && had != claim.Quantity {
		return 'Q', earlier, nil
	}
	return 'X', earlier, nil
}

// has is how many units the claim's buyer has by now.
func (f *snapshot) has(i int, claim domain.Claim, buyers map[domain.BuyerID]int64) (int64, error) {
	if units, known := buyers[claim.Buyer]; known {
		return units, nil
	}
	text, known := f.units[i].(string)
	if !known {
		return 0, nil
	}
	units, err := parseFigure(text)
	if err != nil {
		return 0, corrupt("buyer")
	}
	return units, nil
}

func (d *decision) accept(i int, claim domain.Claim, has int64) {
	d.accepted = append(d.accepted, i)
	d.taken += claim.Quantity
	d.buyers[claim.Buyer] = has + claim.Quantity
	if field := requestField(claim.Buyer, claim.Request); field != "" {
		d.requests = append(d.requests, field, string(claim.Order))
	}
}

// write queues the commands of an accepting decision. The figures are those
// after it: nothing may have changed since the snapshot, but for the partition's
// depth, which other sales move too.
func (d *decision) write(ctx context.Context, pipe redis.Pipeliner, keys saleKeys, f *snapshot, claims []domain.Claim) {
	holds := make([]any, 0, 2*len(d.accepted))
	for _, i := range d.accepted {
		holds = append(holds, string(claims[i].Order), record(claims[i], f.now))
	}
	buyers := make([]any, 0, 2*len(d.buyers))
	for buyer, units := range d.buyers {
		buyers = append(buyers, string(buyer), units)
	}
	pipe.XAdd(ctx, queueEntry(keys, f.epoch, f.now, claims, d.accepted))
	pipe.HSet(ctx, keys.sale, "available", f.available-d.taken, "held", f.held+d.taken, "queued", f.queued+d.taken)
	pipe.HSet(ctx, keys.holds, holds...)
	pipe.HSet(ctx, keys.buyers, buyers...)
	if len(d.requests) > 0 {
		pipe.HSet(ctx, keys.requests, d.requests...)
	}
	pipe.IncrBy(ctx, keys.depth, int64(len(d.accepted)))
}

// record is the record of a claim that is accepted now.
func record(claim domain.Claim, now int64) string {
	return stateLetters[domain.Held] + strconv.FormatInt(now, 10) + "|" + tail(claim.Buyer, claim.Request, claim.Quantity)
}

// queueEntry is the stream entry of the claims at some places, as grab.lua
// writes it.
func queueEntry(keys saleKeys, epoch, now int64, claims []domain.Claim, places []int) *redis.XAddArgs {
	var lines []string
	var units int64
	for _, i := range places {
		claim := claims[i]
		units += claim.Quantity
		lines = append(lines, string(claim.Order), tail(claim.Buyer, claim.Request, claim.Quantity))
	}
	return &redis.XAddArgs{Stream: keys.queue, Values: []any{
		"sale", keys.id, "epoch", epoch, "time", now, "units", units, "count", len(places), "orders", strings.Join(lines, "\n"),
	}}
}
