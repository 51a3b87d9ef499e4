package httpapi

import (
	"testing"
	"time"
)

// covers Q8: a long poll does not keep a stopping process waiting.
func TestDrainEndsLongPolls(t *testing.T) {
	s := newShop(t)
	s.sale(10, 1)
	id := s.grab("ann") // stays queued: nobody consumes
	poll := func() <-chan *reply {
		answered := make(chan *reply, 1)
		go func() { answered <- s.buy("GET", "/api/seckill/order/"+id+"?wait=30s", "", "X-User-Id", "ann") }()
		return answered
	}
	before := poll()
	select {
	case <-before:
		t.Fatal("answered before the drain")
	case <-time.After(100 * time.Millisecond):
	}
	s.api.Drain()
	for name, answered := range map[string]<-chan *reply{"before the drain": before, "after it": poll()} {
		select {
		case r := <-answered:
			r.want(200).member("status", "queued")
		case <-time.After(10 * time.Second):
			t.Errorf("a long poll begun %s goes on", name)
		}
	}
}
