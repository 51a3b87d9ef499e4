package redisstock

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"seckill/domain"
)

// errMoved says that a sale has another number of segments than was known.
var errMoved = errors.New("the sale has another number of segments")

// group is claims of one segment of a sale, to be decided in their order.
type group struct {
	layout *layout
	keys   *saleKeys
	claims []domain.Claim
	// Set by decide: one outcome per claim, or what is wrong with the sale.
	outcomes []domain.Outcome
	err      error
}

// decide has grab.lua decide groups of one partition, with at most 1000 claims
// together, in one step. An error is about the call as a whole; what is wrong
// with one sale only is in its group.
func (s *Stock) decide(ctx context.Context, groups []group) error {
	keys := make([]string, 2, 2+4*len(groups))
	keys[0], keys[1] = groups[0].keys.queue, groups[0].keys.depth
	for _, g := range groups {
		keys = append(keys, g.keys.sale, g.keys.holds, g.keys.buyers, g.keys.requests)
	}
	var reply reply
	err := s.breakers[groups[0].keys.partition].do(ctx, func(ctx context.Context) (err error) {
		reply, err = s.run(ctx, grabScript, keys, grabArgs(groups)...)
		return err
	})
	if err != nil {
		return err
	}
	if len(reply) != len(groups) {
		return unavailable(fmt.Errorf("script answered %d of %d sales", len(reply), len(groups)))
	}
	for i := range groups {
		answer, ok := reply[i].([]any)
		if !ok {
			return unavailable(fmt.Errorf("script answered with %T", reply[i]))
		}
		groups[i].err = s.answered(&groups[i], answer)
	}
	return nil
}

// grabArgs lays the claims out as grab.lua reads them: kind by kind, so that a
// range of them is the argument list of one command.
func grabArgs(groups []group) []any {
	n := 0
	for _, g := range groups {
		n += len(g.claims)
	}
	base := 1 + 3*len(groups)
	args := make([]any, base+5*n)
	args[0] = strconv.Itoa(n)
	orders, buyers, quantities := args[base:], args[base+n:], args[base+2*n:]
	tails, fields := args[base+3*n:], args[base+4*n:]
	asks, i := false, 0
	for at, g := range groups {
		args[1+3*at], args[2+3*at], args[3+3*at] = g.keys.id, g.layout.count, strconv.Itoa(len(g.claims))
		for _, claim := range g.claims {
			tail := tail(claim.Buyer, claim.Request, claim.Quantity)
			digits := len(tail) - len(claim.Buyer) - len(claim.Request) - 2
			orders[i], buyers[i], tails[i] = string(claim.Order), string(claim.Buyer), tail
			quantities[i], fields[i] = tail[:digits], ""
			if claim.Request != "" {
				fields[i], asks = tail[digits+1:], true
			}
			i++
		}
	}
	if !asks {
		return args[:base+4*n]
	}
	return args
}

// answered reads what grab.lua says of one group.
func (s *Stock) answered(g *group, reply reply) error {
	if len(reply) == 0 {
		for i := range g.claims {
			g.outcomes[i] = domain.Outcome{Verdict: domain.NotReady}
		}
		return nil
	}
	switch reply.text(0) {
	case "!":
		return unavailable(fmt.Errorf("SECKILL corrupt %s of sale %s", reply.text(1), g.keys.id))
	case "/":
		segments, err := s.parseSegments(reply.text(1))
		if err != nil {
			return err
		}
		s.remember(g.layout.sale, segments, true)
		return errMoved
	}
	available, err := reply.number(0)
	if err != nil {
		return err
	}
	starts, err := reply.number(1)
	if err != nil {
		return err
	}
	word := reply.text(2)
	if len(word) != len(g.claims) {
		return unavailable(fmt.Errorf("script answered %d of %d claims", len(word), len(g.claims)))
	}
	other := 3
	for i, claim := range g.claims {
		outcome, err := outcome(word[i], claim, available)
		if err != nil {
			return err
		}
		available = outcome.After
		switch word[i] {
		case 'X':
			outcome.Order = domain.OrderID(reply.text(other)).Order()
			other++
		case 'N':
			outcome.StartsAt = time.UnixMilli(starts)
		}
		g.outcomes[i] = outcome
	}
	return nil
}
