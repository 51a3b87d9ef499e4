package sqlstore

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"entgo.io/ent/dialect/sql"

	"seckill/domain"
	"seckill/ent"
	"seckill/ent/deadletter"
	"seckill/ent/order"
)

// maxRows bounds the ids or rows of one statement. The smallest bound of the
// databases is SQLite's 32,766 parameters; an order has 15.
const maxRows = 500

// Find implements domain.Orders.
func (s *Store) Find(ctx context.Context, ids ...domain.OrderID) ([]domain.Order, error) {
	found, err := s.orders(ctx, ids)
	if err != nil {
		return nil, fault(err)
	}
	var missing []string
	have := byID(found)
	for _, id := range ids {
		if _, ok := have[id]; !ok {
			missing = append(missing, string(id))
		}
	}
	for chunk := range slices.Chunk(missing, maxRows) {
		letters, err := s.read.DeadLetter.Query().Where(deadletter.SubjectIn(chunk...)).All(ctx)
		if err != nil {
			return nil, fault(err)
		}
		for _, row := range letters {
			found = append(found, rejectedBy(toLetter(row)))
		}
	}
	return found, nil
}

// Holds implements domain.Orders. The orders of a sale are one range of an
// index, sorted by id, so all pages together read each of them once.
func (s *Store) Holds(ctx context.Context, sale domain.SaleID, after domain.OrderID, max int) ([]domain.Order, error) {
	b := sql.Dialect(s.dialect)
	query, args := b.Select(orderColumns...).From(b.Table(bySaleSQL[s.dialect]).Unquote()).
		Where(sql.And(
			ofSale(sale),
			sql.GT(order.FieldID, string(after)),
			sql.Or(sql.In(order.FieldStatus, string(domain.Pending), string(domain.Paid)), sql.NotNull(order.FieldRequest)),
		)).OrderBy(order.FieldID).Limit(max).Query()
	rows, err := s.read.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, fault(err)
	}
	defer rows.Close()
	var found []*ent.Order
	if err := errors.Join(sql.ScanSlice(rows, &found), rows.Err()); err != nil {
		return nil, fault(err)
	}
	holds := make([]domain.Order, len(found))
	for i, row := range found {
		holds[i] = toOrder(row)
	}
	return holds, nil
}

// orders reads those of the ids that have a row.
func (s *Store) orders(ctx context.Context, ids []domain.OrderID) ([]domain.Order, error) {
	var found []domain.Order
	for chunk := range slices.Chunk(ids, maxRows) {
		keys := make([]string, len(chunk))
		for i, id := range chunk {
			keys[i] = string(id)
		}
		rows, err := s.read.Order.Query().Where(func(q *sql.Selector) { q.Where(s.among(q.C(order.FieldID), keys)) }).All(ctx)
		if err != nil {
			return nil, err
		}
		for _, row := range rows {
			found = append(found, toOrder(row))
		}
	}
	return found, nil
}

func byID(orders []domain.Order) map[domain.OrderID]domain.Order {
	m := make(map[domain.OrderID]domain.Order, len(orders))
	for _, o := range orders {
		m[o.ID] = o
	}
	return m
}

func compareOrders(a, b domain.Order) int { return cmp.Compare(a.ID, b.ID) }

// orderColumns are in the order of orderValues.
var orderColumns = []string{
	order.FieldID, order.FieldActivityID, order.FieldSkuID, order.FieldBuyer, order.FieldRequest,
	order.FieldQuantity, order.FieldEpoch, order.FieldStatus, order.FieldReason, order.FieldPayment, order.FieldHold,
	order.FieldCreatedAt, order.FieldExpiresAt, order.FieldPaidAt, order.FieldClosedAt,
}

func orderValues(o domain.Order) []any {
	return []any{
		string(o.ID), int64(o.Sale.Activity), int64(o.Sale.SKU), string(o.Buyer), request(o),
		o.Quantity, o.Epoch, string(o.Status), o.Reason, string(o.Payment), string(o.Hold),
		millis(o.CreatedAt), millis(o.ExpiresAt), millis(o.PaidAt), millis(o.ClosedAt),
	}
}

