package redisstock

import (
	"context"
	"fmt"
	"strconv"
	"time"

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

// Reserve implements domain.Admission. At most 1000 claims.
func (s *Stock) Reserve(ctx context.Context, sale domain.SaleID, claims []domain.Claim) ([]domain.Outcome, error) {
	if err := checkClaims(claims); err != nil || len(claims) == 0 {
		return nil, err
	}
	keys := s.keys(sale)
	reply, err := s.run(ctx, grabScript,
		[]string{keys.sale, keys.holds, keys.buyers, keys.requests, keys.queue, keys.depth},
		grabArgs(keys.id, claims)...)
	if err != nil {
		return nil, err
	}
	return outcomes(reply, claims)
}

// grabArgs lays the claims out as grab.lua reads them: kind by kind, so that a
// range of them is the argument list of one command.
func grabArgs(sale string, claims []domain.Claim) []any {
	n := len(claims)
	args := make([]any, 2+5*n)
	args[0], args[1] = sale, strconv.Itoa(n)
	orders, buyers, quantities, tails, fields := args[2:], args[2+n:], args[2+2*n:], args[2+3*n:], args[2+4*n:]
	asks := false
	for i, claim := range claims {
		tail := tail(claim.Buyer, claim.Request, claim.Quantity)
		digits := len(tail) - len(claim.Buyer) - len(claim.Request) - 2
		orders[i], buyers[i], tails[i] = string(claim.Order), string(claim.Buyer), tail
		quantities[i], fields[i] = tail[:digits], ""
		if claim.Request != "" {
			fields[i], asks = tail[digits+1:], true
		}
	}
	if !asks {
		return args[:2+4*n]
	}
	return args
}

// outcomes reads the reply of grab.lua.
func outcomes(reply reply, claims []domain.Claim) ([]domain.Outcome, error) {
	list := make([]domain.Outcome, len(claims))
	if len(reply) == 0 {
		for i := range list {
			list[i].Verdict = domain.NotReady
		}
		return list, nil
	}
	available, err := reply.number(0)
	if err != nil {
		return nil, err
	}
	starts, err := reply.number(1)
	if err != nil {
		return nil, err
	}
	word := reply.text(2)
	if len(word) != len(claims) {
		return nil, unavailable(fmt.Errorf("script answered %d of %d claims", len(word), len(claims)))
	}
	other := 3
	for i, claim := range claims {
		outcome, err := outcome(word[i], claim, available)
		if err != nil {
			return nil, err
		}
		available = outcome.After
		switch word[i] {
		case 'X':
			outcome.Order = domain.OrderID(reply.text(other)).Order()
			other++
		case 'N':
			outcome.StartsAt = time.UnixMilli(starts)
		}
		list[i] = outcome
	}
	return list, nil
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
