package httpapi

import (
	"strings"
	"testing"
	"time"

	"seckill/domain"
)

// covers Q1
func TestOrderFromQueuedToPlaced(t *testing.T) {
	s := newShop(t)
	s.sale(10, 1)
	id := s.grab("ann")
	path := grabPath + "/" + id
	queued := s.buy("GET", path, "", "X-User-Id", "ann").want(200)
	queued.member("orderId", id).member("activityId", 1001.0).member("skuId", 2001.0).member("userId", "ann").
		member("quantity", 1.0).member("status", "queued")
	wantKeys(t, queued)
	for _, name := range []string{"expiresAt", "paidAt", "closedAt", "reason"} {
		queued.member(name, nil)
	}
	// While it is queued, nobody can decide about it.
	s.buy("POST", path+"/pay", `{"paymentId":"p-1"}`, "X-User-Id", "ann").problem(409, "order_queued").headerIs("Retry-After", "1")
	s.buy("POST", path+"/cancel", "", "X-User-Id", "ann").problem(409, "order_queued").headerIs("Retry-After", "1")
	// A wait that ends in vain is no error.
	s.buy("GET", path+"?wait=1ms", "", "X-User-Id", "ann").want(200).member("status", "queued")

	answered := make(chan *reply, 1)
	go func() { answered <- s.buy("GET", path+"?wait=30s", "", "X-User-Id", "ann") }()
	s.consume()
	select {
	case r := <-answered:
		r.want(200).member("status", "pending_payment").member("paidAt", nil).member("reason", nil)
		wantKeys(t, r)
		created, expires := timeOf(t, r, "createdAt"), timeOf(t, r, "expiresAt")
		if window := expires.Sub(created); window != 30*time.Minute {
			t.Errorf("the payment window is %s", window)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("the long poll did not hear of the commit")
	}
}

func wantKeys(t *testing.T, r *reply) {
	t.Helper()
	object := r.object()
	for _, name := range []string{"orderId", "activityId", "skuId", "userId", "quantity", "status", "createdAt", "expiresAt", "paidAt", "closedAt", "reason"} {
		if _, ok := object[name]; !ok {
			t.Errorf("%s lacks %s", r.body, name)
		}
	}
}

func timeOf(t *testing.T, r *reply, name string) time.Time {
	t.Helper()
	text := r.text(name)
	at, err := time.Parse("2006-01-02T15:04:05.000Z", text)
	if err != nil {
		t.Errorf("%s is %q: %v", name, text, err)
	}
	return at
}

func TestOrderWaitIsChecked(t *testing.T) {
	s := newShop(t)
	s.sale(10, 1)
	path := grabPath + "/" + s.grab("ann")
	for _, bad := range []string{"", "10", "x", "-1s", "31s", "30.001s", "1h", "1e3s", "NaN", "9999999999h"} {
		s.buy("GET", path+"?wait="+bad, "", "X-User-Id", "ann").invalid("wait")
	}
	for _, good := range []string{"0", "0s", "5ms"} {
		s.buy("GET", path+"?wait="+good, "", "X-User-Id", "ann").want(200)
	}
}

// covers P2
func TestPayAndCancel(t *testing.T) {
	s := newShop(t)
	s.sale(10, 9)
	s.consume()
	pay := func(s *shop, id, body string) *reply {
		return s.buy("POST", grabPath+"/"+id+"/pay", body, "X-User-Id", "ann")
	}
	cancel := func(s *shop, id, body string) *reply {
		return s.buy("POST", grabPath+"/"+id+"/cancel", body, "X-User-Id", "ann")
	}
	t.Run("paid", func(t *testing.T) {
		s := s.in(t)
		id := s.placed("ann")
		first := pay(s, id, `{"paymentId":"p-1","more":1}`).want(200).member("status", "paid").member("closedAt", nil)
		timeOf(t, first, "paidAt")
		wantKeys(t, first)
		if again := pay(s, id, `{"paymentId":"p-1"}`).want(200); again.body != first.body {
			t.Errorf("first %s, then %s", first.body, again.body)
		}
		for _, late := range []*reply{pay(s, id, `{"paymentId":"p-2"}`), cancel(s, id, "")} {
			order, ok := late.problem(409, "order_closed").object()["order"].(map[string]any)
			if !ok || order["status"] != "paid" || order["orderId"] != id {
				t.Errorf("%s does not tell the order", late.body)
			}
		}
	})
	t.Run("cancelled", func(t *testing.T) {
		s := s.in(t)
		id := s.placed("ann")
		first := cancel(s, id, "").want(200).member("status", "cancelled").member("paidAt", nil)
		timeOf(t, first, "closedAt")
		for _, body := range []string{"", `{}`, `{"why":"mind changed"}`} {
			if again := cancel(s, id, body).want(200); again.body != first.body {
				t.Errorf("first %s, then %s", first.body, again.body)
			}
		}
		pay(s, id, `{"paymentId":"p-3"}`).problem(409, "order_closed")
	})
	t.Run("expired", func(t *testing.T) { // covers P1, P5
		s := s.in(t)
		s.save(1001, 10, 9, "1ms")
		id := s.placed("ann")
		for deadline := time.Now().Add(10 * time.Second); ; {
			if _, err := s.engine.Expire(t.Context()); err != nil {
				t.Fatal(err)
			}
			r := s.buy("GET", grabPath+"/"+id, "", "X-User-Id", "ann").want(200)
			if r.text("status") == "expired" {
				timeOf(t, r, "closedAt")
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("%s has not expired", r.body)
			}
		}
		cancel(s, id, "").problem(409, "order_closed")
		pay(s, id, `{"paymentId":"p-4"}`).want(200).member("status", "paid")
	})
	t.Run("bad bodies", func(t *testing.T) {
		s := s.in(t)
		s.save(1001, 10, 9, "30m")
		id := s.placed("ann")
		for _, value := range []string{`""`, `null`, `7`, `true`, `{}`, `[]`, `"a b"`, `"é"`, `"` + strings.Repeat("p", 65) + `"`} {
			pay(s, id, `{"paymentId":`+value+`}`).invalid("paymentId")
		}
		pay(s, id, `{}`).invalid("paymentId")
		pay(s, id, `{"PaymentId":"p-5"}`).invalid("paymentId")
		pay(s, id, "").invalid("body")
		pay(s, id, `[]`).invalid("body")
		cancel(s, id, `[]`).invalid("body")
		cancel(s, id, `{`).invalid("body")
		s.buy("GET", grabPath+"/"+id, "", "X-User-Id", "ann").want(200).member("status", "pending_payment")
	})
}

// covers A2
func TestOrderIsItsBuyersOwn(t *testing.T) {
	s := newShop(t)
	s.sale(10, 1)
	queued := s.grab("eve")
	s.buy("GET", grabPath+"/"+queued, "", "X-User-Id", "ann").problem(404, "not_found")
	s.consume()
	id := s.placed("ann")
	unknown := domain.NewOrderID(domain.SaleID{Activity: 1001, SKU: 2001}, "nobody")
	for _, test := range []struct{ id, buyer string }{
		{id, "bob"}, {id, "ANN"}, {string(unknown), "ann"}, {id + "-late", "ann"}, {"nonsense", "ann"}, {"SK1001", "ann"}, {"SK0-1-a", "ann"},
	} {
		path := grabPath + "/" + test.id
		s.buy("GET", path, "", "X-User-Id", test.buyer).problem(404, "not_found").member("order", nil)
		s.buy("GET", path+"?wait=1ms", "", "X-User-Id", test.buyer).problem(404, "not_found")
		s.buy("POST", path+"/pay", `{"paymentId":"p-1"}`, "X-User-Id", test.buyer).problem(404, "not_found")
		s.buy("POST", path+"/cancel", "", "X-User-Id", test.buyer).problem(404, "not_found")
	}
	s.buy("GET", grabPath+"/"+id, "", "X-User-Id", "ann").want(200).member("status", "pending_payment")
}

func TestOrderNeedsABuyer(t *testing.T) {
	s := newShop(t)
	s.sale(10, 1)
	s.consume()
	path := grabPath + "/" + s.placed("ann")
	for _, ask := range []func(query string, headers ...string) *reply{
		func(query string, headers ...string) *reply { return s.buy("GET", path+query, "", headers...) },
		func(query string, headers ...string) *reply {
			return s.buy("POST", path+"/pay"+query, `{"paymentId":"p-1"}`, headers...)
		},
		func(query string, headers ...string) *reply {
			return s.buy("POST", path+"/cancel"+query, "", headers...)
		},
	} {
		ask("").problem(401, "unauthenticated")
		ask("?userid=ann").problem(401, "unauthenticated")
		ask("", "X-User-Id", "a b").invalid("userId")
		ask("", "X-User-Id", "").invalid("userId")
		ask("?userId=").invalid("userId")
		ask("?userId=a%00").invalid("userId")
		ask("?userId=" + strings.Repeat("u", 65)).invalid("userId")
		ask("?userId=bob", "X-User-Id", "ann").invalid("userId")
		ask("?userId=ann&userId=bob").invalid("userId")
		ask("", "X-User-Id", "ann", "X-User-Id", "bob").invalid("userId")
	}
	s.buy("GET", path+"?userId=ann", "").want(200).member("status", "pending_payment")
	s.buy("GET", path+"?userId=ann", "", "X-User-Id", "ann").want(200)
}