// insertOrders writes order rows, in the order of their ids. It uses ent's
// statement builder directly: the entities' own bulk insert was half of the
// processor time of Place.
func (s *Store) insertOrders(ctx context.Context, tx *ent.Tx, orders []domain.Order) error {
	sorted := slices.SortedFunc(slices.Values(orders), compareOrders)
	for chunk := range slices.Chunk(sorted, maxRows) {
		insert := sql.Dialect(s.dialect).Insert(order.Table).Columns(orderColumns...)
		rows := make([][]any, len(chunk))
		for i, o := range chunk {
			rows[i] = orderValues(o)
		}
		s.addRows(insert, rows)
		if err := execute(ctx, tx, insert); err != nil {
			return err
		}
	}
	return nil
}

// execute runs a statement for its effect.
func execute(ctx context.Context, tx *ent.Tx, statement sql.Querier) error {
	query, args := statement.Query()
	_, err := tx.Client().ExecContext(ctx, query, args...)
	return err
}

// request is what the unique index sees. It must see nothing of an order that was
// rejected because its request has another order; nor of one whose hold the hot
// store lost: there the buyer may ask again, and has to get an order.
func request(o domain.Order) any {
	if o.Request == "" || o.Reason == domain.ReasonDuplicateRequest || o.Reason == domain.ReasonStaleEpoch {
		return nil
	}
	return string(o.Request)
}

func toOrder(row *ent.Order) domain.Order {
	o := domain.Order{
		ID:        domain.OrderID(row.ID),
		Sale:      domain.SaleID{Activity: domain.ActivityID(row.ActivityID), SKU: domain.SKUID(row.SkuID)},
		Buyer:     domain.BuyerID(row.Buyer),
		Quantity:  row.Quantity,
		Epoch:     row.Epoch,
		Status:    domain.Status(row.Status),
		Reason:    row.Reason,
		Payment:   domain.PaymentID(row.Payment),
		Hold:      domain.OrderID(row.Hold),
		CreatedAt: moment(row.CreatedAt),
		ExpiresAt: moment(row.ExpiresAt),
		PaidAt:    moment(row.PaidAt),
		ClosedAt:  moment(row.ClosedAt),
	}
	if row.Request != nil {
		o.Request = domain.RequestID(*row.Request)
	}
	return o
}

// millis and moment are the ledger's form of a time and back; 0 is unset.
func millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

func moment(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}

// snapshot is an order in the outbox.
type snapshot struct {
	ID        domain.OrderID    `json:"id"`
	Activity  domain.ActivityID `json:"activity"`
	SKU       domain.SKUID      `json:"sku"`
	Buyer     domain.BuyerID    `json:"buyer"`
	Request   domain.RequestID  `json:"request,omitempty"`
	Quantity  int64             `json:"quantity"`
	Epoch     int64             `json:"epoch"`
	Status    domain.Status     `json:"status"`
	Reason    string            `json:"reason,omitempty"`
	Payment   domain.PaymentID  `json:"payment,omitempty"`
	Hold      domain.OrderID    `json:"hold"`
	CreatedAt int64             `json:"createdAt,omitempty"`
	ExpiresAt int64             `json:"expiresAt,omitempty"`
	PaidAt    int64             `json:"paidAt,omitempty"`
	ClosedAt  int64             `json:"closedAt,omitempty"`
}

func encodeOrder(o domain.Order) (string, error) {
	text, err := json.Marshal(snapshot{
		ID: o.ID, Activity: o.Sale.Activity, SKU: o.Sale.SKU, Buyer: o.Buyer, Request: o.Request,
		Quantity: o.Quantity, Epoch: o.Epoch, Status: o.Status, Reason: o.Reason, Payment: o.Payment, Hold: o.Hold,
		CreatedAt: millis(o.CreatedAt), ExpiresAt: millis(o.ExpiresAt), PaidAt: millis(o.PaidAt), ClosedAt: millis(o.ClosedAt),
	})
	return string(text), err
}

func decodeOrder(text string) (domain.Order, error) {
	var n snapshot
	if err := json.Unmarshal([]byte(text), &n); err != nil {
		return domain.Order{}, fmt.Errorf("outbox row: %w", err)
	}
	return domain.Order{
		ID: n.ID, Sale: domain.SaleID{Activity: n.Activity, SKU: n.SKU}, Buyer: n.Buyer, Request: n.Request,
		Quantity: n.Quantity, Epoch: n.Epoch, Status: n.Status, Reason: n.Reason, Payment: n.Payment, Hold: n.Hold,
		CreatedAt: moment(n.CreatedAt), ExpiresAt: moment(n.ExpiresAt), PaidAt: moment(n.PaidAt), ClosedAt: moment(n.ClosedAt),
	}, nil
}
