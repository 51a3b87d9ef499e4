package application

import (
	"sync"
	"sync/atomic"
	"time"

	"seckill/domain"
)

const (
	// soldOutAge is how long a sale is answered "sold out" from memory after the
	// hot store last said so. Units that come back on another node are on sale
	// here after that, at the latest.
	soldOutAge = 800 * time.Millisecond
	// soldOutCheck is how often one of the grabs goes to the hot store all the
	// same, so that a crowd hears of returned units sooner, and keeps the mark.
	soldOutCheck = 200 * time.Millisecond
	soldOutMax   = 10_000 // marks
)

// soldOut remembers which sales have no unit left, so that the crowd that comes
// too late costs the hot store a few calls a second. Only this one refusal is
// remembered, and only for grabs that cannot be the repeat of an accepted one.
type soldOut struct {
	mu    sync.RWMutex
	marks map[domain.SaleID]*soldOutMark
}

type soldOutMark struct {
	said  atomic.Int64 // when the hot store said so, Unix nanoseconds
	check atomic.Int64 // when the next grab is to ask it
}

// known says whether a grab can be refused without asking.
func (s *soldOut) known(sale domain.SaleID, now time.Time) bool {
	s.mu.RLock()
	mark := s.marks[sale]
	s.mu.RUnlock()
	if mark == nil {
		return false
	}
	at := now.UnixNano()
	// A negative age is a clock that was set back: it says nothing then.
	if age := at - mark.said.Load(); age < 0 || age >= int64(soldOutAge) {
		return false
	}
	check := mark.check.Load()
	return at < check || !mark.check.CompareAndSwap(check, at+int64(soldOutCheck))
}

// saw notes what the hot store has answered by now to a grab that was sent
// before. The sending counts: what came free since is not in the answer.
func (s *soldOut) saw(sale domain.SaleID, outcome domain.Outcome, sent, now time.Time) {
	switch {
	case outcome.Verdict != domain.SoldOut:
		if outcome.Verdict == domain.Accepted && !outcome.Replayed {
			s.forget(sale) // units are back
		}
		return
	case outcome.After > 0:
		return // too few for this grab, enough for a smaller one
	}
	s.mu.RLock()
	mark := s.marks[sale]
	s.mu.RUnlock()
	if mark == nil {
		mark = s.mark(sale)
	}
	at := sent.UnixNano()
	said := mark.said.Load()
	clockSetBack := said > now.UnixNano()
	if (said < at || clockSetBack) && mark.said.CompareAndSwap(said, at) && clockSetBack {
		mark.check.Store(at + int64(soldOutCheck))
	}
	mark.check.CompareAndSwap(0, at+int64(soldOutCheck))
}

func (s *soldOut) mark(sale domain.SaleID) *soldOutMark {
	s.mu.Lock()
	defer s.mu.Unlock()
	mark := s.marks[sale]
	if mark == nil {
		if s.marks == nil || len(s.marks) >= soldOutMax {
			s.marks = map[domain.SaleID]*soldOutMark{}
		}
		mark = &soldOutMark{}
		s.marks[sale] = mark
	}
	return mark
}

// forget drops a mark, when this process knows that units came back.
func (s *soldOut) forget(sale domain.SaleID) {
	s.mu.RLock()
	marked := s.marks[sale] != nil
	s.mu.RUnlock()
	if !marked {
		return
	}
	s.mu.Lock()
	delete(s.marks, sale)
	s.mu.Unlock()
}
