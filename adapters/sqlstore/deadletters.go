package sqlstore

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"entgo.io/ent/dialect/sql"

	"seckill/domain"
	"seckill/ent"
	"seckill/ent/deadletter"
	"seckill/ent/order"
)

// Bounds of what a letter keeps; the rest is cut off.
const (
	maxPayload = 1 << 20 // bytes
	maxReason  = 1000    // characters
)

// Bury implements domain.DeadLetters. An order that is in the ledger has been
// decided, so there is nothing to bury and no hold to release. The other way
// round, Place leaves an order alone that has a letter.
func (s *Store) Bury(ctx context.Context, letter domain.DeadLetter) error {
	letter.Intent = storable(letter.Intent)
	subject := subjectOf(letter)
	intent, err := encodeIntent(letter.Intent)
	if err != nil {
		return fault(err)
	}
	return s.inTx(ctx, func(ctx context.Context, tx *ent.Tx) error {
		placed, err := tx.Order.Query().Where(order.ID(subject)).Exist(ctx)
		if err != nil || placed {
			return err
		}
		buried, err := tx.DeadLetter.Query().Where(deadletter.Subject(subject)).Exist(ctx)
		if err != nil || buried {
			return err
		}
		if letter.Intent.Order != "" {
			if err := s.claim(ctx, tx, letter.Intent.Order); err != nil {
				return err
			}
		}
		now, err := s.clock(ctx, tx)
		if err != nil {
			return err
		}
		err = tx.DeadLetter.Create().
			SetSubject(subject).
			SetIntent(intent).
			SetPayload([]byte(letter.Payload[:min(len(letter.Payload), maxPayload)])).
			SetReason(cut(letter.Reason, maxReason)).
			SetCreatedAt(millis(now)).Exec(ctx)
		if classify(err) == unique {
			return errors.Join(errAgain, err)
		}
		if err != nil || letter.Intent.Order == "" {
			return err
		}
		letter.CreatedAt = now
		_, err = s.addEffect(ctx, tx, rejectedBy(letter))
		return err
	})
}

// claim makes whoever wants to place the order wait until this transaction
// ends. No statement locks a row that is not there, so it is made and removed.
func (s *Store) claim(ctx context.Context, tx *ent.Tx, id domain.OrderID) error {
	err := s.insertOrders(ctx, tx, []domain.Order{{ID: id, Quantity: 1}})
	if classify(err) == unique {
		return errors.Join(errAgain, err)
	}
	if err != nil {
		return err
	}
	return tx.Order.DeleteOneID(string(id)).Exec(ctx)
}

// buried finds the letter of an order whose hold was released with it. An
// order with a second hold may be placed although it has a letter.
func buried(ctx context.Context, client *ent.Client, o domain.Order) (domain.Order, bool, error) {
	if o.Hold != o.ID {
		return o, false, nil
	}
	row, err := client.DeadLetter.Query().Where(deadletter.Subject(string(o.ID))).Only(ctx)
	if ent.IsNotFound(err) {
		return o, false, nil
	}
	if err != nil {
		return o, false, err
	}
	return rejectedBy(toLetter(row)), true, nil
}

// anyBuried says whether one of the orders is buried, or may be, see lettersOf.
func anyBuried(ctx context.Context, tx *ent.Tx, orders []domain.Order) (bool, error) {
	first, last, some := lettersOf(orders)
	if !some {
		return false, nil
	}
	return tx.DeadLetter.Query().Where(deadletter.SubjectGTE(first), deadletter.SubjectLTE(last)).Exist(ctx)
}

// noneBuried is anyBuried's opposite, as a condition of another statement.
func (s *Store) noneBuried(orders []domain.Order) func(*sql.Selector) {
	return func(q *sql.Selector) {
		first, last, some := lettersOf(orders)
		if !some {
			return
		}
		b := sql.Dialect(s.dialect)
		letters := b.Table(deadletter.Table)
		subject := letters.C(deadletter.FieldSubject)
		q.Where(sql.NotExists(b.Select(letters.C(deadletter.FieldID)).From(letters).
			Where(sql.And(sql.GTE(subject, first), sql.LTE(subject, last)))))
	}
}

// lettersOf is the range of the ids of the orders that are under their first
// hold: much cheaper to look up than a list of them. It is exact for one order,
// and Place halves a batch that has a letter in its range down to one if need be.
func lettersOf(orders []domain.Order) (first, last string, some bool) {
	for _, o := range orders {
		if id := string(o.ID); o.Hold == o.ID {
			if !some {
				first, last, some = id, id, true
			}
			first, last = min(first, id), max(last, id)
		}
	}
	return first, last, some
}

// Letters implements domain.DeadLetters.
func (s *Store) Letters(ctx context.Context, after int64, max int) ([]domain.DeadLetter, error) {
	rows, err := s.read.DeadLetter.Query().Where(deadletter.IDGT(after)).
		Order(ent.Asc(deadletter.FieldID)).Limit(max).All(ctx)
	if err != nil {
		return nil, fault(err)
	}
	letters := make([]domain.DeadLetter, len(rows))
	for i, row := range rows {
		letters[i] = toLetter(row)
	}
	return letters, nil
}

