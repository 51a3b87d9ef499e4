package httpapi

import (
	"context"
	"sync/atomic"
	"time"
)

// deadlines bounds the time of requests that come by the ten thousand, where a
// timer for each would cost as much as reading its body. All requests of a
// short span share one context and one timer, so each has its bound up to a
// span early.
//
// Such a request does not end with its client: a grab that is on its way is
// finished anyhow, and a client that left may ask again.
type deadlines struct {
	most    time.Duration
	span    time.Duration
	current atomic.Pointer[deadline]
}

type deadline struct {
	context.Context
	cancel context.CancelFunc // kept, not called: the timer ends it
}

// of is a context that ends in time and has the values of parent.
func (d *deadlines) of(parent context.Context) context.Context {
	one := d.current.Load()
	for one == nil {
		d.renew()
		one = d.current.Load()
	}
	return bounded{one, parent}
}

func (d *deadlines) renew() {
	ctx, cancel := context.WithTimeout(context.Background(), d.most)
	one := &deadline{ctx, cancel}
	if !d.current.CompareAndSwap(nil, one) {
		cancel() // somebody was faster
		return
	}
	time.AfterFunc(d.span, func() { d.current.CompareAndSwap(one, nil) })
}

type bounded struct {
	context.Context
	values context.Context
}

// Value asks the deadline first: that is how contexts made of this one find the
// timer that they hang on.
func (b bounded) Value(key any) any {
	if value := b.Context.Value(key); value != nil {
		return value
	}
	return b.values.Value(key)
}
