package sqlstore

import (
	"context"
	"fmt"

	"seckill/domain"
	"seckill/ent"
	"seckill/ent/fence"
)

// counterKey is the row of the newest number of all keys. No lock has that key.
const counterKey = ""

// NextFence implements domain.Fences. The rows stay locked until the commit, so
// what is read back is this call's own number. The key's row is locked first:
// where a guarded transaction makes this wait, other keys need not wait as well.
func (s *Store) NextFence(ctx context.Context, key string) (number int64, err error) {
	err = s.inTx(ctx, func(ctx context.Context, tx *ent.Tx) error {
		err := tx.Fence.Create().SetID(key).SetNumber(0).
			OnConflictColumns(fence.FieldID).Ignore().Exec(ctx)
		if err != nil {
			return err
		}
		err = tx.Fence.Create().SetID(counterKey).SetNumber(1).
			OnConflictColumns(fence.FieldID).
			Update(func(u *ent.FenceUpsert) { u.AddNumber(1) }).Exec(ctx)
		if err != nil {
			return err
		}
		counter, err := tx.Fence.Get(ctx, counterKey)
		if err != nil {
			return err
		}
		number = counter.Number
		return tx.Fence.UpdateOneID(key).SetNumber(number).Exec(ctx)
	})
	return number, err
}

// guard refuses a write whose fencing number is not the newest of its key. A
// number that the row does not have was minted since, or elsewhere: by another
// ledger, or by this one before it was set back. The guard holds off a newer
// number until this transaction ends.
func (s *Store) guard(ctx context.Context, tx *ent.Tx, f domain.Fence) error {
	if f == (domain.Fence{}) {
		return nil
	}
	row, err := tx.Fence.Query().Where(fence.ID(f.Key), fence.IDNEQ(counterKey), s.forUpdate).Only(ctx)
	switch {
	case ent.IsNotFound(err):
		return fmt.Errorf("%w: %q has no number", domain.ErrFenced, f.Key)
	case err != nil:
		return err
	case row.Number != f.Number:
		return fmt.Errorf("%w: %q has number %d, this is %d", domain.ErrFenced, f.Key, row.Number, f.Number)
	}
	return nil
}
