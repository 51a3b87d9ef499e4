package redisstock

import (
	"context"
	"errors"
	"sync"
	"time"

	"seckill/domain"
)

// A segment that has too few units for a claim borrows from the others. The
// lender takes the units out of its account and writes them down as a loan; the
// borrower adds them and notes the loan's serial number; the lender forgets the
// loan. Whoever finds a loan brings it to its borrower, so a process that dies
// in between loses nothing, and a loan that is brought twice counts once.
//
// "Sold out" is said only after the segments were read twice with nothing on its
// way, borrowed or freed in between: then there was a moment when the sale as a
// whole had too few units.

const (
	// borrowTries bounds the loans of one round, and the rounds of one claim.
	borrowTries = 200
	topUpTries  = 50
	// loanTimeout bounds one round.
	loanTimeout = 5 * time.Second
)

// loans is the borrowing of one segment: one round at a time, and those who come
// during a round share the next.
type loans struct {
	mu   sync.Mutex
	busy bool
	next *round
}

// round is one go at getting units for all who wait for it.
type round struct {
	want int64 // units, of all
	done chan struct{}
	free int64 // units available in the whole sale, or more than the round wanted
	err  error
}

// borrow gets units for a claim of a segment that has too few. It returns how
// many are available in the sale: as many as the claim needs, then it is worth
// another try; or fewer, then the sale is sold out for it.
func (s *Stock) borrow(ctx context.Context, l *layout, home int, units int64) (int64, error) {
	loans := &l.loans[home]
	loans.mu.Lock()
	if loans.next == nil {
		loans.next = &round{done: make(chan struct{})}
	}
	mine := loans.next
	mine.want += units
	if !loans.busy {
		loans.busy = true
		go s.lend(l, home)
	}
	loans.mu.Unlock()
	select {
	case <-mine.done:
		return mine.free, mine.err
	case <-ctx.Done():
		return 0, unavailable(ctx.Err())
	}
}

// lend runs rounds for as long as somebody waits for one.
func (s *Stock) lend(l *layout, home int) {
	loans := &l.loans[home]
	for {
		loans.mu.Lock()
		round := loans.next
		loans.next, loans.busy = nil, round != nil
		loans.mu.Unlock()
		if round == nil {
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), loanTimeout)
		round.free, round.err = s.gather(ctx, l, home, round.want)
		cancel()
		close(round.done)
	}
}

// gather brings up to want units to a segment, and returns how many the whole
// sale has at least; exactly, when it has fewer than are wanted.
func (s *Stock) gather(ctx context.Context, l *layout, home int, want int64) (int64, error) {
	var before []reading
	for range borrowTries {
		now, err := s.readings(ctx, l)
		if err != nil {
			return 0, err
		}
		if lending(now) {
			if err := s.bringLoans(ctx, l, now); err != nil {
				return 0, err
			}
			before = nil
			continue
		}
		missing := want - now[home].Available
		lender := richest(now, home)
		switch {
		case missing <= 0:
			return now[home].Available, nil
		case now[lender].Available > 0 && lender != home:
			// Half of what the lender has, so that the next buyers need no loan.
			if err := s.bring(ctx, l, lender, home, max(missing, now[lender].Available/2)); err != nil {
				return 0, err
			}
			before = nil
		case before != nil && !moved(before, now) && !freed(before, now):
			return free(now), nil
		default:
			before = now
		}
	}
	return 0, unavailable(errRestless)
}

// richest is the segment other than home with the most units.
func richest(now []reading, home int) int {
	best := home
	for i, r := range now {
		if i != home && (best == home || r.Available > now[best].Available) {
			best = i
		}
	}
	return best
}

// bringLoans ends the loans that are on their way, whoever began them.
func (s *Stock) bringLoans(ctx context.Context, l *layout, now []reading) error {
	for lender := range now {
		for borrower := range now {
			if lender == borrower || now[lender].lending == 0 {
				continue
			}
			// Asking for 0 units makes no new loan, and tells of one that is there.
			if err := s.bring(ctx, l, lender, borrower, 0); err != nil {
				return err
			}
		}
	}
	return nil
}

// bring makes a loan of at most so many units, or takes up the one that is on
// its way between the two, and ends it.
func (s *Stock) bring(ctx context.Context, l *layout, lender, borrower int, most int64) error {
	from, to := l.segments[lender].sale, l.segments[borrower].sale
	reply, err := s.command(ctx, lendScript, []string{from}, borrower, most)
	if err != nil {
		return err
	}
	var figures [3]int64 // epoch, serial number, units
	for i := range figures {
		if figures[i], err = reply.number(1 + i); err != nil {
			return err
		}
	}
	epoch, serial, units := figures[0], figures[1], figures[2]
	if units == 0 {
		return nil
	}
	_, err = s.command(ctx, borrowScript, []string{to}, lender, epoch, serial, units)
	if errors.Is(err, domain.ErrConflict) {
		return domain.ErrNotReady // the sale is being loaded anew
	}
	if err != nil {
		return err
	}
	_, err = s.command(ctx, repaidScript, []string{from}, borrower, epoch, serial)
	return err
}
