package redisstock

import (
	"iter"

	"seckill/domain"
)

// partSize is how many records one call of a preheat writes: enough to be
// quick, few enough that other sales of the server do not wait noticeably.
const partSize = 1000

// content is what the hashes of a freshly loaded sale hold: fields and values
// in turn, with the sums over the holds.
type content struct {
	holds, buyers, requests []any
	available, held, sold   int64
}

// share lays a load out over the segments of a sale.
func share(load domain.Load, l *layout) []content {
	holds := make([][]domain.Hold, len(l.segments))
	for _, hold := range load.Holds {
		home := l.home(hold.Buyer)
		holds[home] = append(holds[home], hold)
	}
	shares := make([]content, len(holds))
	available := load.Total
	for i, holds := range holds {
		shares[i] = layOut(holds)
		available -= shares[i].held + shares[i].sold
	}
	for i := range shares {
		shares[i].available = available / int64(len(shares)-i) // the rest goes to the last ones
		available -= shares[i].available
	}
	return shares
}

// layOut makes the content from holds. Of two holds with the same request id
// the first is the one that a repeated grab hears of.
func layOut(holds []domain.Hold) content {
	var c content
	units := map[domain.BuyerID]int64{}
	asked := map[string]bool{}
	for _, hold := range holds {
		c.holds = append(c.holds, string(hold.Order), encodeHold(hold))
		switch hold.State {
		case domain.Held:
			c.held += hold.Quantity
			units[hold.Buyer] += hold.Quantity
		case domain.Sold:
			c.sold += hold.Quantity
			units[hold.Buyer] += hold.Quantity
		case domain.Released:
		}
		if field := requestField(hold.Buyer, hold.Request); field != "" && !asked[field] {
			asked[field] = true
			c.requests = append(c.requests, field, string(hold.Order))
		}
	}
	for buyer, n := range units {
		c.buyers = append(c.buyers, string(buyer), n)
	}
	return c
}

// parts yields the arguments of preheat_part.lua, call by call.
func (c content) parts(fence int64, token string) iter.Seq[[]any] {
	return func(yield func([]any) bool) {
		for len(c.holds)+len(c.buyers)+len(c.requests) > 0 {
			holds, buyers, requests := cut(&c.holds), cut(&c.buyers), cut(&c.requests)
			args := make([]any, 0, 5+len(holds)+len(buyers)+len(requests))
			args = append(args, fence, token, len(holds)/2, len(buyers)/2, len(requests)/2)
			args = append(append(append(args, holds...), buyers...), requests...)
			if !yield(args) {
				return
			}
		}
	}
}

// cut takes the next part off a list of fields and values.
func cut(list *[]any) []any {
	n := min(len(*list), 2*partSize)
	part := (*list)[:n]
	*list = (*list)[n:]
	return part
}
