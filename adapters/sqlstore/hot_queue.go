package sqlstore

import (
	"context"
	stdsql "database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"time"

	"seckill/domain"
	"seckill/ent"
)

const (
	receiveWait = time.Second
	// pollEvery is how often a waiting Receive looks for what another process
	// has queued. What this process queues wakes it at once.
	pollEvery = 50 * time.Millisecond
)

// Queue is the queue of order intents in the database. An entry is written in
// the transaction that makes the holds, after the sale's row was locked, so the
// numbers of a sale's entries rise in the order of its grabs.
type Queue struct {
	store   *Store
	config  StockConfig
	arrived []chan struct{} // of each partition: a token while there may be new entries
	turns   []chan struct{} // of each partition: full while a Receive looks and waits
}

var _ domain.OrderQueue = (*Queue)(nil)

func newQueue(store *Store, config StockConfig) *Queue {
	q := &Queue{store: store, config: config, arrived: make([]chan struct{}, config.Partitions), turns: make([]chan struct{}, config.Partitions)}
	for i := range q.arrived {
		q.arrived[i], q.turns[i] = make(chan struct{}, 1), make(chan struct{}, 1)
	}
	return q
}

// Partitions implements domain.OrderQueue.
func (q *Queue) Partitions() int { return q.config.Partitions }

func (q *Queue) home(sale string) int {
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(sale)) // never fails
	return int(hash.Sum32() % uint32(q.config.Partitions))
}

// wake lets the receiver of this process look at once.
func (q *Queue) wake(sale domain.SaleID) {
	select {
	case q.arrived[q.home(sale.String())] <- struct{}{}:
	default:
	}
}

// intent is an order intent as an entry has it. What all of an entry share
// stands in the row.
type intent struct {
	Order    domain.OrderID   `json:"order"`
	Buyer    domain.BuyerID   `json:"buyer"`
	Request  domain.RequestID `json:"request,omitempty"`
	Quantity int64            `json:"quantity"`
}

// push writes an entry of holds that were accepted together.
func (q *Queue) push(ctx context.Context, tx *ent.Tx, key saleKey, seen *book, holds []domain.Hold) error {
	intents := make([]intent, len(holds))
	for i, hold := range holds {
		intents[i] = intent{Order: hold.Order, Buyer: hold.Buyer, Request: hold.Request, Quantity: hold.Quantity}
	}
	payload, err := json.Marshal(intents)
	if err != nil {
		return fmt.Errorf("write queue entry: %w", err)
	}
	_, units := unitsOf(holds)
	_, err = q.store.change(ctx, tx.Client(), `INSERT INTO hot_intents
		(part, sale, epoch, orders, units, payload, attempts, due_at, created_at) VALUES (?, ?, ?, ?, ?, ?, 0, 0, ?)`,
		int64(q.home(string(key))), string(key), seen.epoch, int64(len(holds)), units, payload, millis(seen.now))
	return err
}

