package sqlstore

import (
	"context"
	"fmt"

	"seckill/domain"
	"seckill/ent"
	"seckill/ent/fence"
)

// NextFence implements domain.Fences. The row stays locked from the increment
// to the commit, so what is read back is this call's own number.
func (s *Store) NextFence(ctx context.Context, key string) (number int64, err error) {
	err = s.inTx(ctx, func(ctx context.Context, tx *ent.Tx) error {
		err := tx.Fence.Create().SetID(key).SetNumber(1).
			OnConflictColumns(fence.FieldID).
			Update(func(u *ent.FenceUpsert) { u.AddNumber(1) }).Exec(ctx)
		if err != nil {
			return err
		}
		row, err := tx.Fence.Get(ctx, key)
		if err != nil {
			return err
		}
		number = row.Number
		return nil
	})
	return number, err
}

// guard refuses a write whose fencing number is not the newest of its key. It
// holds off a newer number until this transaction ends.
func (s *Store) guard(ctx context.Context, tx *ent.Tx, f domain.Fence) error {
	if f == (domain.Fence{}) {
		return nil
	}
	row, err := tx.Fence.Query().Where(fence.ID(f.Key), s.forUpdate).Only(ctx)
	switch {
	case ent.IsNotFound(err):
		return nil
	case err != nil:
		return err
	case row.Number > f.Number:
		return fmt.Errorf("%w: %s has number %d, this is %d", domain.ErrFenced, f.Key, row.Number, f.Number)
	}
	return nil
}
