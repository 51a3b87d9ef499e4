package redisstock

import (
	"context"
	"errors"
	"slices"

	"github.com/redis/go-redis/v9"

	"seckill/domain"
)

// oldTaking is the age at which nobody is at work on a taking any more: many
// times what a grab has for putting things in order.
const oldTaking = 5 * cleanTime

// erase removes what was written of an order and of its request.
func (a *attempt) erase(ctx context.Context, claim domain.Claim, order, request bool) error {
	if !order && !request {
		return nil
	}
	_, err := a.tx.TxPipelined(ctx, func(pipe redis.Pipeliner) error {
		if order {
			pipe.HDel(ctx, a.keys.holds, string(claim.Order))
		}
		if request {
			pipe.HDel(ctx, a.keys.requests, requestField(claim.Buyer, claim.Request))
		}
		return nil
	})
	return orUnavailable(err)
}

// giveBack releases records that have their units, and forgets them. One that
// somebody else has released gives nothing back.
func (a *attempt) giveBack(ctx context.Context, ids ...string) error {
	if len(ids) == 0 {
		return nil
	}
	args := make([]any, len(ids))
	for i, id := range ids {
		args[i] = id
	}
	reply, err := answer(releaseScript.Run(ctx, a.tx, []string{a.keys.sale, a.keys.holds, a.keys.buyers}, args...))
	if err == nil {
		err = reply.refusal()
	}
	if err != nil && !errors.Is(err, domain.ErrNotReady) { // sealed: the load sets the figures
		return err
	}
	return orUnavailable(a.tx.HDel(ctx, a.keys.holds, ids...).Err())
}

// dropMax bounds the takings of one call of drop.lua.
const dropMax = 250

// drop undoes takings that found too few units. It is a script and no
// transaction under WATCH: at the end of a stock hundreds of grabs do this at
// the same moment, and would make each other begin again until their time is up.
func (a *attempt) drop(ctx context.Context, takings []taking) error {
	for part := range slices.Chunk(takings, dropMax) {
		args := make([]any, 0, 4*len(part))
		for _, t := range part {
			args = append(args, t.id, t.record, string(t.claim.Buyer), t.claim.Quantity)
		}
		reply, err := answer(dropScript.Run(ctx, a.tx, []string{a.keys.sale, a.keys.holds, a.keys.buyers}, args...))
		if err == nil {
			err = reply.refusal()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// returnUnrecorded gives back units that count as held while no record has
// them, unless a recount has given them back already.
func (a *attempt) returnUnrecorded(ctx context.Context, claim domain.Claim) error {
	return a.untilUnchanged(ctx, func() error {
		keys := []string{a.keys.sale, a.keys.holds, a.keys.buyers, a.keys.queue, a.keys.depth, a.keys.requests}
		reply, err := answer(auditScript.RunRO(ctx, a.tx, keys, a.keys.id))
		if err != nil || reply.refusal() != nil {
			return err // sealed: the load sets the figures
		}
		audit, err := decodeAudit(reply)
		if err != nil || audit.Level.Held-audit.HeldUnits < claim.Quantity {
			return err
		}
		_, err = a.tx.TxPipelined(ctx, func(pipe redis.Pipeliner) error {
			pipe.HIncrBy(ctx, a.keys.sale, "available", claim.Quantity)
			pipe.HIncrBy(ctx, a.keys.sale, "held", -claim.Quantity)
			pipe.HIncrBy(ctx, a.keys.buyers, string(claim.Buyer), -claim.Quantity)
			return nil
		})
		return err
	}, a.keys.sale, a.keys.holds, a.keys.buyers)
}

// untilUnchanged runs a transaction again until nothing that it watches has
// changed meanwhile, or until ctx ends.
func (a *attempt) untilUnchanged(ctx context.Context, transaction func() error, watched ...string) error {
	for try := 0; ; try++ {
		if err := a.tx.Watch(ctx, watched...).Err(); err != nil {
			return unavailable(err)
		}
		err := transaction()
		if !errors.Is(err, redis.TxFailedErr) {
			// It may have ended without writing; what follows watches nothing.
			return orUnavailable(errors.Join(err, a.tx.Unwatch(ctx).Err()))
		}
		if err := pause(ctx, try); err != nil {
			return err
		}
	}
}

// dropOldTakings forgets the takings that nobody is at work on any more. What
// they did to the figures is for a recount.
func (s *Incr) dropOldTakings(ctx context.Context, keys saleKeys) (dropped int64, err error) {
	err = s.session(ctx, keys.sale, func(tx *redis.Tx) error {
		now, err := tx.Time(ctx).Result()
		if err != nil {
			return err
		}
		for cursor, begun := uint64(0), false; cursor != 0 || !begun; begun = true {
			var fields []string
			fields, cursor, err = tx.HScan(ctx, keys.holds, cursor, takingPrefix+"*", holdsPage).Result()
			if err != nil {
				return err
			}
			var old []string
			for i := 0; i+1 < len(fields); i += 2 {
				hold, err := decodeHold(domain.OrderID(fields[i]), fields[i+1])
				if err == nil && now.Sub(hold.CreatedAt) >= oldTaking {
					old = append(old, fields[i])
				}
			}
			if len(old) == 0 {
				continue
			}
			n, err := tx.HDel(ctx, keys.holds, old...).Result()
			if err != nil {
				return err
			}
			dropped += n
		}
		return nil
	})
	return dropped, orUnavailable(err)
}
