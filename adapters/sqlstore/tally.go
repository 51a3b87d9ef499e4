package sqlstore

import (
	"context"
	stdsql "database/sql"
	"fmt"

	"entgo.io/ent/dialect/sql"

	"seckill/domain"
	"seckill/ent"
)

// Tally implements domain.Orders.
func (s *Store) Tally(ctx context.Context, sale domain.SaleID) (domain.Tally, error) {
	account, err := s.tally(ctx, s.read, sale)
	return account, fault(err)
}

// tally counts a sale in one statement, which sees one state of the ledger in
// every database and isolation level.
func (s *Store) tally(ctx context.Context, client *ent.Client, sale domain.SaleID) (t domain.Tally, err error) {
	b := sql.Dialect(s.dialect)
	query, args := b.Select().
		AppendSelectExpr(sql.Raw("'row' AS what"), sql.Raw("epoch"), sql.Raw("total"), sql.Raw("reserved"), sql.Raw("sold")).
		From(b.Table("stocks")).Where(sql.EQ("id", sale.String())).
		UnionAll(b.Select().
			AppendSelectExpr(sql.Raw("status"), sql.Raw("0"), sql.Raw("0"), sql.Raw("0"), sql.Raw("SUM(quantity)")).
			From(b.Table("orders")).Where(ofSale(sale)).GroupBy("status")).
		UnionAll(b.Select().
			AppendSelectExpr(sql.Raw("'effect'"), sql.Raw("0"), sql.Raw("0"),
				sql.Raw("SUM(CASE WHEN status <> 'paid' THEN units ELSE 0 END)"),
				sql.Raw("SUM(CASE WHEN status = 'paid' THEN units ELSE 0 END)")).
			From(b.Table("outbox")).Where(ofSale(sale))).
		Query()
	rows, err := client.QueryContext(ctx, query, args...)
	if err != nil {
		return t, err
	}
	defer rows.Close()
	found := false
	for rows.Next() {
		var (
			what         string
			epoch, total int64
			first, last  stdsql.NullInt64 // a sum over nothing is NULL
		)
		if err := rows.Scan(&what, &epoch, &total, &first, &last); err != nil {
			return t, err
		}
		switch what {
		case "row":
			t.Epoch, t.Total, t.Reserved, t.Sold, found = epoch, total, first.Int64, last.Int64, true
		case "effect":
			t.Releasing, t.Settling = first.Int64, last.Int64
		default:
			setUnits(&t, domain.Status(what), last.Int64)
		}
	}
	if err := rows.Err(); err != nil {
		return t, err
	}
	if !found {
		return t, fmt.Errorf("sale: %w", domain.ErrNotFound)
	}
	return t, nil
}

func setUnits(t *domain.Tally, status domain.Status, units int64) {
	switch status {
	case domain.Pending:
		t.Pending = units
	case domain.Paid:
		t.Paid = units
	case domain.Cancelled:
		t.Cancelled = units
	case domain.Expired:
		t.Expired = units
	case domain.Rejected:
		t.Rejected = units
	case domain.RefundDue:
		t.RefundDue = units
	}
}

func ofSale(sale domain.SaleID) *sql.Predicate {
	return sql.And(sql.EQ("activity_id", int64(sale.Activity)), sql.EQ("sku_id", int64(sale.SKU)))
}
