package worker

import (
	"sync"
	"time"
)

// minSize is the fewest orders that are taken at a time.
const minSize = 16

// size is how many orders to take from a partition at a time. What all partitions
// have on their way must be placed before the queue hands it to somebody else, or
// a ledger that is behind does its work twice and falls behind more. So batches
// that come near that bound are halved, and quick ones doubled, from few orders
// on. A batch is judged by what was asked for when it was taken: that many batches
// that were on their way together count as one sign.
type size struct {
	mu      sync.Mutex
	largest int
	orders  int
}

func newSize(largest int) *size {
	return &size{largest: largest, orders: min(largest, 8*minSize)}
}

func (s *size) get() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.orders
}

// note learns from a batch how long it took, waiting included, of the time it had.
func (s *size) note(asked, got int, took, had time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case took > had/4:
		s.orders = max(minSize, min(s.orders, asked/2))
	case took < had/8 && got > asked/2:
		s.orders = min(s.largest, max(s.orders, 2*asked))
	}
}
