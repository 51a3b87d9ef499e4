package redisstock

import (
	"context"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"

	"seckill/domain"
)

// reading is what a segment's hash says at one moment.
type reading struct {
	domain.Level
	frees   int64 // how often units came back to it
	moves   int64 // how often it has borrowed or lent
	lending int64 // loans that have not reached their borrowers
}

// surveyTries bounds how often a sale is read until it holds still.
const surveyTries = 50

var errRestless = errors.New("units move between the sale's segments all the time")

// survey reads the segments of a sale as if at one moment: again until no unit
// has moved between them meanwhile. Loans that somebody left on the way are
// brought to their borrowers first.
func (s *Stock) survey(ctx context.Context, l *layout) ([]reading, error) {
	var before []reading
	for range surveyTries {
		now, err := s.readings(ctx, l)
		if err != nil || len(now) == 1 {
			return now, err
		}
		if lending(now) {
			if err := s.bringLoans(ctx, l, now); err != nil {
				return nil, err
			}
			before = nil
			continue
		}
		if before != nil && !moved(before, now) {
			return now, nil
		}
		before = now
	}
	return nil, unavailable(errRestless)
}

// readings reads each segment, one after the other.
func (s *Stock) readings(ctx context.Context, l *layout) ([]reading, error) {
	names := []string{"epoch", "total", "available", "held", "sold", "queued", "frees", "moves", "lending"}
	pipe := s.config.Client.Pipeline()
	replies := make([]*redis.SliceCmd, len(l.segments))
	for i, keys := range l.segments {
		replies[i] = pipe.HMGet(ctx, keys.sale, append(names, "state")...)
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, unavailable(err)
	}
	now := make([]reading, len(replies))
	for i, reply := range replies {
		values := reply.Val()
		state, _ := values[len(names)].(string)
		if state == "" || state == sealedState {
			return nil, domain.ErrNotReady
		}
		r := &now[i]
		r.State = domain.State(state)
		fields := []*int64{&r.Epoch, &r.Total, &r.Available, &r.Held, &r.Sold, &r.Queued, &r.frees, &r.moves, &r.lending}
		for at, field := range fields {
			text, there := values[at].(string)
			if !there && field != &r.frees && field != &r.moves && field != &r.lending {
				text = "?"
			} else if !there {
				text = "0"
			}
			var err error
			if *field, err = parseFigure(text); err != nil {
				return nil, unavailable(fmt.Errorf("SECKILL corrupt %s", names[at]))
			}
		}
	}
	return now, nil
}

// lending says whether a loan is on its way.
func lending(now []reading) bool {
	for _, r := range now {
		if r.lending > 0 {
			return true
		}
	}
	return false
}

// moved says whether a unit has left a segment for another one, or come from one.
// Both ends count: the segments are not read at the same moment, so a loan that
// begins and ends meanwhile may change only the end that is read later.
func moved(before, now []reading) bool {
	for i := range now {
		if before[i].moves != now[i].moves {
			return true
		}
	}
	return false
}

// freed says whether units have come back from holds or by an edit.
func freed(before, now []reading) bool {
	for i := range now {
		if before[i].frees != now[i].frees {
			return true
		}
	}
	return false
}

// free is how many units are available over all segments.
func free(now []reading) int64 {
	var units int64
	for _, r := range now {
		units += r.Available
	}
	return units
}
