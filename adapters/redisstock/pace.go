package redisstock

import "sync"

// pace turns a number of orders into a number of entries to read: an entry holds
// one order when grabs are rare and hundreds under load, and a reader that takes
// more than it can place in time would only lose the rest to another. It goes by
// what the last read had. Reads at most double, so a backlog of large entries
// after a quiet time is met with care; after a large read of small entries it is
// not.
type pace struct {
	mu      sync.Mutex
	entries int // of the last read that had any
	orders  int // in them
}

// entriesFor is how many entries to read for about so many orders.
func (p *pace) entriesFor(orders int) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.orders == 0 {
		return 1
	}
	return max(1, min(orders*p.entries/p.orders, 2*p.entries, maxReceive))
}

// saw notes what a read had.
func (p *pace) saw(entries, orders int) {
	if entries == 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.entries, p.orders = entries, max(orders, 1)
}
