package redisstock

import (
	"context"
	"errors"
	"hash/fnv"
	"strconv"
	"sync"

	"github.com/redis/go-redis/v9"

	"seckill/domain"
)

// maxLayouts bounds the layouts that are remembered.
const maxLayouts = 100_000

// layout is where a sale's keys are: one set of them per segment. A sale keeps
// its number of segments for as long as Redis has it.
type layout struct {
	sale     domain.SaleID
	count    string // of segments, as the scripts compare it
	known    bool   // Redis has said so; else it is what most sales have
	segments []saleKeys
	loans    []loans // by borrowing segment
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

// layouts remembers the layout of sales.
type layouts struct {
	mu     sync.RWMutex
	bySale map[domain.SaleID]*layout
}

// layout is what is known of a sale, at once. One that nothing is known of is
// taken to have one segment: the scripts of a grab tell if that is wrong.
func (s *Stock) layout(sale domain.SaleID) *layout {
	s.layouts.mu.RLock()
	found := s.layouts.bySale[sale]
	s.layouts.mu.RUnlock()
	if found != nil {
		return found
	}
	return s.remember(sale, 1, false)
}

// remember notes how many segments a sale has.
func (s *Stock) remember(sale domain.SaleID, segments int, known bool) *layout {
	fresh := &layout{sale: sale, count: strconv.Itoa(segments), known: known, loans: make([]loans, segments)}
	for number := range segments {
		fresh.segments = append(fresh.segments, s.segment(sale, number))
	}
	s.layouts.mu.Lock()
	defer s.layouts.mu.Unlock()
	if old := s.layouts.bySale[sale]; old != nil && old.count == fresh.count && (old.known || !known) {
		return old // with whoever borrows in it
	}
	if s.layouts.bySale == nil || len(s.layouts.bySale) >= maxLayouts {
		s.layouts.bySale = map[domain.SaleID]*layout{}
	}
	s.layouts.bySale[sale] = fresh
	return fresh
}

// find asks Redis for a sale's layout unless it is known. A sale that is not
// there has one segment.
func (s *Stock) find(ctx context.Context, sale domain.SaleID) (*layout, error) {
	if found := s.layout(sale); found.known {
		return found, nil
	}
	text, err := s.config.Client.HGet(ctx, s.keys(sale).sale, "segments").Result()
	if errors.Is(err, redis.Nil) {
		return s.remember(sale, 1, false), nil
	}
	if err != nil {
		return nil, unavailable(err)
	}
	segments, err := s.parseSegments(text)
	if err != nil {
		return nil, err
	}
	return s.remember(sale, segments, true), nil
}

func (s *Stock) parseSegments(text string) (int, error) {
	segments, err := strconv.Atoi(text)
	if err != nil || segments < 1 || segments > s.maxSegments() {
		return 0, unavailable(errors.New("SECKILL corrupt segments"))
	}
	return segments, nil
}

// maxSegments is how many segments a sale can have: they lie in different
// partitions.
func (s *Stock) maxSegments() int { return min(s.config.Partitions, domain.MaxSegments) }

// forget drops what is known of a sale that Redis has no more.
func (s *Stock) forget(sale domain.SaleID) {
	s.layouts.mu.Lock()
	delete(s.layouts.bySale, sale)
	s.layouts.mu.Unlock()
}

// locate finds the segments that the ids' holds are in. Whoever asks knows the
// ids only, not their buyers. An id that has no units anywhere is in every
// segment's list: its tombstone must be where its grab may still come, and one
// that is there may be what an interrupted release has left.
func (s *Stock) locate(ctx context.Context, l *layout, ids []domain.OrderID) ([][]domain.OrderID, error) {
	lists := make([][]domain.OrderID, len(l.segments))
	if len(l.segments) == 1 || len(ids) == 0 {
		lists[0] = ids
		return lists, nil
	}
	if err := checkIDs(ids); err != nil {
		return nil, err
	}
	for start := 0; start < len(ids); start += maxIDs {
		part := ids[start:min(start+maxIDs, len(ids))]
		names := make([]string, len(part))
		for i, id := range part {
			names[i] = string(id)
		}
		pipe := s.config.Client.Pipeline()
		replies := make([]*redis.SliceCmd, len(l.segments))
		for number, keys := range l.segments {
			replies[number] = pipe.HMGet(ctx, keys.holds, names...)
		}
		if _, err := pipe.Exec(ctx); err != nil {
			return nil, unavailable(err)
		}
		for i, id := range part {
			found := false
			for number, reply := range replies {
				record, _ := reply.Val()[i].(string)
				if record != "" && !isTombstone(record) {
					lists[number] = append(lists[number], id)
					found = true
				}
			}
			for number := range replies {
				if !found {
					lists[number] = append(lists[number], id)
				}
			}
		}
	}
	return lists, nil
}
