package redisstock

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/sony/gobreaker/v2"
)

const (
	// breakerFailures in a row open a partition's breaker; a single time-out does.
	breakerFailures = 3
	// breakerPause is how long it stays open before one call tries again.
	breakerPause = 200 * time.Millisecond
)

// breaker refuses the grabs of a partition at once while its server does not
// answer: else each would wait for the time-out, and those behind it for theirs.
type breaker struct {
	limit    time.Duration // of a call
	state    *gobreaker.CircuitBreaker[struct{}]
	timedOut atomic.Bool
}

func newBreaker(partition int, limit time.Duration, log *slog.Logger) *breaker {
	b := &breaker{limit: limit}
	b.state = gobreaker.NewCircuitBreaker[struct{}](gobreaker.Settings{
		Name:    strconv.Itoa(partition),
		Timeout: breakerPause,
		ReadyToTrip: func(counts gobreaker.Counts) bool {
			return b.timedOut.Swap(false) || counts.ConsecutiveFailures >= breakerFailures
		},
		// A caller that left says nothing of the server.
		IsExcluded: func(err error) bool { return errors.Is(err, context.Canceled) },
		OnStateChange: func(partition string, from, to gobreaker.State) {
			b.timedOut.Store(false)
			log.Warn("breaker of the hot store", "partition", partition, "from", from.String(), "to", to.String())
		},
	})
	return b
}

// do makes a call within the limit, or none.
func (b *breaker) do(ctx context.Context, call func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, b.limit)
	defer cancel()
	_, err := b.state.Execute(func() (struct{}, error) {
		err := call(ctx)
		if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
			b.timedOut.Store(true)
		}
		return struct{}{}, err
	})
	if errors.Is(err, gobreaker.ErrOpenState) || errors.Is(err, gobreaker.ErrTooManyRequests) {
		return unavailable(err)
	}
	return err
}