// Receive implements domain.OrderQueue. One caller per partition asks the
// database; others of this process wait until it is their turn.
func (q *Queue) Receive(ctx context.Context, partition, limit int) ([]domain.Delivery, error) {
	if err := q.check(partition); err != nil || limit < 1 {
		return nil, err
	}
	timeout := time.NewTimer(receiveWait)
	defer timeout.Stop()
	select {
	case q.turns[partition] <- struct{}{}:
		defer func() { <-q.turns[partition] }()
	case <-timeout.C:
		return nil, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	poll := time.NewTicker(pollEvery)
	defer poll.Stop()
	for {
		got, err := q.deliver(ctx, partition, limit, "due_at = 0")
		if err != nil {
			return nil, err
		}
		if len(got) > 0 {
			return got, nil
		}
		select {
		case <-q.arrived[partition]:
		case <-poll.C:
		case <-timeout.C:
			return nil, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// Reclaim implements domain.OrderQueue. An entry of a slow but living consumer
// may be taken from it too: placing an order twice has no effect.
func (q *Queue) Reclaim(ctx context.Context, partition, limit int) ([]domain.Delivery, error) {
	if err := q.check(partition); err != nil || limit < 1 {
		return nil, err
	}
	return q.deliver(ctx, partition, limit, "due_at > 0 AND due_at <= "+nowSQL[q.store.dialect])
}

// deliver takes entries for which the condition holds and nobody else has locked,
// until they have so many orders. It looks first without a lock, because mostly
// there are none.
func (q *Queue) deliver(ctx context.Context, partition, limit int, condition string) ([]domain.Delivery, error) {
	where := " WHERE part = ? AND " + condition + " ORDER BY due_at, id LIMIT ?"
	var first int64
	err := q.store.one(ctx, q.store.read, []any{&first}, "SELECT id FROM hot_intents"+where, int64(partition), int64(1))
	if errors.Is(err, stdsql.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, fault(err)
	}
	var got []domain.Delivery
	err = q.store.inTx(ctx, func(ctx context.Context, tx *ent.Tx) error {
		got, err = q.pick(ctx, tx, partition, where, limit)
		if err != nil {
			return err
		}
		return q.postpone(ctx, tx, got)
	})
	if err != nil {
		return nil, err
	}
	return got, nil
}

func (q *Queue) pick(ctx context.Context, tx *ent.Tx, partition int, where string, limit int) ([]domain.Delivery, error) {
	var (
		got                          []domain.Delivery
		id, epoch, attempts, created int64
		sale                         string
		payload                      []byte
	)
	orders := 0
	err := q.store.rows(ctx, tx.Client(), []any{&id, &sale, &epoch, &attempts, &created, &payload}, func() error {
		if orders >= limit {
			return nil // left to the next call
		}
		d := decode(domain.Delivery{
			ID: strconv.FormatInt(id, 10), Partition: partition, Attempts: int(attempts) + 1,
		}, sale, epoch, moment(created), payload)
		got = append(got, d)
		orders += max(len(d.Intents), 1)
		return nil
	}, "SELECT id, sale, epoch, attempts, created_at, payload FROM hot_intents"+where+freeSuffix[q.store.dialect],
		int64(partition), int64(min(limit, maxRows)))
	return got, err
}

// decode fills in the intents of an entry, or what is wrong with it.
func decode(d domain.Delivery, sale string, epoch int64, at time.Time, payload []byte) domain.Delivery {
	var intents []intent
	id, err := domain.ParseSaleID(sale)
	if err == nil {
		err = json.Unmarshal(payload, &intents)
	}
	if err != nil {
		d.Raw, d.Problem = string(payload), err.Error()
		return d
	}
	d.Sale = id
	d.Intents = make([]domain.Intent, len(intents))
	for i, in := range intents {
		d.Intents[i] = domain.Intent{
			Order: in.Order, Sale: id, Buyer: in.Buyer, Request: in.Request, Quantity: in.Quantity, Epoch: epoch, At: at,
		}
	}
	return d
}

// postpone notes the delivery, and when each entry may be reclaimed.
func (q *Queue) postpone(ctx context.Context, tx *ent.Tx, deliveries []domain.Delivery) error {
	same := map[int][]domain.Delivery{}
	for _, d := range deliveries {
		same[d.Attempts] = append(same[d.Attempts], d)
	}
	for attempts, alike := range same {
		ids, err := entryIDs(alike)
		if err != nil {
			return err
		}
		condition, args := q.store.inNumbers("id", ids)
		_, err = q.store.change(ctx, tx.Client(),
			"UPDATE hot_intents SET attempts = ?, due_at = "+nowSQL[q.store.dialect]+" + ? WHERE "+condition,
			append([]any{int64(attempts), q.config.backoff(attempts).Milliseconds()}, args...)...)
		if err != nil {
			return err
		}
	}
	return nil
}

// backoff is how long an entry stays with its consumer after a delivery.
func (c StockConfig) backoff(attempts int) time.Duration {
	wait := c.ReclaimAfter
	for range attempts - 1 {
		if wait >= c.ReclaimMax/2 {
			return c.ReclaimMax
		}
		wait *= 2
	}
	return wait
}

// Ack implements domain.OrderQueue. What a sale has queued is the sum of its
// entries, so removing them is all there is to do. At most 500 go at a time.
func (q *Queue) Ack(ctx context.Context, deliveries ...domain.Delivery) error {
	for _, d := range deliveries {
		if err := q.check(d.Partition); err != nil {
			return err
		}
	}
	ids, err := entryIDs(deliveries)
	if err != nil {
		return err
	}
	slices.Sort(ids)
	for chunk := range slices.Chunk(ids, maxRows) {
		condition, args := q.store.inNumbers("id", chunk)
		err := repeat(ctx, func(int) error {
			_, err := q.store.change(ctx, q.store.write, "DELETE FROM hot_intents WHERE "+condition, args...)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func entryIDs(deliveries []domain.Delivery) ([]int64, error) {
	ids := make([]int64, len(deliveries))
	for i, d := range deliveries {
		id, err := strconv.ParseInt(d.ID, 10, 64)
		if err != nil {
			return nil, domain.Invalid("delivery", "has no id of this queue")
		}
		ids[i] = id
	}
	return ids, nil
}

// Depth implements domain.OrderQueue.
func (q *Queue) Depth(ctx context.Context) (domain.Depth, error) {
	var orders, oldest, now int64
	err := q.store.one(ctx, q.store.read, []any{&orders, &oldest, &now},
		"SELECT COALESCE(SUM(orders), 0), COALESCE(MIN(created_at), 0), "+nowSQL[q.store.dialect]+" FROM hot_intents")
	if err != nil {
		return domain.Depth{}, fault(err)
	}
	depth := domain.Depth{Orders: orders}
	if orders > 0 {
		depth.Oldest = max(0, time.Duration(now-oldest)*time.Millisecond)
	}
	return depth, nil
}

func (q *Queue) check(partition int) error {
	if partition < 0 || partition >= q.config.Partitions {
		return domain.Invalid("partition", "must be from 0 to %d", q.config.Partitions-1)
	}
	return nil
}
