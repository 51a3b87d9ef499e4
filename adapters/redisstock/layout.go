package redisstock

import (
	"hash/fnv"
	"strconv"
	"sync"

	"seckill/domain"
)

// maxLayouts bounds the layouts that are remembered.
const maxLayouts = 100_000

// layout is where a sale's keys are: one set of them per segment.
type layout struct {
	sale     domain.SaleID
	count    string // of segments, as the scripts compare it
	segments []saleKeys
}

// home is the segment that keeps a buyer's units and holds.
func (l *layout) home(buyer domain.BuyerID) int {
	if len(l.segments) == 1 {
		return 0
	}
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(buyer))
	return int(hash.Sum32() % uint32(len(l.segments)))
}

// layouts remembers the layout of sales. One that is not remembered is taken to
// have one segment; the scripts tell if that is wrong.
type layouts struct {
	mu     sync.RWMutex
	bySale map[domain.SaleID]*layout
}

func (s *Stock) layout(sale domain.SaleID) *layout {
	s.layouts.mu.RLock()
	found := s.layouts.bySale[sale]
	s.layouts.mu.RUnlock()
	if found != nil {
		return found
	}
	return s.remember(sale, 1)
}

// remember notes how many segments a sale has.
func (s *Stock) remember(sale domain.SaleID, segments int) *layout {
	fresh := &layout{sale: sale, count: strconv.Itoa(segments)}
	for number := range segments {
		fresh.segments = append(fresh.segments, s.segment(sale, number))
	}
	s.layouts.mu.Lock()
	defer s.layouts.mu.Unlock()
	if s.layouts.bySale == nil || len(s.layouts.bySale) >= maxLayouts {
		s.layouts.bySale = map[domain.SaleID]*layout{}
	}
	s.layouts.bySale[sale] = fresh
	return fresh
}
