package application

import (
	"context"
	"sync"

	"seckill/domain"
)

// events tells subscribers of this process what becomes of orders.
type events struct {
	mu   sync.RWMutex
	list []domain.Subscriber
}

// Subscribe has fn called for every order event that this process handles: at
// least once; see domain.Event for their order. An error has the event delivered
// again. Subscribe before the workers start; there is no way to unsubscribe.
func (e *Engine) Subscribe(fn domain.Subscriber) {
	e.events.mu.Lock()
	defer e.events.mu.Unlock()
	e.events.list = append(e.events.list, fn)
}

// publish returns the first subscriber's error; the ones after it have not heard.
func (e *Engine) publish(ctx context.Context, order domain.Order) error {
	e.waits.tell(order)
	e.events.mu.RLock()
	list := e.events.list
	e.events.mu.RUnlock()
	for _, fn := range list {
		if err := fn(ctx, domain.Event{Order: order}); err != nil {
			return err
		}
	}
	return nil
}
