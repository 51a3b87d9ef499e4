package sqlstore

import (
	"context"
	"strings"
	"time"

	"seckill/domain"
)

// book is what a decision depends on: a copy of some records of a sale, all of
// one moment. Its methods decide and write nothing but the copy.
type book struct {
	key       saleKey
	ready     bool
	now       time.Time // by the database's clock
	epoch     int64
	revision  int64
	gate      domain.Gate
	available int64
	holds     map[domain.OrderID]record
	requests  map[string]record        // by the request's id
	units     map[domain.BuyerID]int64 // held and sold
}

// record is what a decision needs to know of a hold.
type record struct {
	order    domain.OrderID
	state    domain.HoldState
	quantity int64
}

// asked names the records that a book is to have.
type asked struct{ holds, requests, buyers []string }

func (a *asked) hold(key saleKey, id domain.OrderID) { a.holds = append(a.holds, key.of(string(id))) }

func (a *asked) claim(key saleKey, claim domain.Claim) {
	a.hold(key, claim.Order)
	a.buyers = append(a.buyers, key.of(string(claim.Buyer)))
	if claim.Request != "" {
		a.requests = append(a.requests, key.request(claim.Buyer, claim.Request))
	}
}

// Kinds of rows that the statement of open returns.
const (
	saleRowKind = iota + 1
	holdRowKind
	requestRowKind
	buyerRowKind
)

// open reads a book. It is one statement, because only a statement sees one
// state of all tables in every database: with several, an order that is accepted
// in between would be found missing first and its units found gone then.
func (s *Store) open(ctx context.Context, db querier, key saleKey, what asked) (*book, error) {
	var query strings.Builder
	query.WriteString("SELECT 1, id, state, available, epoch, revision, per_user_limit, starts_at, ends_at, " +
		nowSQL[s.dialect] + " FROM hot_sales WHERE id = ? AND stage = ?")
	args := []any{string(key), ready}
	add := func(text, column string, ids []string) {
		if len(ids) == 0 {
			return
		}
		condition, values := s.in(column, ids)
		query.WriteString(" UNION ALL " + text + " WHERE " + condition)
		args = append(args, values...)
	}
	add("SELECT 2, id, state, quantity, 0, 0, 0, 0, 0, 0 FROM hot_holds", "id", what.holds)
	add("SELECT 3, r.id, h.id, h.quantity, 0, 0, 0, 0, 0, 0 FROM hot_requests r JOIN hot_holds h ON h.id = r.hold", "r.id", what.requests)
	add("SELECT 4, id, '', units, 0, 0, 0, 0, 0, 0 FROM hot_buyers", "id", what.buyers)

	b := &book{
		key:      key,
		holds:    map[domain.OrderID]record{},
		requests: map[string]record{},
		units:    map[domain.BuyerID]int64{},
	}
	var (
		kind                                                  int
		id, text                                              string
		figure, epoch, revision, limit, starts, ends, instant int64
	)
	err := s.rows(ctx, db, []any{&kind, &id, &text, &figure, &epoch, &revision, &limit, &starts, &ends, &instant}, func() error {
		switch kind {
		case saleRowKind:
			b.ready, b.now, b.available, b.epoch, b.revision = true, moment(instant), figure, epoch, revision
			b.gate = domain.Gate{
				State: domain.State(text), StartsAt: time.UnixMilli(starts), EndsAt: time.UnixMilli(ends), PerUserLimit: limit,
			}
		case holdRowKind:
			order := domain.OrderID(key.name(id))
			b.holds[order] = record{order: order, state: domain.HoldState(text), quantity: figure}
		case requestRowKind:
			b.requests[id] = record{order: domain.OrderID(key.name(text)), quantity: figure}
		case buyerRowKind:
			b.units[domain.BuyerID(key.name(id))] = figure
		}
		return nil
	}, query.String(), args...)
	return b, err
}

