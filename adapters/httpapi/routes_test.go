package httpapi

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/gin-gonic/gin"

	"seckill/application"
	"seckill/domain"
)

func TestNoSuchRoute(t *testing.T) {
	s := newShop(t)
	for _, path := range []string{
		"/", "/api", "/api/seckill", "/api/seckill/order/", "/api/seckill/order/x/refund", "/api/seckill/activities/", "/favicon.ico",
		// The operators' routes are not here. covers A3
		"/metrics", "/debug/pprof", "/debug/pprof/", "/debug/pprof/heap", "/api/admin/activities", "/api/admin/activities/1001",
		"/api/admin/activities/1001/report", "/api/admin/dead-letters",
	} {
		s.buy("GET", path, "", "Authorization", "Bearer "+adminToken).problem(404, "not_found")
	}
	s.buy("PUT", "/api/admin/activities/1001", "{}", "Authorization", "Bearer "+adminToken).problem(404, "not_found")
	s.operate("GET", "/api/seckill/activities", "").problem(404, "not_found")
	s.operate("POST", "/api/admin/activities/1001/explode", "").problem(404, "not_found")
}

func TestWrongMethod(t *testing.T) {
	s := newShop(t)
	s.buy("GET", grabPath, "").problem(405, "invalid").headerIs("Allow", "POST")
	s.buy("DELETE", grabPath+"/SK1-1-a", "").problem(405, "invalid").headerIs("Allow", "GET")
	s.buy("POST", "/api/seckill/activities", "{}").problem(405, "invalid")
	s.operate("GET", "/api/admin/activities/1001/open", "").problem(405, "invalid").headerIs("Allow", "POST")
}

func TestContentType(t *testing.T) {
	s := newShop(t)
	s.sale(10, 9)
	before := s.levels()
	for _, bad := range []string{"-", "", "text/plain", "application/x-www-form-urlencoded", "application/jsonx", "text/json", "application/json; q", "json", "application/json; charset=utf-16"} {
		s.buy("POST", grabPath, seven, "Content-Type", bad).problem(415, "invalid")
		s.operate("POST", "/api/admin/activities/1001/reconcile", `{"repair":true}`, "Content-Type", bad).problem(415, "invalid")
	}
	s.buy("POST", grabPath, seven, "Content-Encoding", "gzip").problem(415, "invalid")
	if after := s.levels(); after != before {
		t.Errorf("the account was %s and is %s", before, after)
	}
	for _, good := range []string{"application/json", "application/json; charset=utf-8", "Application/JSON;charset=UTF-8"} {
		s.buy("POST", grabPath, seven, "Content-Type", good).want(202)
	}
}

// covers T5
func TestBodyLimit(t *testing.T) {
	s := newShop(t, func(_ *application.Config, c *Config) { c.MaxBody = 1000 })
	s.sale(10, 9)
	padded := func(size int) string {
		return strings.Replace(seven, "{", `{"pad":"`+strings.Repeat("x", size-len(seven)-len(`"pad":"",`))+`",`, 1)
	}
	s.buy("POST", grabPath, padded(1000)).want(202)
	before := s.levels()
	s.buy("POST", grabPath, padded(1001)).problem(413, "invalid").headerIs("Connection", "close").
		member("detail", "body is too large: at most 1000 bytes are read")
	s.buy("POST", grabPath, padded(1001), "Content-Type", "text/plain").problem(413, "invalid")
	s.operate("POST", "/api/admin/activities/1001/reconcile", strings.Repeat(" ", operatorMaxBody+1)).problem(413, "invalid")
	if after := s.levels(); after != before {
		t.Errorf("the account was %s and is %s", before, after)
	}
	if got := newShop(t).api.cfg.MaxBody; got != 64<<10 {
		t.Errorf("the default limit is %d bytes", got)
	}
}

// A real connection: the server answers without reading an endless body, and hangs up.
func TestBodyLimitOnTheWire(t *testing.T) {
	s := newShop(t)
	server := httptest.NewUnstartedServer(nil)
	server.Config = Server("", s.api.Buyer())
	server.Start()
	defer server.Close()
	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n", grabPath)
	go func() {
		chunk := fmt.Sprintf("%x\r\n%s\r\n", 8<<10, strings.Repeat(" ", 8<<10))
		for {
			if _, err := io.WriteString(conn, chunk); err != nil {
				return // hung up, as it should
			}
		}
	}()
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusRequestEntityTooLarge || !response.Close {
		t.Errorf("status %d, close %v", response.StatusCode, response.Close)
	}
}

func TestPanicIsAProblem(t *testing.T) {
	s := newShop(t)
	s.api.buyers.GET("/panic", func(*gin.Context) { panic("boom") })
	s.api.operator.POST("/panic", func(*gin.Context) { panic("boom") })
	r := s.buy("GET", "/panic", "").problem(500, "internal")
	if strings.Contains(r.body, "boom") {
		t.Errorf("%s tells about the inside", r.body)
	}
	s.operate("POST", "/panic", "").problem(500, "internal")
	lines := s.log.lines(t, "panic in a request")
	if len(lines) != 2 || lines[0]["panic"] != "boom" || !strings.Contains(lines[0]["stack"].(string), "routes_test.go") {
		t.Errorf("log: %v", lines)
	}
	audit := s.log.lines(t, "operator change")
	if len(audit) != 1 || audit[0]["status"] != 500.0 {
		t.Errorf("audit: %v", audit)
	}
}

