package httpapi

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"seckill/application"
	"seckill/domain"
)

const grabPath = "/api/seckill/order"

const seven = `{"activityId":1001,"skuId":2001,"userId":7}`

// covers S4
func TestGrabOutcomes(t *testing.T) {
	t.Run("accepted", func(t *testing.T) {
		s := newShop(t)
		s.sale(10, 1)
		r := s.buy("POST", grabPath, seven).want(202).member("code", 1.0).member("status", "queued")
		id := r.text("orderId")
		if !strings.HasPrefix(id, "SK1001-2001-") {
			t.Errorf("order id %q does not name the sale", id)
		}
		r.headerIs("Location", "/api/seckill/order/"+id).headerIs("Idempotent-Replayed", "").
			headerIs("Content-Type", "application/json; charset=utf-8").headerIs("Cache-Control", "no-store")
		if got := len(r.object()); got != 3 {
			t.Errorf("%s has %d members, want 3", r.body, got)
		}
	})
	t.Run("accepted and committed", func(t *testing.T) { // covers Q9
		s := newShop(t, func(e *application.Config, _ *Config) { e.Accept = application.AcceptCommitted })
		s.sale(10, 1)
		s.consume()
		id := s.buy("POST", grabPath, seven).want(202).member("status", "queued").text("orderId")
		s.buy("GET", grabPath+"/"+id, "", "X-User-Id", "7").want(200).member("status", "pending_payment")
	})
	t.Run("sold out", func(t *testing.T) {
		s := newShop(t)
		s.sale(1, 1)
		s.grab("1")
		s.buy("POST", grabPath, seven).problem(409, "sold_out").member("code", 0.0)
	})
	t.Run("limit reached", func(t *testing.T) {
		s := newShop(t)
		s.sale(10, 1)
		s.grab("7")
		s.buy("POST", grabPath, seven).problem(409, "limit_reached").member("code", -2.0)
	})
	t.Run("not started", func(t *testing.T) {
		s := newShop(t)
		s.sale(10, 1)
		s.clock.advance(-2 * time.Hour)
		starts := s.buy("GET", "/api/seckill/activities/1001", "").want(200).text("startsAt")
		s.buy("POST", grabPath, seven).problem(409, "not_started").member("code", -3.0).member("startsAt", starts)
	})
	t.Run("not opened", func(t *testing.T) {
		s := newShop(t)
		s.save(1001, 10, 1, "30m")
		s.operate("POST", "/api/admin/activities/1001/preheat", "").want(200)
		s.buy("POST", grabPath, seven).problem(409, "not_started").member("code", -3.0)
	})
	t.Run("paused", func(t *testing.T) {
		s := newShop(t)
		s.sale(10, 1)
		s.operate("POST", "/api/admin/activities/1001/pause", "").want(200)
		s.buy("POST", grabPath, seven).problem(409, "paused").member("code", -3.0).member("startsAt", nil)
	})
	t.Run("ended", func(t *testing.T) {
		s := newShop(t)
		s.sale(10, 1)
		s.clock.advance(2 * time.Hour)
		s.buy("POST", grabPath, seven).problem(409, "ended").member("code", -3.0)
	})
	t.Run("unknown activity", func(t *testing.T) {
		newShop(t).buy("POST", grabPath, seven).problem(404, "unknown_sale").member("code", -1.0)
	})
	t.Run("unknown SKU", func(t *testing.T) {
		s := newShop(t)
		s.sale(10, 1)
		s.buy("POST", grabPath, `{"activityId":1001,"skuId":1,"userId":7}`).problem(404, "unknown_sale").member("code", -1.0)
	})
	t.Run("not ready", func(t *testing.T) {
		s := newShop(t)
		s.save(1001, 10, 1, "30m")
		s.buy("POST", grabPath, seven).problem(503, "not_ready").member("code", -1.0).headerIs("Retry-After", "1")
	})
	t.Run("request id reused", func(t *testing.T) { // covers T6
		s := newShop(t)
		s.sale(10, 5)
		s.buy("POST", grabPath, `{"activityId":1001,"skuId":2001,"userId":7,"requestId":"r","quantity":1}`).want(202)
		s.buy("POST", grabPath, `{"activityId":1001,"skuId":2001,"userId":7,"requestId":"r","quantity":2}`).
			problem(422, "request_id_reused").member("code", nil)
	})
}

