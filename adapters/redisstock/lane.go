package redisstock

import (
	"context"
	"errors"
	"sync"
	"time"

	"seckill/domain"
)

const (
	// maxWaiting bounds the claims of a partition that wait for a call.
	maxWaiting = 1 << 14
	// laneTimeout bounds one call, should the client be without time-outs.
	laneTimeout = 5 * time.Second
)

// lane coalesces the single claims of one partition: while Config.Calls calls
// are on their way, claims wait and then leave together in the next one. There
// is no timer: a claim that meets no other leaves at once.
//
// Measured: a call for claims of many sales costs Redis hardly more than one for
// claims of a single sale, and much less than a call each, so sales share calls.
type lane struct {
	stock *Stock

	mu      sync.Mutex
	waiting []*seat
	calls   int // on their way
}

// seat is one claim in a lane.
type seat struct {
	layout *layout
	keys   *saleKeys
	claim  domain.Claim
	left   bool // by a caller that gave up; guarded by the lane's mutex
	gone   bool // in a call; guarded by the lane's mutex
	group  int  // of that call
	place  int  // among all its claims

	done    chan struct{}
	outcome domain.Outcome
	err     error
}

var seats = sync.Pool{New: func() any { return &seat{done: make(chan struct{}, 1)} }}

var (
	errTooMany = errors.New("too many grabs wait for the hot store")
	errNotSent = errors.New("the grab was given up before it was sent")
)

// join waits for a claim's outcome.
func (l *lane) join(ctx context.Context, layout *layout, keys *saleKeys, claim domain.Claim) (domain.Outcome, error) {
	s := seats.Get().(*seat)
	s.layout, s.keys, s.claim, s.left, s.gone = layout, keys, claim, false, false

	l.mu.Lock()
	if l.calls == 0 && len(l.waiting) == 0 {
		l.calls++
		l.mu.Unlock()
		seats.Put(s)
		return l.alone(ctx, layout, keys, claim)
	}
	if len(l.waiting) >= maxWaiting {
		l.mu.Unlock()
		seats.Put(s)
		return domain.Outcome{}, unavailable(errTooMany)
	}
	l.waiting = append(l.waiting, s)
	start := l.calls < l.stock.config.Calls
	if start {
		l.calls++
	}
	l.mu.Unlock()
	if start {
		go l.run()
	}

	select {
	case <-s.done:
		outcome, err := s.outcome, s.err
		seats.Put(s)
		return outcome, err
	case <-ctx.Done():
		// The seat is not used again: its call may still answer it.
		l.mu.Lock()
		s.left = true
		gone := s.gone
		l.mu.Unlock()
		if gone {
			return domain.Outcome{}, unavailable(ctx.Err())
		}
		return domain.Outcome{}, unavailable(errors.Join(errNotSent, ctx.Err()))
	}
}

// alone decides a claim that met no other in its caller's own goroutine, as
// without coalescing: handing it to another would cost an idle system a fifth
// of its latency. Those who came meanwhile go in the next calls.
func (l *lane) alone(ctx context.Context, layout *layout, keys *saleKeys, claim domain.Claim) (domain.Outcome, error) {
	defer func() {
		l.mu.Lock()
		more := len(l.waiting) > 0
		if !more {
			l.calls--
		}
		l.mu.Unlock()
		if more {
			go l.run()
		}
	}()
	if _, bounded := ctx.Deadline(); !bounded {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, laneTimeout)
		defer cancel()
	}
	outcomes := []domain.Outcome{{}}
	err := l.stock.decideOne(ctx, group{layout: layout, keys: keys, claims: []domain.Claim{claim}, outcomes: outcomes})
	return outcomes[0], err
}

// run makes calls for as long as claims wait.
func (l *lane) run() {
	var call call
	for l.board(&call) {
		call.send(l.stock)
	}
}

// board fills a call with what waits; false when nothing does, and then the
// call is no longer counted as on its way.
func (l *lane) board(c *call) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	c.seats = c.seats[:0]
	taken := 0
	for taken < len(l.waiting) && len(c.seats) < l.stock.config.Batch {
		if s := l.waiting[taken]; !s.left {
			s.gone = true
			c.seats = append(c.seats, s)
		}
		taken++
	}
	rest := copy(l.waiting, l.waiting[taken:])
	clear(l.waiting[rest:])
	l.waiting = l.waiting[:rest]
	if len(c.seats) == 0 {
		l.calls--
	}
	return len(c.seats) > 0
}
