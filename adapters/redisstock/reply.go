package redisstock

import (
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"

	"seckill/domain"
)

// reply is what a script returned.
type reply []any

// number is a whole number at a place, or an error where there is none.
func (r reply) number(place int) (int64, error) {
	if place < len(r) {
		if n, ok := r[place].(int64); ok {
			return n, nil
		}
	}
	return 0, unavailable(fmt.Errorf("script reply has no number at %d", place))
}

// text is a text at a place, "" where there is none.
func (r reply) text(place int) string {
	if place < len(r) {
		text, _ := r[place].(string)
		return text
	}
	return ""
}

// refusals are the first words of replies that are not "ok".
var refusals = map[string]error{
	"not_ready":  domain.ErrNotReady,
	"has_holds":  domain.ErrHasHolds,
	"fenced":     domain.ErrFenced,
	"state":      domain.ErrState,
	"conflict":   domain.ErrConflict,
	"unbalanced": domain.ErrUnbalanced,
}

// refusal is the domain's error for the reply's first word, nil for "ok".
func (r reply) refusal() error {
	word := r.text(0)
	if word == "ok" {
		return nil
	}
	if err, ok := refusals[word]; ok {
		return err
	}
	return unavailable(fmt.Errorf("script reply starts with %q", word))
}

// unavailable marks what the client or the server said as an ErrUnavailable:
// the outcome is unknown, and the call may be repeated. What a script says of a
// record that it cannot read is an ErrCorrupt as well.
func unavailable(err error) error {
	if strings.HasPrefix(err.Error(), "SECKILL corrupt") || redis.HasErrorPrefix(err, "WRONGTYPE") {
		return fmt.Errorf("redis: %w: %w: %w", domain.ErrUnavailable, domain.ErrCorrupt, err)
	}
	return fmt.Errorf("redis: %w: %w", domain.ErrUnavailable, err)
}
