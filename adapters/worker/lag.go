package worker

import (
	"context"
	"log/slog"
	"time"

	"seckill/domain"
)

// lagEvery is how often the queue's age is looked at.
const lagEvery = 5 * time.Second

// Lag says, at error level, when the oldest order that is not in the ledger has
// waited for longer than the limit, again every so often while it is so, and when
// it is over; until ctx ends. A queue that cannot be asked is others' to report.
func Lag(ctx context.Context, queue domain.OrderQueue, limit time.Duration, log *slog.Logger) {
	late := false
	for sleep(ctx, lagEvery) {
		depth, err := queue.Depth(ctx)
		switch {
		case err != nil:
		case depth.Oldest > limit:
			late = true
			log.Error("the ledger lags behind", "oldest", depth.Oldest.String(), "orders", depth.Orders)
		case late:
			late = false
			log.Warn("the ledger has caught up", "orders", depth.Orders)
		}
	}
}
