package redisstock

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// turnWait is how long a grab waits for those of its own process.
const turnWait = 5 * time.Second

// turns lets a few grabs of each sale work at a time, in this process; the
// others wait their turn in memory, where waiting costs Redis nothing.
type turns struct {
	size int // at a time

	mu     sync.Mutex
	bySale map[string]*turn
}

type turn struct {
	slots chan struct{}
	users int // who work or wait; guarded by the mutex of turns
}

// take waits for a turn at a sale. An error means that it took too long, and
// that nothing was done.
func (t *turns) take(ctx context.Context, keys saleKeys) (leave func(), err error) {
	t.mu.Lock()
	if t.bySale == nil {
		t.bySale = map[string]*turn{}
	}
	mine := t.bySale[keys.sale]
	if mine == nil {
		mine = &turn{slots: make(chan struct{}, t.size)}
		t.bySale[keys.sale] = mine
	}
	mine.users++
	t.mu.Unlock()

	ctx, cancel := context.WithTimeout(ctx, turnWait)
	defer cancel()
	select {
	case mine.slots <- struct{}{}:
		return func() {
			<-mine.slots
			t.done(keys, mine)
		}, nil
	case <-ctx.Done():
		t.done(keys, mine)
		return nil, unavailable(fmt.Errorf("too many grabs of sale %s wait: %w", keys.id, context.Cause(ctx)))
	}
}

func (t *turns) done(keys saleKeys, mine *turn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if mine.users--; mine.users == 0 {
		delete(t.bySale, keys.sale)
	}
}
