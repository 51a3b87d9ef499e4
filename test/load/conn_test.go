package main

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestParseAnswer(t *testing.T) {
	const body = `{"code":1,"orderId":"SK1-2-a","status":"queued"}`
	text := fmt.Sprintf("HTTP/1.1 202 Accepted\r\nContent-Type: application/json\r\nContent-Length: %d\r\nDate: x\r\n\r\n%s", len(body), body)
	for cut := range len(text) {
		if _, _, whole, err := parseAnswer([]byte(text[:cut])); whole || err != nil {
			t.Fatalf("%d of %d bytes: whole %v, %v", cut, len(text), whole, err)
		}
	}
	status, got, whole, err := parseAnswer([]byte(text))
	if status != 202 || string(got) != body || !whole || err != nil {
		t.Errorf("%d %q %v %v", status, got, whole, err)
	}
	for _, bad := range []string{"SSH-2.0-x\r\n\r\n", "HTTP/1.1 202 Accepted\r\nTransfer-Encoding: chunked\r\n\r\n"} {
		if _, _, _, err := parseAnswer([]byte(bad)); err == nil {
			t.Errorf("%q is taken for an answer", bad)
		}
	}
}

// Every answer is looked at: status and body.
func TestAnswersAreChecked(t *testing.T) {
	accepted := `{"code":1,"orderId":"SK1-2-a","status":"queued"}`
	soldOut := `{"type":"urn:seckill:sold_out","status":409,"reason":"sold_out","code":0}`
	limit := strings.NewReplacer("sold_out", "limit_reached", `"code":0`, `"code":-2`).Replace(soldOut)
	for _, test := range []struct {
		want   string
		status int
		body   string
		ok     bool
	}{
		{"accepted", 202, accepted, true},
		{"accepted", 200, accepted, false},
		{"accepted", 202, accepted[:len(accepted)-1], false},
		{"accepted", 409, soldOut, false},
		{"accepted", 202, "", false},
		{"sold_out", 409, soldOut, true},
		{"sold_out", 503, soldOut, false},
		{"sold_out", 409, limit, false},
		{"sold_out", 202, accepted, false},
	} {
		check, err := checkFor(test.want)
		if err != nil {
			t.Fatal(err)
		}
		if check(test.status, []byte(test.body)) != test.ok {
			t.Errorf("%d %s as %s: want %v", test.status, test.body, test.want, test.ok)
		}
	}
	if _, err := checkFor("anything"); err == nil {
		t.Error("an unknown wish is no error")
	}
}

func TestPercentiles(t *testing.T) {
	var all latencies
	for i := range 1000 {
		all.add(time.Duration(i+1) * time.Millisecond)
	}
	sorted := merge([]latencies{all[500:], all[:500]})
	for p, want := range map[int]time.Duration{0: 1, 50: 500, 99: 990, 100: 1000} {
		if got := sorted.percentile(p); got != want*time.Millisecond {
			t.Errorf("p%d is %v, want %v ms", p, got, int64(want))
		}
	}
	if got := median([]float64{3, 1, 2}); got != 2 {
		t.Errorf("median %v", got)
	}
}
