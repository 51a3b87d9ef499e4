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
// are, in one call per segment of the sale.
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

// reserve decides the claims where their buyers are at home.
func (s *Stock) reserve(ctx context.Context, layout *layout, claims []domain.Claim, outcomes []domain.Outcome) (err error) {
	if len(claims) == 1 && s.config.Batch > 1 {
		keys := &layout.segments[layout.home(claims[0].Buyer)]
		outcomes[0], err = s.lanes[keys.partition].join(ctx, layout, keys, claims[0])
		return err
	}
	if len(layout.segments) == 1 {
		return s.decideOne(ctx, group{layout: layout, keys: &layout.segments[0], claims: claims, outcomes: outcomes})
	}
	places := make([][]int, len(layout.segments))
	for i, claim := range claims {
		home := layout.home(claim.Buyer)
		places[home] = append(places[home], i)
	}
	for home, places := range places {
		if len(places) == 0 {
			continue
		}
		g := group{layout: layout, keys: &layout.segments[home], outcomes: make([]domain.Outcome, len(places))}
		for _, place := range places {
			g.claims = append(g.claims, claims[place])
		}
		if err := s.decideOne(ctx, g); err != nil {
			return err
		}
		for i, place := range places {
			outcomes[place] = g.outcomes[i]
		}
	}
	return nil
}

func (s *Stock) decideOne(ctx context.Context, g group) error {
	groups := []group{g}
	if err := s.decide(ctx, groups); err != nil {
		return err
	}
	return groups[0].err
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
	keys := s.keys(sale)
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