// reserve decides claims in their order, and returns the holds of those that
// are accepted now.
func (b *book) reserve(claims []domain.Claim) ([]domain.Outcome, []domain.Hold) {
	outcomes := make([]domain.Outcome, len(claims))
	var holds []domain.Hold
	verdict := b.gate.Judge(b.now)
	for i, claim := range claims {
		if !b.ready {
			outcomes[i].Verdict = domain.NotReady
			continue
		}
		outcomes[i] = b.decide(claim, verdict)
		if fresh(outcomes[i]) {
			holds = append(holds, b.take(claim, claim.Order))
		}
	}
	return outcomes, holds
}

func fresh(outcome domain.Outcome) bool {
	return outcome.Verdict == domain.Accepted && !outcome.Replayed
}

// decide is the rule of one claim: replay, gate, limit, stock.
func (b *book) decide(claim domain.Claim, gate domain.Verdict) domain.Outcome {
	if hold, there := b.holds[claim.Order]; there {
		if hold.state == domain.Released {
			return b.answer(domain.Withdrawn)
		}
		return b.replay(claim.Order)
	}
	if claim.Request != "" {
		if first, used := b.requests[b.key.request(claim.Buyer, claim.Request)]; used {
			if first.quantity != claim.Quantity {
				return b.answer(domain.RequestReused)
			}
			return b.replay(first.order.Order())
		}
	}
	if gate != domain.Accepted {
		outcome := b.answer(gate)
		if gate == domain.NotStarted {
			outcome.StartsAt = b.gate.StartsAt
		}
		return outcome
	}
	return b.afford(claim)
}

// reacquire decides a claim for units under the order's second hold. Of the
// released ones only a tombstone stays released.
func (b *book) reacquire(claim domain.Claim) domain.Outcome {
	if !b.ready {
		return domain.Outcome{Verdict: domain.NotReady}
	}
	if late, there := b.holds[claim.Order.Late()]; there {
		switch {
		case late.state != domain.Released:
			return b.replay(claim.Order)
		case late.quantity == 0:
			return b.answer(domain.Withdrawn)
		}
	}
	if first, there := b.holds[claim.Order]; there && first.state != domain.Released {
		return b.answer(domain.LimitReached)
	}
	return b.afford(claim)
}

// afford asks for limit and stock.
func (b *book) afford(claim domain.Claim) domain.Outcome {
	// A subtraction cannot overflow here, the sum of two large figures could.
	if b.units[claim.Buyer] > b.gate.PerUserLimit-claim.Quantity {
		return b.answer(domain.LimitReached)
	}
	if b.available < claim.Quantity {
		return b.answer(domain.SoldOut)
	}
	outcome := b.answer(domain.Accepted)
	outcome.Order = claim.Order
	outcome.After -= claim.Quantity
	return outcome
}

// take writes an accepted claim into the copy, for the claims that follow.
func (b *book) take(claim domain.Claim, id domain.OrderID) domain.Hold {
	r := record{order: id, state: domain.Held, quantity: claim.Quantity}
	b.holds[id] = r
	if claim.Request != "" {
		b.requests[b.key.request(claim.Buyer, claim.Request)] = r
	}
	b.units[claim.Buyer] += claim.Quantity
	b.available -= claim.Quantity
	return domain.Hold{
		Order: id, Buyer: claim.Buyer, Request: claim.Request, Quantity: claim.Quantity,
		State: domain.Held, CreatedAt: b.now,
	}
}

func (b *book) answer(verdict domain.Verdict) domain.Outcome {
	return domain.Outcome{Verdict: verdict, Before: b.available, After: b.available}
}

func (b *book) replay(order domain.OrderID) domain.Outcome {
	outcome := b.answer(domain.Accepted)
	outcome.Order, outcome.Replayed = order, true
	return outcome
}

// restate puts the stock that was really there into the outcomes: before is
// what was available when the units were taken. It says whether all that were
// refused for want of units still are.
func restate(outcomes []domain.Outcome, claims []domain.Claim, before int64) bool {
	for i := range outcomes {
		o := &outcomes[i]
		if o.Verdict == domain.SoldOut && before >= claims[i].Quantity {
			return false
		}
		o.Before, o.After = before, before
		if fresh(*o) {
			o.After -= claims[i].Quantity
		}
		before = o.After
	}
	return true
}
