package redisstock

import (
	"context"
	"slices"

	"seckill/domain"
)

// call is one script call of a lane; its buffers are used again for the next.
type call struct {
	seats    []*seat
	groups   []group
	sizes    []int // of the groups
	places   map[*saleKeys]int
	claims   []domain.Claim
	outcomes []domain.Outcome
}

// send decides the claims and tells every seat.
func (c *call) send(stock *Stock) {
	c.arrange()
	ctx, cancel := context.WithTimeout(context.Background(), laneTimeout)
	err := stock.decide(ctx, c.groups)
	cancel()
	for _, s := range c.seats {
		s.outcome, s.err = c.outcomes[s.place], err
		if err == nil {
			s.err = c.groups[s.group].err
		}
		s.done <- struct{}{}
	}
}

// arrange groups the seats' claims by sale and keeps their order.
func (c *call) arrange() {
	if c.places == nil {
		c.places = map[*saleKeys]int{}
	}
	clear(c.places)
	c.groups, c.sizes = c.groups[:0], c.sizes[:0]
	for i, s := range c.seats {
		if i > 0 && s.keys == c.seats[i-1].keys {
			s.group = c.seats[i-1].group
		} else if at, seen := c.places[s.keys]; seen {
			s.group = at
		} else {
			s.group = len(c.groups)
			c.places[s.keys] = s.group
			c.groups = append(c.groups, group{layout: s.layout, keys: s.keys})
			c.sizes = append(c.sizes, 0)
		}
		c.sizes[s.group]++
	}
	n, start := len(c.seats), 0
	c.claims, c.outcomes = slices.Grow(c.claims[:0], n)[:n], slices.Grow(c.outcomes[:0], n)[:n]
	clear(c.outcomes)
	for i := range c.groups {
		end := start + c.sizes[i]
		c.groups[i].claims, c.groups[i].outcomes = c.claims[start:start:end], c.outcomes[start:end]
		c.sizes[i], start = start, end
	}
	for _, s := range c.seats {
		g := &c.groups[s.group]
		s.place = c.sizes[s.group] + len(g.claims)
		g.claims = append(g.claims, s.claim)
	}
}
