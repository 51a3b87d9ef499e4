package sqlstore

import (
	"context"

	"seckill/ent"
	"seckill/ent/deployment"
)

// Agree implements domain.Deployment.
func (s *Store) Agree(ctx context.Context, name, value string) (holds string, err error) {
	err = s.inTx(ctx, func(ctx context.Context, tx *ent.Tx) error {
		err := tx.Deployment.Create().SetID(name).SetValue(value).
			OnConflictColumns(deployment.FieldID).Ignore().Exec(ctx)
		if err != nil {
			return err
		}
		row, err := tx.Deployment.Get(ctx, name)
		if err != nil {
			return err
		}
		holds = row.Value
		return nil
	})
	return holds, err
}
