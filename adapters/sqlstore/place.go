package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"entgo.io/ent/dialect/sql"

	"seckill/domain"
	"seckill/ent"
	"seckill/ent/order"
	"seckill/ent/stock"
)

// A refusal says which gate stopped a transaction of Place. It is known from
// the statement that failed, so no error text is read.
type refusal struct {
	gate gate
	err  error // of the database; nil where a conditional update found no row
}

type gate int

const (
	keyGate   gate = iota // an order id or a request is there already
	quotaGate             // a buyer's limit
	stockGate             // the units or the epoch of a sale, or a dead letter
	valueGate             // a value that the database does not store
)

func (r *refusal) Error() string { return fmt.Sprintf("gate %d refused: %v", r.gate, r.err) }
func (r *refusal) Unwrap() error { return r.err }

// Place implements domain.Orders. A batch is one transaction. When one order
// stops it, the batch is halved until that order stands alone; the others are
// still placed together. The halves keep the order, so that the first of two
// rivals wins.
func (s *Store) Place(ctx context.Context, orders []domain.Order) ([]domain.Placed, error) {
	done := make(map[domain.OrderID]domain.Placed, len(orders))
	var todo []domain.Order
	for _, o := range orders {
		if _, repeated := done[o.ID]; repeated {
			continue
		}
		done[o.ID] = domain.Placed{Order: o}
		if err := checkOrder(o); err != nil {
			done[o.ID] = domain.Placed{Order: o, Err: err}
			continue
		}
		if o.Hold == "" {
			o.Hold = o.ID
		}
		todo = append(todo, o)
	}
	for chunk := range slices.Chunk(todo, maxRows) {
		if err := s.placeBatch(ctx, chunk, done); err != nil {
			return nil, fault(err)
		}
	}
	placed := make([]domain.Placed, len(orders))
	seen := make(map[domain.OrderID]bool, len(orders))
	for i, o := range orders {
		placed[i] = done[o.ID]
		if seen[o.ID] {
			placed[i].Fresh = false
		}
		seen[o.ID] = true
	}
	return placed, nil
}

// Lengths of the columns, in bytes.
const (
	maxOrderID = 96
	maxHoldID  = 104
)

// checkOrder refuses what the columns cannot hold, alike in all databases:
// SQLite would store it.
func checkOrder(o domain.Order) error {
	if o.Quantity < 1 || o.Quantity > domain.MaxInteger {
		return domain.Invalid("quantity", "must be an integer from 1 to %d", int64(domain.MaxInteger))
	}
	if !plain(string(o.ID), 1, maxOrderID) {
		return domain.Invalid("orderId", "must have 1 to %d printable ASCII characters", maxOrderID)
	}
	if !plain(string(o.Hold), 0, maxHoldID) {
		return domain.Invalid("hold", "must have at most %d printable ASCII characters", maxHoldID)
	}
	if !plain(string(o.Buyer), 1, domain.MaxNameBytes) {
		return domain.Invalid("userId", "must have 1 to %d printable ASCII characters", domain.MaxNameBytes)
	}
	if !plain(string(o.Request), 0, domain.MaxNameBytes) {
		return domain.Invalid("requestId", "must have at most %d printable ASCII characters", domain.MaxNameBytes)
	}
	return nil
}

func plain(text string, shortest, longest int) bool {
	if len(text) < shortest || len(text) > longest {
		return false
	}
	for i := range len(text) {
		if text[i] <= ' ' || text[i] > '~' {
			return false
		}
	}
	return true
}

// placeBatch decides orders with different ids and notes the answers in done.
// Most batches are new, so they are written without a look at first; the key of
// an order that is there already tells.
func (s *Store) placeBatch(ctx context.Context, orders []domain.Order, done map[domain.OrderID]domain.Placed) error {
	todo, looked := orders, false
	for try := 1; ; try++ {
		if looked {
			var err error
			if todo, err = s.unplaced(ctx, orders, done); err != nil || len(todo) == 0 {
				return err
			}
		}
		var placed []domain.Order
		err := s.once(ctx, func(ctx context.Context, tx *ent.Tx) (err error) {
			placed, err = s.placeIn(ctx, tx, todo)
			return err
		})
		if err == nil {
			for _, o := range placed {
				done[o.ID] = domain.Placed{Order: o, Fresh: true}
			}
			return nil
		}
		refused := (*refusal)(nil)
		switch {
		case errors.As(err, &refused) && refused.gate == keyGate && !looked:
			looked = true
			continue
		case errors.As(err, &refused) && len(todo) > 1:
			half := len(todo) / 2
			if err := s.placeBatch(ctx, todo[:half], done); err != nil {
				return err
			}
			return s.placeBatch(ctx, todo[half:], done)
		case errors.As(err, &refused):
			decided, err := s.placeAlone(ctx, todo[0], refused)
			if err == nil {
				done[decided.Order.ID] = decided
				return nil
			}
			if !again(err) {
				return err
			}
		case !again(err):
			return err
		}
		if try == maxTries {
			return err
		}
		if err := pause(ctx, try); err != nil {
			return err
		}
		looked = true // it may have been committed after all
	}
}

