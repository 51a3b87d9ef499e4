package redisstock

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"

	"seckill/domain"
)

// refusals decides claims that need no write: refusals and replays. The
// outcomes are nil when any claim could be accepted.
func (s *Stock) refusals(ctx context.Context, keys saleKeys, claims []domain.Claim) ([]domain.Outcome, error) {
	found, err := s.look(ctx, keys, claims)
	if err != nil {
		return nil, err
	}
	decision, err := found.judge(claims)
	if err != nil || len(decision.accepted) > 0 {
		return nil, err
	}
	return decision.outcomes, nil
}

// guard is a key that must have a value, of its own kind, for a write to pass.
// The zero guard asks for nothing.
type guard struct{ key, value string }

// errGuard says that a guard's key had another value.
var errGuard = errors.New("the lock is not held any more")

// transact reads, judges and writes while Redis watches whether something
// changes. The outcomes are nil when something did, and when nothing is to be
// written: only a write proves that what was read is of one moment.
//
// What is watched: the sale, which every script changes that moves units, gate
// or epoch, and the holds, because a tombstone changes nothing else. Buyers and
// requests never change without one of them.
func (s *Stock) transact(ctx context.Context, keys saleKeys, claims []domain.Claim, guard guard) (outcomes []domain.Outcome, err error) {
	watched := []string{keys.sale, keys.holds}
	if guard.key != "" {
		watched = append(watched, guard.key)
	}
	err = s.config.Client.Watch(ctx, func(tx *redis.Tx) error {
		found, err := readSnapshot(ctx, tx, guard.before(tx.Pipelined), keys, claims)
		if err != nil {
			return err
		}
		decision, err := found.judge(claims)
		if err != nil || len(decision.accepted) == 0 {
			return err
		}
		_, err = tx.TxPipelined(ctx, func(pipe redis.Pipeliner) error {
			decision.write(ctx, pipe, keys, &found, claims)
			return nil
		})
		if err == nil {
			outcomes = decision.outcomes
		}
		return err
	}, watched...)
	if errors.Is(err, redis.TxFailedErr) {
		return nil, nil
	}
	return outcomes, orUnavailable(err)
}

// before has the guard's key read first, and everything fail if it is another's.
func (g guard) before(run pipelined) pipelined {
	if g.key == "" {
		return run
	}
	return func(ctx context.Context, fill func(redis.Pipeliner) error) ([]redis.Cmder, error) {
		var value *redis.StringCmd
		cmds, err := run(ctx, func(pipe redis.Pipeliner) error {
			value = pipe.Get(ctx, g.key)
			return fill(pipe)
		})
		if value.Err() == nil && value.Val() != g.value || errors.Is(value.Err(), redis.Nil) {
			err = errGuard
		}
		return cmds, err
	}
}