// Letter implements domain.DeadLetters.
func (s *Store) Letter(ctx context.Context, id int64) (domain.DeadLetter, error) {
	row, err := s.read.DeadLetter.Get(ctx, id)
	if ent.IsNotFound(err) {
		return domain.DeadLetter{}, fmt.Errorf("dead letter: %w", domain.ErrNotFound)
	}
	if err != nil {
		return domain.DeadLetter{}, fault(err)
	}
	return toLetter(row), nil
}

// Discard implements domain.DeadLetters. The hold was released when the letter
// was buried, so no effect is written. An intent that no column can hold, which
// is what brought some letters here, leaves no order.
func (s *Store) Discard(ctx context.Context, id int64) error {
	return s.inTx(ctx, func(ctx context.Context, tx *ent.Tx) error {
		row, err := tx.DeadLetter.Query().Where(deadletter.ID(id), s.forUpdate).Only(ctx)
		if ent.IsNotFound(err) {
			return fmt.Errorf("dead letter: %w", domain.ErrNotFound)
		}
		if err != nil {
			return err
		}
		if o := rejectedBy(toLetter(row)); checkOrder(o) == nil {
			if err := s.recordRejected(ctx, tx, o); err != nil {
				return err
			}
		}
		return tx.DeadLetter.DeleteOneID(id).Exec(ctx)
	})
}

// recordRejected writes the order of a discarded letter, unless it was placed.
func (s *Store) recordRejected(ctx context.Context, tx *ent.Tx, o domain.Order) error {
	placed, err := tx.Order.Query().Where(order.ID(string(o.ID))).Exist(ctx)
	if err != nil || placed {
		return err
	}
	taken, err := s.requestTaken(ctx, tx.Client(), o)
	if err != nil {
		return err
	}
	if taken {
		o.Request = ""
	}
	err = s.insertOrders(ctx, tx, []domain.Order{o})
	if classify(err) == unique {
		return errors.Join(errAgain, err)
	}
	return err
}

// Revive implements domain.DeadLetters.
func (s *Store) Revive(ctx context.Context, id int64) error {
	return s.inTx(ctx, func(ctx context.Context, tx *ent.Tx) error {
		_, err := tx.DeadLetter.Delete().Where(deadletter.ID(id)).Exec(ctx)
		return err
	})
}

// storable leaves out of an intent what no column can hold; the payload has it
// all. Without a usable order id there is nothing to tell about.
func storable(n domain.Intent) domain.Intent {
	if !plain(string(n.Order), 1, maxOrderID) {
		return domain.Intent{}
	}
	if !plain(string(n.Buyer), 1, domain.MaxNameBytes) {
		n.Buyer = ""
	}
	if !plain(string(n.Request), 1, domain.MaxNameBytes) {
		n.Request = ""
	}
	n.Quantity = max(n.Quantity, 0)
	return n
}

// subjectOf is what a letter is about: its order, or its payload's digest. No
// order id has a colon.
func subjectOf(letter domain.DeadLetter) string {
	if letter.Intent.Order != "" {
		return string(letter.Intent.Order)
	}
	digest := sha256.Sum256([]byte(letter.Payload))
	return "sha256:" + hex.EncodeToString(digest[:])
}

func orderOf(intent domain.Intent) domain.Order {
	return domain.Order{
		ID: intent.Order, Sale: intent.Sale, Buyer: intent.Buyer, Request: intent.Request,
		Quantity: intent.Quantity, Epoch: intent.Epoch, Hold: intent.Order,
	}
}

// rejectedBy is the order that a letter stands for.
func rejectedBy(letter domain.DeadLetter) domain.Order {
	return reject(orderOf(letter.Intent), domain.ReasonDeadLetter, letter.CreatedAt)
}

// intentRecord is an intent in a letter.
type intentRecord struct {
	Order    domain.OrderID    `json:"order"`
	Activity domain.ActivityID `json:"activity"`
	SKU      domain.SKUID      `json:"sku"`
	Buyer    domain.BuyerID    `json:"buyer"`
	Request  domain.RequestID  `json:"request,omitempty"`
	Quantity int64             `json:"quantity"`
	Epoch    int64             `json:"epoch"`
	At       int64             `json:"at,omitempty"`
}

// encodeIntent gives an empty text for no intent.
func encodeIntent(n domain.Intent) (string, error) {
	if n.Order == "" {
		return "", nil
	}
	text, err := json.Marshal(intentRecord{n.Order, n.Sale.Activity, n.Sale.SKU, n.Buyer, n.Request, n.Quantity, n.Epoch, millis(n.At)})
	return string(text), err
}

func toLetter(row *ent.DeadLetter) domain.DeadLetter {
	letter := domain.DeadLetter{
		ID: row.ID, Payload: string(row.Payload), Reason: row.Reason, CreatedAt: moment(row.CreatedAt),
	}
	var n intentRecord
	if json.Unmarshal([]byte(row.Intent), &n) == nil {
		letter.Intent = domain.Intent{
			Order: n.Order, Sale: domain.SaleID{Activity: n.Activity, SKU: n.SKU}, Buyer: n.Buyer, Request: n.Request,
			Quantity: n.Quantity, Epoch: n.Epoch, At: moment(n.At),
		}
	}
	return letter
}

// cut makes a text that every database stores.
func cut(text string, longest int) string {
	runes := []rune(strings.ReplaceAll(strings.ToValidUTF8(text, "?"), "\x00", "?"))
	return string(runes[:min(len(runes), longest)])
}
