package worker_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"seckill/adapters/worker"
	"seckill/domain"
)

// agingQueue has an order that has waited since a moment, for a minute.
type agingQueue struct {
	domain.OrderQueue
	since time.Time
}

func (q agingQueue) Depth(context.Context) (domain.Depth, error) {
	if age := time.Since(q.since); age < time.Minute {
		return domain.Depth{Orders: 1, Oldest: age}, nil
	}
	return domain.Depth{}, nil
}

// covers N4
func TestLagIsAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var text bytes.Buffer
		log := slog.New(slog.NewTextHandler(&text, nil))
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		worker.Lag(ctx, agingQueue{since: time.Now()}, 30*time.Second, log)
		errors, over := strings.Count(text.String(), "level=ERROR"), strings.Count(text.String(), "caught up")
		if errors != 5 || over != 1 { // at 35, 40, 45, 50 and 55 s
			t.Errorf("%d errors, %d ends:\n%s", errors, over, text.String())
		}
	})
}
