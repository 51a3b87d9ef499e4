package memory

import (
	"container/heap"
	"container/list"
	"strconv"
	"sync"
	"time"

	"seckill/domain"
)

// partition is one line of entries. Its mutex is taken after a sale's, never
// before one.
type partition struct {
	number     int
	backoff    time.Duration
	backoffMax time.Duration
	arrived    chan struct{} // a token while undelivered entries may be there

	mu       sync.Mutex
	sequence uint64
	line     *list.List    // of *entry, all that are not acknowledged, oldest first
	fresh    *list.Element // the first of the line that was never delivered
	entries  map[string]*entry
	due      dueHeap // delivered entries, the earliest due on top
	orders   int64
	units    map[domain.SaleID]int64
}

type entry struct {
	delivery domain.Delivery
	queuedAt time.Time
	place    *list.Element
	sequence uint64
	due      time.Time // when it may be reclaimed
	heapAt   int       // place in the due heap; -1 before the first delivery
}

func newPartition(number int, backoff, backoffMax time.Duration) *partition {
	return &partition{
		number:     number,
		backoff:    backoff,
		backoffMax: backoffMax,
		arrived:    make(chan struct{}, 1),
		line:       list.New(),
		entries:    map[string]*entry{},
		units:      map[domain.SaleID]int64{},
	}
}

func (p *partition) push(sale domain.SaleID, intents []domain.Intent, now time.Time) {
	p.mu.Lock()
	p.sequence++
	e := &entry{
		delivery: domain.Delivery{
			ID:        strconv.FormatUint(p.sequence, 10),
			Partition: p.number,
			Sale:      sale,
			Intents:   intents,
		},
		queuedAt: now,
		sequence: p.sequence,
		heapAt:   -1,
	}
	e.place = p.line.PushBack(e)
	if p.fresh == nil {
		p.fresh = e.place
	}
	p.entries[e.delivery.ID] = e
	p.orders += int64(len(intents))
	p.units[sale] += unitsIn(intents)
	p.mu.Unlock()
	p.wake()
}

// wake lets one waiting receiver look.
func (p *partition) wake() {
	select {
	case p.arrived <- struct{}{}:
	default:
	}
}

// receive takes entries until they have so many orders; reclaim does as well.
func (p *partition) receive(orders int, now time.Time) []domain.Delivery {
	p.mu.Lock()
	defer p.mu.Unlock()
	var got []domain.Delivery
	for p.fresh != nil && orders > 0 {
		e := p.fresh.Value.(*entry)
		p.fresh = p.fresh.Next()
		got = append(got, p.deliver(e, now))
		heap.Push(&p.due, e)
		orders -= len(e.delivery.Intents)
	}
	if p.fresh != nil {
		p.wake() // others wait for the rest
	}
	return got
}

func (p *partition) reclaim(orders int, now time.Time) []domain.Delivery {
	p.mu.Lock()
	defer p.mu.Unlock()
	var got []domain.Delivery
	for orders > 0 && len(p.due) > 0 && !now.Before(p.due[0].due) {
		e := p.due[0]
		got = append(got, p.deliver(e, now))
		heap.Fix(&p.due, 0)
		orders -= len(e.delivery.Intents)
	}
	return got
}

// deliver counts an attempt and moves the due time. The caller keeps the heap.
func (p *partition) deliver(e *entry, now time.Time) domain.Delivery {
	e.delivery.Attempts++
	e.due = now.Add(p.wait(e.delivery.Attempts))
	return e.delivery
}

// wait is the base, doubled for every attempt after the first, up to the limit.
func (p *partition) wait(attempts int) time.Duration {
	wait := p.backoff
	for range attempts - 1 {
		if wait >= p.backoffMax/2 {
			return p.backoffMax
		}
		wait *= 2
	}
	return wait
}

func (p *partition) ack(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	e := p.entries[id]
	if e == nil || e.heapAt < 0 {
		return
	}
	heap.Remove(&p.due, e.heapAt)
	p.line.Remove(e.place)
	delete(p.entries, id)
	p.orders -= int64(len(e.delivery.Intents))
	sale := e.delivery.Sale
	p.setUnits(sale, p.units[sale]-unitsIn(e.delivery.Intents))
}

func (p *partition) depth(now time.Time) (orders int64, oldest time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if front := p.line.Front(); front != nil {
		oldest = max(0, now.Sub(front.Value.(*entry).queuedAt))
	}
	return p.orders, oldest
}

func (p *partition) unitsOf(sale domain.SaleID) int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.units[sale]
}

func (p *partition) count(sale domain.SaleID) (recorded, counted int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.units[sale], p.counted(sale)
}

func (p *partition) recount(sale domain.SaleID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.setUnits(sale, p.counted(sale))
}

// counted expects the mutex to be held, as does setUnits.
func (p *partition) counted(sale domain.SaleID) int64 {
	var units int64
	for place := p.line.Front(); place != nil; place = place.Next() {
		if e := place.Value.(*entry); e.delivery.Sale == sale {
			units += unitsIn(e.delivery.Intents)
		}
	}
	return units
}

// setUnits stops at 0: a figure that was damaged before is the audit's to name.
func (p *partition) setUnits(sale domain.SaleID, units int64) {
	if units <= 0 {
		delete(p.units, sale)
		return
	}
	p.units[sale] = units
}

func unitsIn(intents []domain.Intent) int64 {
	var units int64
	for _, intent := range intents {
		units += intent.Quantity
	}
	return units
}

// dueHeap orders delivered entries by due time, then by arrival.
type dueHeap []*entry

func (h dueHeap) Len() int { return len(h) }

func (h dueHeap) Less(i, j int) bool {
	if !h[i].due.Equal(h[j].due) {
		return h[i].due.Before(h[j].due)
	}
	return h[i].sequence < h[j].sequence
}

func (h dueHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].heapAt, h[j].heapAt = i, j
}

// Push is for container/heap only.
func (h *dueHeap) Push(x any) {
	e := x.(*entry)
	e.heapAt = len(*h)
	*h = append(*h, e)
}

// Pop is for container/heap only.
func (h *dueHeap) Pop() any {
	last := len(*h) - 1
	e := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return e
}