func TestProbes(t *testing.T) {
	var failure error
	s := newShop(t, func(_ *application.Config, c *Config) {
		c.Ready = func(ctx context.Context) error {
			if _, bounded := ctx.Deadline(); !bounded {
				return errors.New("a check without a bound")
			}
			return failure
		}
	})
	for _, h := range []http.Handler{s.api.Buyer(), s.api.Operator()} {
		failure = nil
		serve(t, h, "GET", "/healthz", "").want(200).member("status", "ok")
		serve(t, h, "GET", "/readyz", "").want(200)
		failure = errors.New("redis at 10.0.0.1 is away")
		serve(t, h, "GET", "/healthz", "").want(200)
		r := serve(t, h, "GET", "/readyz", "").problem(503, "unavailable").headerIs("Retry-After", "1")
		if strings.Contains(r.body, "10.0.0.1") {
			t.Errorf("%s tells about the inside", r.body)
		}
	}
	serve(t, newShop(t).api.Buyer(), "GET", "/readyz", "").want(200)
}

// A long poll must outlive neither the read nor the write deadline.
// covers T5
func TestServerBounds(t *testing.T) {
	server := Server("127.0.0.1:0", http.NotFoundHandler())
	if server.ReadTimeout <= application.MaxWait || server.WriteTimeout <= application.MaxWait {
		t.Errorf("read %s and write %s cut a long poll of %s off", server.ReadTimeout, server.WriteTimeout, application.MaxWait)
	}
	if server.ReadHeaderTimeout == 0 || server.ReadHeaderTimeout > 10*time.Second || server.IdleTimeout == 0 || server.MaxHeaderBytes == 0 {
		t.Errorf("unbounded: %+v", server)
	}
}

func TestForwardedHeadersAreNotBelieved(t *testing.T) {
	s := newShop(t)
	s.api.buyers.GET("/ip", func(c *gin.Context) { c.String(200, c.ClientIP()) })
	if got := s.buy("GET", "/ip", "", "X-Forwarded-For", "9.9.9.9", "X-Real-Ip", "9.9.9.9").want(200).body; got == "9.9.9.9" {
		t.Error("a client chose its own address")
	}
}

func TestActivities(t *testing.T) {
	s := newShop(t)
	if got := s.buy("GET", "/api/seckill/activities", "").want(200).body; got != "[]" {
		t.Errorf("no activities: %s", got)
	}
	s.buy("GET", "/api/seckill/activities/1001", "").problem(404, "not_found")
	s.sale(1, 2)
	s.save(1002, 5, 1, "30m")
	s.save(1003, 5, 1, "30m") // stays a draft, which buyers do not see in the list
	s.operate("POST", "/api/admin/activities/1002/preheat", "").want(200)
	r := s.buy("GET", "/api/seckill/activities/1001", "").want(200)
	r.member("activityId", 1001.0).member("name", "Flash").member("state", "open")
	starts, ends, now := timeOf(t, r, "startsAt"), timeOf(t, r, "endsAt"), timeOf(t, r, "serverTime")
	if !starts.Before(now) || !now.Before(ends) || ends.Sub(starts) != 2*time.Hour {
		t.Errorf("from %s to %s, now %s", starts, ends, now)
	}
	want := `"skus":[{"skuId":2001,"name":"Phone","price":9900,"perUserLimit":2,"soldOut":false}]}`
	if !strings.HasSuffix(r.body, want) {
		t.Errorf("got %s, want %s at the end", r.body, want)
	}
	s.grab("ann")
	if r := s.buy("GET", "/api/seckill/activities/1001", ""); !strings.Contains(r.body, `"soldOut":true`) {
		t.Errorf("sold out: %s", r.body)
	}
	for query, want := range map[string]int{"": 2, "?after=0": 2, "?after=1001": 1, "?after=1002": 0, "?limit=1": 1, "?limit=100": 2} {
		if got := strings.Count(s.buy("GET", "/api/seckill/activities"+query, "").want(200).body, `"activityId"`); got != want {
			t.Errorf("%q lists %d activities, want %d", query, got, want)
		}
	}
	for _, bad := range []string{"", "0", "-1", "101", "1.5", "x", "1e2"} {
		s.buy("GET", "/api/seckill/activities?limit="+bad, "").invalid("limit")
	}
	for _, bad := range []string{"", "-1", "x", "1.0", "01", "%2B1", "9007199254740992"} {
		s.buy("GET", "/api/seckill/activities?after="+bad, "").invalid("after")
	}
	for _, bad := range []string{"0", "-1", "x", "1.0", "01", "9007199254740992", "%20"} {
		s.buy("GET", "/api/seckill/activities/"+bad, "").invalid("activityId")
	}
}

// An order's closing is told with the order, whatever the store's words were.
func TestClosedOrderIsShown(t *testing.T) {
	err := fmt.Errorf("pay: %w", &domain.ClosedError{Order: domain.Order{ID: "SK1-2-a", Status: domain.Expired, Reason: "r"}})
	p := answerTo(err).problem(err)
	if p.Status != 409 || p.Order == nil || p.Order.Status != domain.Expired || *p.Order.Reason != "r" {
		t.Errorf("%+v", p)
	}
}