// unplaced takes out the orders that have a row, and answers them. So a batch
// that is delivered again costs one read.
func (s *Store) unplaced(ctx context.Context, orders []domain.Order, done map[domain.OrderID]domain.Placed) ([]domain.Order, error) {
	ids := make([]domain.OrderID, len(orders))
	for i, o := range orders {
		ids[i] = o.ID
	}
	found, err := s.orders(ctx, ids)
	if err != nil {
		return nil, err
	}
	have := byID(found)
	var todo []domain.Order
	for _, o := range orders {
		if there, ok := have[o.ID]; ok {
			done[o.ID] = domain.Placed{Order: there}
		} else {
			todo = append(todo, o)
		}
	}
	return todo, nil
}

// placeIn writes all the orders or returns a refusal. Orders of no sale and of
// an old epoch are written as rejected: that is certain without a lock, since
// an epoch only grows.
func (s *Store) placeIn(ctx context.Context, tx *ent.Tx, orders []domain.Order) ([]domain.Order, error) {
	sales, err := s.sales(ctx, tx, orders)
	if err != nil {
		return nil, err
	}
	placed := make([]domain.Order, 0, len(orders))
	var pending, rejected []domain.Order
	for _, o := range orders {
		sale, known := sales.rows[o.Sale]
		o.CreatedAt = sales.now
		switch {
		case !known:
			o = reject(o, domain.ReasonUnknownSale, sales.now)
		case sale.epoch != o.Epoch:
			o = reject(o, domain.ReasonStaleEpoch, sales.now)
		default:
			o.Status, o.ExpiresAt = domain.Pending, sales.now.Add(sale.window)
		}
		if o.Status == domain.Pending {
			pending = append(pending, o)
		} else {
			rejected = append(rejected, o)
		}
		placed = append(placed, o)
	}
	if err := s.insertOrders(ctx, tx, placed); err != nil {
		return nil, refuse(err, keyGate)
	}
	if err := s.takeQuotas(ctx, tx, pending, sales); err != nil {
		return nil, refuse(err, quotaGate)
	}
	if err := s.takeStock(ctx, tx, pending, sales); err != nil {
		return nil, err
	}
	is, err := anyBuried(ctx, tx, rejected)
	if err != nil {
		return nil, err
	}
	if is {
		return nil, &refusal{gate: stockGate}
	}
	if _, err := s.addEffects(ctx, tx, rejected); err != nil {
		return nil, err
	}
	return placed, nil
}

// refuse makes a refusal of an error that one of the orders caused.
func refuse(err error, at gate) error {
	switch kind := classify(err); {
	case kind == data, kind == foreign, kind == check && at != quotaGate:
		return &refusal{gate: valueGate, err: err}
	case kind == check, kind == unique && at == keyGate:
		return &refusal{gate: at, err: err}
	case kind == unique:
		return errors.Join(errAgain, err)
	}
	return err
}

func reject(o domain.Order, reason string, now time.Time) domain.Order {
	o.Status, o.Reason = domain.Rejected, reason
	o.CreatedAt, o.ClosedAt = now, now
	o.ExpiresAt = time.Time{}
	return o
}

// saleRow is what Place needs to know of a sale before it writes.
type saleRow struct {
	epoch  int64
	limit  int64
	window time.Duration
}

type saleRows struct {
	now  time.Time
	rows map[domain.SaleID]saleRow
}

// sales reads the sales of the orders, and the clock, without a lock.
func (s *Store) sales(ctx context.Context, tx *ent.Tx, orders []domain.Order) (saleRows, error) {
	found := saleRows{rows: map[domain.SaleID]saleRow{}}
	ids := map[string]domain.SaleID{}
	for _, o := range orders {
		ids[o.Sale.String()] = o.Sale
	}
	keys := make([]any, 0, len(ids))
	for id := range ids {
		keys = append(keys, id)
	}
	stocks, activities := sql.Table("stocks").As("s"), sql.Table("activities").As("a")
	query, args := sql.Dialect(s.dialect).
		Select(stocks.C("id"), stocks.C("epoch"), stocks.C("per_user_limit"), activities.C("payment_window_ms")).
		AppendSelectExpr(s.now()).
		From(stocks).Join(activities).On(stocks.C("activity_id"), activities.C("id")).
		Where(sql.In(stocks.C("id"), keys...)).Query()
	rows, err := tx.Client().QueryContext(ctx, query, args...)
	if err != nil {
		return found, err
	}
	defer rows.Close()
	for rows.Next() {
		var (
			id          string
			sale        saleRow
			window, now int64
		)
		if err := rows.Scan(&id, &sale.epoch, &sale.limit, &window, &now); err != nil {
			return found, err
		}
		sale.window = time.Duration(window) * time.Millisecond
		found.now, found.rows[ids[id]] = moment(now), sale
	}
	if err := rows.Err(); err != nil {
		return found, err
	}
	if len(found.rows) == 0 {
		found.now, err = s.clock(ctx, tx)
	}
	return found, err
}