// covers N6: whatever goes wrong, nobody hears "sold out" of it.
func TestGrabOutcomeUnknown(t *testing.T) {
	s := newShop(t)
	s.sale(10, 1)
	before := s.levels()
	for name, answer := range map[string]struct {
		outcome domain.Outcome
		err     error
	}{
		"unavailable":     {err: fmt.Errorf("reserve: %w", domain.ErrUnavailable)},
		"any other error": {err: errors.New("pool ran dry")},
		"a sentinel":      {err: domain.ErrNotReady},
		"not found":       {err: domain.ErrNotFound},
		"withdrawn":       {outcome: domain.Outcome{Verdict: domain.Withdrawn}},
		"no verdict":      {},
		"an unknown one":  {outcome: domain.Outcome{Verdict: 200}},
	} {
		t.Run(name, func(t *testing.T) {
			s := s.in(t)
			s.stock.answer(answer.outcome, answer.err)
			defer s.stock.heal()
			r := s.buy("POST", grabPath, seven)
			r.problem(503, "unavailable").member("code", nil).headerIs("Retry-After", "1")
			if strings.Contains(r.body, "pool ran dry") {
				t.Errorf("%s tells the buyer about the inside", r.body)
			}
			if answer.err == nil {
				return
			}
			id, err := domain.ParseOrderID(r.text("orderId"))
			if err != nil {
				t.Fatalf("order id of an unknown outcome: %v", err)
			}
			s.buy("GET", grabPath+"/"+string(id), "", "X-User-Id", "7").problem(404, "not_found")
		})
	}
	if after := s.levels(); after != before {
		t.Errorf("the account was %s and is %s", before, after)
	}
	s.grab("7") // it recovers by itself
}

// covers T6
func TestGrabReplay(t *testing.T) {
	s := newShop(t)
	s.sale(10, 2)
	body := `{"activityId":1001,"skuId":2001,"userId":"ann","quantity":2,"requestId":"r-1"}`
	first := s.buy("POST", grabPath, body).want(202).headerIs("Idempotent-Replayed", "")
	before := s.levels()
	plain := `{"activityId":1001,"skuId":2001,"userId":"ann","quantity":2}`
	for _, again := range []*reply{
		s.buy("POST", grabPath, body),
		s.buy("POST", grabPath, plain, "Idempotency-Key", "r-1"),
		s.buy("POST", grabPath, body, "Idempotency-Key", "r-1"),
		s.buy("POST", grabPath, plain, "Idempotency-Key", "r-1", "Idempotency-Key", "r-1"),
	} {
		again.want(202).headerIs("Idempotent-Replayed", "true").headerIs("Location", first.header.Get("Location"))
		if again.body != first.body {
			t.Errorf("first answer %s, then %s", first.body, again.body)
		}
	}
	s.buy("POST", grabPath, body, "Idempotency-Key", "r-2").invalid("requestId")
	s.buy("POST", grabPath, plain, "Idempotency-Key", "r-1", "Idempotency-Key", "r-2").invalid("requestId")
	for _, bad := range []string{"", "a b", "ä", strings.Repeat("k", 65), "a/b", "a,b"} {
		s.buy("POST", grabPath, plain, "Idempotency-Key", bad).invalid("requestId")
	}
	if after := s.levels(); after != before {
		t.Errorf("the account was %s and is %s", before, after)
	}
	// Another buyer's request id is another request.
	s.buy("POST", grabPath, `{"activityId":1001,"skuId":2001,"userId":"bob","requestId":"r-1"}`).want(202).headerIs("Idempotent-Replayed", "")
}

// covers S7, A6
func TestGrabBadValues(t *testing.T) {
	s := newShop(t)
	s.sale(10, 5)
	before := s.levels()
	long := strings.Repeat("u", 65)
	badIDs := []string{
		`0`, `-1`, `-0`, `1.0`, `1.5`, `1e3`, `1E3`, `10e-1`, `9007199254740992`, `9223372036854775808`,
		`99999999999999999999999999`, `"1001"`, `"1e3"`, `"NaN"`, `"0x10"`, `""`, `true`, `false`, `null`, `{}`, `[]`, `[1001]`,
	}
	badNames := []string{
		`""`, `" "`, `"a b"`, `"a:b"`, `"{a}"`, `"a/b"`, `"é"`, `"a\n"`, `"a\u0000"`, `"\ud800"`, `"` + long + `"`,
		`null`, `true`, `{}`, `[]`, `-1`, `-0`, `1.0`, `1.5`, `1e3`, `9007199254740992`,
	}
	for field, bad := range map[string][]string{
		"activityId": badIDs,
		"skuId":      badIDs,
		"userId":     badNames,
		"requestId":  append(badNames, `0`, `7`),
		"quantity":   append(badIDs, `1001`, `"1"`),
	} {
		for _, value := range bad {
			members := map[string]string{"activityId": "1001", "skuId": "2001", "userId": "7", "quantity": "1", "requestId": `"r"`}
			members[field] = value
			s.buy("POST", grabPath, jsonOf(members)).invalid(field)
		}
	}
	for _, field := range []string{"activityId", "skuId", "userId"} {
		members := map[string]string{"activityId": "1001", "skuId": "2001", "userId": "7"}
		delete(members, field)
		s.buy("POST", grabPath, jsonOf(members)).invalid(field)
		// Names match exactly, so this one is missing too.
		members[strings.ToUpper(field)] = "7"
		s.buy("POST", grabPath, jsonOf(members)).invalid(field)
	}
	// Not a number of JSON at all.
	for _, value := range []string{`NaN`, `Infinity`, `0x10`, `01`, `+1`, `1_000`, `.5`, `1.`, `'1'`} {
		s.buy("POST", grabPath, jsonOf(map[string]string{"activityId": value, "skuId": "2001", "userId": "7"})).invalid("body")
	}
	// A buyer in a header is none: the grab's is in the body.
	s.buy("POST", grabPath, `{"activityId":1001,"skuId":2001}`, "X-User-Id", "7").invalid("userId")
	if after := s.levels(); after != before {
		t.Errorf("the account was %s and is %s", before, after)
	}
}

