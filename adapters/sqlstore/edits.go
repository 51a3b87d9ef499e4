package sqlstore

import (
	"context"
	"fmt"
	"strings"

	"seckill/domain"
	"seckill/ent"
	"seckill/ent/stock"
	"seckill/ent/stockedit"
)

// EditStock implements domain.Activities.
func (s *Store) EditStock(ctx context.Context, edit domain.StockEdit, fence domain.Fence) (domain.StockEdit, error) {
	var made domain.StockEdit
	err := s.inTx(ctx, func(ctx context.Context, tx *ent.Tx) (err error) {
		if err := s.guard(ctx, tx, fence); err != nil {
			return err
		}
		// With the row locked, edits of the sale come one after the other.
		row, err := tx.Stock.Query().Where(stock.ID(edit.Sale.String()), s.forUpdate).Only(ctx)
		if ent.IsNotFound(err) {
			return fmt.Errorf("sale: %w", domain.ErrNotFound)
		}
		if err != nil {
			return err
		}
		earlier, err := tx.StockEdit.Query().Where(stockedit.Subject(subject(edit))).Only(ctx)
		switch {
		case ent.IsNotFound(err):
			made, err = s.edit(ctx, tx, row, edit)
			return err
		case err != nil:
			return err
		}
		if made = editOf(edit.Sale, earlier); !made.Same(edit) {
			return fmt.Errorf("%w: the edit with key %s was another one", domain.ErrConflict, edit.Key)
		}
		return nil
	})
	return made, err
}

func (s *Store) edit(ctx context.Context, tx *ent.Tx, row *ent.Stock, edit domain.StockEdit) (domain.StockEdit, error) {
	edit.Total = row.Total + edit.Delta
	out := row.Reserved + row.Sold
	if edit.Total < max(out, 1) || edit.Total > domain.MaxInteger {
		return edit, fmt.Errorf("%w: the total would be %d, with %d units held or sold", domain.ErrUnbalanced, edit.Total, out)
	}
	if err := tx.Stock.UpdateOneID(row.ID).SetTotal(edit.Total).Exec(ctx); err != nil {
		return edit, err
	}
	now, err := s.clock(ctx, tx)
	if err != nil {
		return edit, err
	}
	edit.At = now
	return edit, tx.StockEdit.Create().SetSale(edit.Sale.String()).SetSubject(subject(edit)).
		SetDelta(edit.Delta).SetTotal(edit.Total).SetReason(edit.Reason).SetCreatedAt(millis(now)).Exec(ctx)
}

// StockEdits implements domain.Activities.
func (s *Store) StockEdits(ctx context.Context, sale domain.SaleID) ([]domain.StockEdit, error) {
	rows, err := s.read.StockEdit.Query().Where(stockedit.Sale(sale.String())).
		Order(ent.Desc(stockedit.FieldID)).Limit(domain.MaxEdits).All(ctx)
	if err != nil {
		return nil, fault(err)
	}
	edits := make([]domain.StockEdit, len(rows))
	for i, row := range rows {
		edits[i] = editOf(sale, row)
	}
	return edits, nil
}

// subject is what an edit is known by.
func subject(edit domain.StockEdit) string { return edit.Sale.String() + " " + string(edit.Key) }

func editOf(sale domain.SaleID, row *ent.StockEdit) domain.StockEdit {
	_, key, _ := strings.Cut(row.Subject, " ")
	return domain.StockEdit{
		Sale: sale, Delta: row.Delta, Reason: row.Reason, Key: domain.RequestID(key),
		Total: row.Total, At: moment(row.CreatedAt),
	}
}