// clock reads the database's clock.
func (s *Store) clock(ctx context.Context, tx *ent.Tx) (time.Time, error) {
	rows, err := tx.Client().QueryContext(ctx, "SELECT "+nowSQL[s.dialect])
	if err != nil {
		return time.Time{}, err
	}
	defer rows.Close()
	var ms int64
	for rows.Next() {
		if err := rows.Scan(&ms); err != nil {
			return time.Time{}, err
		}
	}
	return moment(ms), rows.Err()
}

// takeStock takes the units of the orders from their stock rows: one update
// for each sale, if the units and the epoch allow it. The same update looks for
// dead letters: the orders are written by now, so no letter can come later.
func (s *Store) takeStock(ctx context.Context, tx *ent.Tx, orders []domain.Order, sales saleRows) error {
	units, of := map[domain.SaleID]int64{}, map[domain.SaleID][]domain.Order{}
	for _, o := range orders {
		units[o.Sale] += o.Quantity
		of[o.Sale] = append(of[o.Sale], o)
	}
	for _, sale := range sortedSales(units) {
		took, err := tx.Stock.Update().
			Where(stock.ID(sale.String()), stock.Epoch(sales.rows[sale].epoch), hasFree(units[sale]), s.noneBuried(of[sale])).
			AddReserved(units[sale]).Save(ctx)
		if err != nil {
			return err
		}
		if took == 0 {
			return &refusal{gate: stockGate}
		}
	}
	return nil
}

// hasFree is true of a stock row that has that many units left.
func hasFree(units int64) func(*sql.Selector) {
	return func(q *sql.Selector) {
		q.Where(sql.P(func(b *sql.Builder) {
			b.Ident(q.C(stock.FieldReserved)).WriteString(" + ").Ident(q.C(stock.FieldSold)).
				WriteString(" <= ").Ident(q.C(stock.FieldTotal)).WriteString(" - ").Arg(units)
		}))
	}
}

// placeAlone decides an order that was refused on its own. errAgain means that
// what refused it is gone.
func (s *Store) placeAlone(ctx context.Context, o domain.Order, refused *refusal) (domain.Placed, error) {
	was, is, err := buried(ctx, s.read, o)
	if err != nil {
		return domain.Placed{}, err
	}
	if is {
		return domain.Placed{Order: was}, nil
	}
	switch refused.gate {
	case valueGate:
		return domain.Placed{Order: o, Err: refused.err}, nil
	case quotaGate:
		return s.reject(ctx, o, domain.ReasonLimitReached)
	case stockGate:
		sale, err := s.read.Stock.Get(ctx, o.Sale.String())
		switch {
		case ent.IsNotFound(err):
			return domain.Placed{}, errAgain
		case err != nil:
			return domain.Placed{}, err
		case sale.Epoch != o.Epoch:
			return domain.Placed{}, errAgain
		}
		return s.reject(ctx, o, domain.ReasonSoldOut)
	}
	// The id may have come in since it was looked for, or the request is taken.
	taken, err := s.requestTaken(ctx, s.read, o)
	if err != nil {
		return domain.Placed{}, err
	}
	if !taken {
		return domain.Placed{}, errAgain
	}
	return s.reject(ctx, o, domain.ReasonDuplicateRequest)
}

// requestTaken says whether the order's request has another order.
func (s *Store) requestTaken(ctx context.Context, client *ent.Client, o domain.Order) (bool, error) {
	if o.Request == "" {
		return false, nil
	}
	return client.Order.Query().Where(
		order.ActivityID(int64(o.Sale.Activity)), order.SkuID(int64(o.Sale.SKU)),
		order.Buyer(string(o.Buyer)), order.Request(string(o.Request)), order.IDNEQ(string(o.ID)),
	).Exist(ctx)
}

// reject records an order as rejected, with the effect that releases its hold.
func (s *Store) reject(ctx context.Context, o domain.Order, reason string) (domain.Placed, error) {
	err := s.once(ctx, func(ctx context.Context, tx *ent.Tx) error {
		now, err := s.clock(ctx, tx)
		if err != nil {
			return err
		}
		o = reject(o, reason, now)
		if err := s.insertOrders(ctx, tx, []domain.Order{o}); err != nil {
			if classify(err) == unique {
				return errors.Join(errAgain, err)
			}
			return err
		}
		_, err = s.addEffects(ctx, tx, []domain.Order{o})
		return err
	})
	return domain.Placed{Order: o, Fresh: true}, err
}
