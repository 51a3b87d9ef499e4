package redisstock

import (
	"context"
	"errors"
	"fmt"

	"seckill/domain"
)

// letters are the verdicts as grab.lua and reacquire.lua write them.
var letters = map[byte]domain.Outcome{
	'A': {Verdict: domain.Accepted},
	'R': {Verdict: domain.Accepted, Replayed: true},
	'X': {Verdict: domain.Accepted, Replayed: true},
	'S': {Verdict: domain.SoldOut},
	'L': {Verdict: domain.LimitReached},
	'N': {Verdict: domain.NotStarted},
	'P': {Verdict: domain.SalePaused},
	'E': {Verdict: domain.SaleEnded},
	'Q': {Verdict: domain.RequestReused},
	'W': {Verdict: domain.Withdrawn},
}

// maxMoves bounds how often a call follows a sale whose segments changed.
const maxMoves = 3

// Reserve implements domain.Admission. At most 1000 claims. A single claim
// travels with others of its partition, see Config.Batch; several go as they
// are, in one call, unless the stock is split.
//
// A caller whose ctx ends leaves at once. If its claim was on the way by then,
// the outcome is unknown.
func (s *Stock) Reserve(ctx context.Context, sale domain.SaleID, claims []domain.Claim) ([]domain.Outcome, error) {
	if err := checkClaims(claims); err != nil || len(claims) == 0 {
		return nil, err
	}
	outcomes := make([]domain.Outcome, len(claims))
	var err error
	for range maxMoves {
		if err = s.reserve(ctx, s.layout(sale), claims, outcomes); !errors.Is(err, errMoved) {
			break
		}
	}
	switch {
	case errors.Is(err, errMoved):
		return nil, unavailable(err)
	case err != nil:
		return nil, err
	}
	return outcomes, nil
}

// reserve decides the claims where their buyers are at home. Those of a split
// stock go one by one: each may have to borrow before the next is decided.
func (s *Stock) reserve(ctx context.Context, l *layout, claims []domain.Claim, outcomes []domain.Outcome) error {
	if len(l.segments) == 1 && (len(claims) > 1 || s.config.Batch == 1) {
		return s.decideOne(ctx, group{layout: l, keys: &l.segments[0], claims: claims, outcomes: outcomes})
	}
	for i, claim := range claims {
		err := s.reserveOne(ctx, l, claim, &outcomes[i])
		if err == nil && len(l.segments) > 1 && outcomes[i].Verdict == domain.SoldOut {
			err = s.topUp(ctx, l, claim, &outcomes[i])
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// reserveOne decides a claim by what its home has.
func (s *Stock) reserveOne(ctx context.Context, l *layout, claim domain.Claim, outcome *domain.Outcome) (err error) {
	keys := &l.segments[l.home(claim.Buyer)]
	if s.config.Batch > 1 {
		*outcome, err = s.lanes[keys.partition].join(ctx, l, keys, claim)
		return err
	}
	outcomes := []domain.Outcome{{}}
	err = s.decideOne(ctx, group{layout: l, keys: keys, claims: []domain.Claim{claim}, outcomes: outcomes})
	*outcome = outcomes[0]
	return err
}

func (s *Stock) decideOne(ctx context.Context, g group) error {
	groups := []group{g}
	if err := s.decide(ctx, groups); err != nil {
		return err
	}
	return groups[0].err
}

// topUp borrows for a claim that its home has too few units for, and tries again.
func (s *Stock) topUp(ctx context.Context, l *layout, claim domain.Claim, outcome *domain.Outcome) error {
	for range topUpTries {
		free, err := s.borrow(ctx, l, l.home(claim.Buyer), claim.Quantity)
		if errors.Is(err, domain.ErrNotReady) {
			*outcome = domain.Outcome{Verdict: domain.NotReady}
			return nil
		}
		if err != nil {
			return err
		}
		if free < claim.Quantity {
			outcome.Before, outcome.After = free, free
			return nil
		}
		if err := s.reserveOne(ctx, l, claim, outcome); err != nil || outcome.Verdict != domain.SoldOut {
			return err
		}
	}
	return unavailable(errRestless)
}

func outcome(letter byte, claim domain.Claim, available int64) (domain.Outcome, error) {
	outcome, known := letters[letter]
	if !known {
		return outcome, unavailable(fmt.Errorf("script answered with letter %q", letter))
	}
	outcome.Before, outcome.After = available, available
	if letter == 'A' {
		outcome.After -= claim.Quantity
	}
	if letter == 'A' || letter == 'R' {
		outcome.Order = claim.Order
	}
	return outcome, nil
}

// Reacquire implements domain.Admission. While the first hold still has its
// units, a second one would count them twice: LimitReached.
func (s *Stock) Reacquire(ctx context.Context, sale domain.SaleID, claim domain.Claim) (domain.Outcome, error) {
	if err := checkClaim(claim); err != nil {
		return domain.Outcome{}, err
	}
	layout, err := s.find(ctx, sale)
	if err != nil {
		return domain.Outcome{}, err
	}
	home := layout.home(claim.Buyer)
	outcome, err := s.reacquire(ctx, layout.segments[home], claim)
	for range topUpTries {
		if err != nil || outcome.Verdict != domain.SoldOut || len(layout.segments) == 1 {
			return outcome, err
		}
		free, err := s.borrow(ctx, layout, home, claim.Quantity)
		if err != nil {
			return domain.Outcome{}, err
		}
		if free < claim.Quantity {
			outcome.Before, outcome.After = free, free
			return outcome, nil
		}
		if outcome, err = s.reacquire(ctx, layout.segments[home], claim); err != nil {
			return domain.Outcome{}, err
		}
	}
	return domain.Outcome{}, unavailable(errRestless)
}

func (s *Stock) reacquire(ctx context.Context, keys saleKeys, claim domain.Claim) (domain.Outcome, error) {
	reply, err := s.run(ctx, reacquireScript,
		[]string{keys.sale, keys.holds, keys.buyers, keys.requests},
		string(claim.Order), string(claim.Order.Late()), string(claim.Buyer), claim.Quantity,
		tail(claim.Buyer, claim.Request, claim.Quantity), requestField(claim.Buyer, claim.Request))
	if err != nil {
		return domain.Outcome{}, err
	}
	if len(reply) == 0 {
		return domain.Outcome{Verdict: domain.NotReady}, nil
	}
	available, err := reply.number(0)
	if err != nil {
		return domain.Outcome{}, err
	}
	word := reply.text(1)
	if len(word) != 1 {
		return domain.Outcome{}, unavailable(fmt.Errorf("script answered with %q", word))
	}
	return outcome(word[0], claim, available)
}
