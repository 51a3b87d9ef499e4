package redisstock

import (
	"context"
	"errors"
	"fmt"

	"seckill/domain"
)

// incrTries bounds how often claims are decided anew after others were faster.
const incrTries = 32

// Incr is the hot store in Redis, strategy "incr": take the units first, look
// at what came back, and put back what should not have been taken.
//
// A grab that could win is three transactions, one round trip each, after one
// that reads:
//
//  1. take: available − n for each claim unless that is less than n; held and
//     the buyer's units + n; and a taking, which is a record of these units
//     under an id of its own. Redis answers with the figures after each.
//  2. record: the taking is replaced by the order's own record (HSETNX) and the
//     request's (HSETNX), unless somebody was faster.
//  3. queue: the stream entry and its counters.
//
// A grab that loses in 1 or 2 puts back what it took and is judged again. One
// that the first read already refuses writes nothing.
//
// What holds as with the other strategies: no unit is sold twice, available is
// never negative, a buyer never ends above the limit, order and request ids
// make one order, an accepted order is held and queued, a withdrawn one is not
// accepted. A sale that is sealed or loaded anew in the middle keeps no record
// of the grab, and the gate is judged again in step 1, at the moment of the
// taking: a grab that took its units before a change of the gate may still be
// accepted after it.
//
// What does not:
//
//   - The account may be off while grabs are under way. A grab that found too
//     little stock counts too much as held and for its buyer until it has put
//     that back; units that are being put back look sold; takings are listed as
//     holds (with ids that no order has). So a buyer may hear LimitReached or
//     SoldOut although, a moment later, they would not.
//   - A grab in the middle of a load may leave its buyer with too many units
//     counted, until a recount.
//   - A process that dies in the middle, or loses Redis, leaves units taken, an
//     entry unwritten, or figures too high: it may undersell, never oversell,
//     until the sale is reconciled. Then takings are released, as holds whose
//     order the ledger does not know (Release), figures are recounted (Correct,
//     which drops old takings when the records exceed the total) and holds
//     without an entry are queued (Requeue). Until then the order of such a
//     hold is accepted, held, and not in the queue.
//   - Who asks again under the same order id while its first grab is still
//     running may be told Accepted for an order that then is taken back, if at
//     that very moment another grab of the buyer wins the same request id, or
//     the sale is loaded anew.
type Incr struct{ unsplit }

var _ domain.Stock = (*Incr)(nil)

// NewIncr makes an Incr. It does not talk to Redis yet.
func NewIncr(config Config) (*Incr, error) {
	stock, err := New(config)
	if err != nil {
		return nil, err
	}
	return &Incr{unsplit{stock}}, nil
}

// Reserve implements domain.Admission. At most 1000 claims.
func (s *Incr) Reserve(ctx context.Context, sale domain.SaleID, claims []domain.Claim) ([]domain.Outcome, error) {
	if err := checkClaims(claims); err != nil || len(claims) == 0 {
		return nil, err
	}
	keys := s.keys(sale)
	won := map[domain.OrderID]domain.Outcome{} // by this call
	for try := range incrTries {
		found, err := s.look(ctx, keys, claims)
		if err != nil {
			return nil, err
		}
		decision, err := found.judge(claims)
		if err != nil {
			return nil, err
		}
		if !decision.doubtful(try) {
			if err := s.grab(ctx, keys, claims, found.epoch, &decision, won); err != nil {
				return nil, err
			}
			if decision.final(claims, won) {
				return decision.merge(claims, won), nil
			}
		}
		if err := pause(ctx, try); err != nil {
			return nil, err
		}
	}
	return nil, unavailable(fmt.Errorf("grabs of sale %s kept losing to others", keys.id))
}

// final says whether all that was judged acceptable has been won.
func (d *decision) final(claims []domain.Claim, won map[domain.OrderID]domain.Outcome) bool {
	for _, i := range d.accepted {
		if _, ok := won[claims[i].Order]; !ok {
			return false
		}
	}
	return true
}

// doubtful says whether a refusal may be due to units that a losing grab has
// not put back yet: its buyer has more than the limit. After a few looks it is
// believed: the limit may have been lowered, or the ledger have decided so.
func (d *decision) doubtful(try int) bool { return d.overLimit && try < 3 }

// merge is the answer: what this call has won is fresh where it was first asked
// for, though later reads find it there.
func (d *decision) merge(claims []domain.Claim, won map[domain.OrderID]domain.Outcome) []domain.Outcome {
	seen := map[domain.OrderID]bool{}
	for i, claim := range claims {
		if outcome, ok := won[claim.Order]; ok && !seen[claim.Order] {
			d.outcomes[i], seen[claim.Order] = outcome, true
		}
	}
	return d.outcomes
}

// Correct implements domain.StockAudit. Of a process that died in the middle
// there may be takings without units, so that the records exceed the total: the
// old ones are dropped then.
func (s *Incr) Correct(ctx context.Context, sale domain.SaleID, seen domain.Level, fence int64) (domain.Audit, error) {
	audit, err := s.Stock.Correct(ctx, sale, seen, fence)
	if !errors.Is(err, domain.ErrUnbalanced) {
		return audit, err
	}
	dropped, dropErr := s.dropOldTakings(ctx, s.keys(sale))
	if dropErr != nil || dropped == 0 {
		return audit, errors.Join(err, dropErr)
	}
	return s.Stock.Correct(ctx, sale, seen, fence)
}