func TestGrabBadBodies(t *testing.T) {
	s := newShop(t)
	s.sale(10, 5)
	before := s.levels()
	for _, body := range []string{
		`{`, `}`, `null`, `[]`, `[` + seven + `]`, `"text"`, `7`, `true`, ` `, seven + `x`, seven + seven, seven + `,`,
		`{"activityId":1001,"skuId":2001,"userId":7,}`, `{activityId:1001}`, "\xef\xbb\xbf" + seven,
		`{"activityId":1001,"skuId":2001,"userId":"` + "\xff" + `"}`, `{"activityId":1001,"skuId":2001,"userId":7,"note":"` + "\xc3" + `"}`,
		strings.Repeat(`{"a":`, 11_000) + `1` + strings.Repeat(`}`, 11_000)[:10],
	} {
		s.buy("POST", grabPath, body).invalid("body")
	}
	s.buy("POST", grabPath, "").invalid("body")
	s.buy("POST", grabPath, "", "Content-Type", "application/json").invalid("body")
	if after := s.levels(); after != before {
		t.Errorf("the account was %s and is %s", before, after)
	}
}

func TestGrabGoodBodies(t *testing.T) {
	s := newShop(t)
	s.sale(1000, 1000)
	for _, test := range []struct {
		body     string
		buyer    string
		quantity float64
	}{
		{seven, "7", 1},
		{`{"activityId":1001,"skuId":2001,"userId":"7"}`, "7", 1},
		{`{"activityId":1001,"skuId":2001,"userId":0}`, "0", 1},
		{`{"activityId":1001,"skuId":2001,"userId":9007199254740991}`, "9007199254740991", 1},
		{`{"activityId":1001,"skuId":2001,"userId":"007"}`, "007", 1},
		{`{"activityId":1001,"skuId":2001,"userId":"A.z_9@-"}`, "A.z_9@-", 1},
		{`{"activityId":1001,"skuId":2001,"userId":"\u0061nn"}`, "ann", 1},
		{"\r\n\t {\n \"activityId\" : 1001 ,\t\"skuId\":\r2001 , \"userId\" : 7 , \"quantity\" : 3 }\n ", "7", 3},
		{`{"activityId":1001,"skuId":2001,"userId":7,"quantity":500}`, "7", 500},
		{`{"activityId":1001,"skuId":2001,"userId":"` + strings.Repeat("u", 64) + `"}`, strings.Repeat("u", 64), 1},
		// Unknown fields are ignored, whatever they hold; so is another spelling of a known one.
		{`{"activityId":1001,"skuId":2001,"userId":7,"x":{"userId":8},"USERID":9,"Quantity":5,"":null}`, "7", 1},
		// Of a name that appears twice the last value counts, whatever the others hold.
		{`{"activityId":1,"skuId":2,"userId":8,"quantity":"x","activityId":1001,"skuId":2001,"userId":"bob","quantity":2}`, "bob", 2},
	} {
		id := s.buy("POST", grabPath, test.body).want(202).text("orderId")
		s.buy("GET", grabPath+"/"+id, "", "X-User-Id", test.buyer).want(200).member("quantity", test.quantity).member("userId", test.buyer)
	}
	s.buy("POST", grabPath, `{"activityId":1001,"skuId":2001,"userId":7,"userId":null}`).invalid("userId")
}

// covers S5, S6: exactly as many buyers hear 202 as there are units.
func TestGrabCrowd(t *testing.T) {
	const buyers, units = 200, 20
	s := newShop(t)
	s.sale(units, 1)
	s.consume()
	var accepted, soldOut atomic.Int64
	var crowd sync.WaitGroup
	for i := range buyers {
		crowd.Go(func() {
			r := s.buy("POST", grabPath, fmt.Sprintf(`{"activityId":1001,"skuId":2001,"userId":%d}`, i))
			switch r.status {
			case http.StatusAccepted:
				accepted.Add(1)
			case http.StatusConflict:
				soldOut.Add(1)
			default:
				t.Errorf("%s: %d %s", r.request, r.status, r.body)
			}
		})
	}
	crowd.Wait()
	if accepted.Load() != units || soldOut.Load() != buyers-units {
		t.Errorf("%d accepted and %d sold out, want %d and %d", accepted.Load(), soldOut.Load(), units, buyers-units)
	}
	s.operate("GET", "/api/admin/activities/1001/report", "").want(200).member("balanced", true)
}

func jsonOf(members map[string]string) string {
	var parts []string
	for name, value := range members {
		parts = append(parts, fmt.Sprintf("%q:%s", name, value))
	}
	return "{" + strings.Join(parts, ",") + "}"
}
