package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"seckill/adapters/memory"
	"seckill/adapters/sqlstore"
	"seckill/adapters/system"
	"seckill/application"
	"seckill/domain"
)

const adminToken = "let-me-in"

// shop is a whole engine behind the handlers: memory stock and queue, and a
// ledger in an SQLite file.
type shop struct {
	t      *testing.T
	engine *application.Engine
	api    *API
	stock  *faultyStock
	store  *sqlstore.Store
	clock  *movableClock
	log    *syncBuffer
}

func newShop(t *testing.T, change ...func(*application.Config, *Config)) *shop {
	t.Helper()
	ctx := t.Context()
	db := sqlstore.Config{URL: "sqlite://" + filepath.Join(t.TempDir(), "ledger.db")}
	if err := sqlstore.Migrate(ctx, db, nil); err != nil {
		t.Fatal(err)
	}
	store, err := sqlstore.Open(ctx, db)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })

	s := &shop{t: t, store: store, clock: &movableClock{}, log: &syncBuffer{}}
	log := slog.New(slog.NewJSONHandler(s.log, nil))
	hot := memory.NewStock(s.clock)
	s.stock = &faultyStock{Stock: hot}
	engineConfig := application.Config{Log: log, Grace: 10 * time.Millisecond}
	config := Config{Log: log, Clock: s.clock, AdminToken: adminToken}
	for _, fn := range change {
		fn(&engineConfig, &config)
	}
	s.engine = application.New(application.Ports{
		Stock: s.stock, Queue: hot.Queue(), Orders: store, Outbox: store, DeadLetters: store,
		Activities: store, Lock: memory.NewLock(store, time.Second), Clock: s.clock, IDs: system.IDs{},
	}, engineConfig)
	s.api = New(s.engine, config)
	return s
}

// in is the same shop for a subtest.
func (s *shop) in(t *testing.T) *shop {
	part := *s
	part.t = t
	return &part
}

// consume brings queued orders into the ledger until the test ends.
func (s *shop) consume() {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			if _, err := s.persist(ctx); err != nil && ctx.Err() == nil {
				s.t.Errorf("persist: %v", err)
				return
			}
		}
	}()
	s.t.Cleanup(func() { cancel(); <-done })
}

func (s *shop) persist(ctx context.Context) (int, error) {
	n := 0
	for p := range s.engine.Queue.Partitions() {
		for _, take := range []func(context.Context, int, int) ([]domain.Delivery, error){
			s.engine.Queue.Reclaim, s.engine.Queue.Receive,
		} {
			deliveries, err := take(ctx, p, 100)
			if err != nil {
				return n, err
			}
			if len(deliveries) == 0 {
				continue
			}
			n += len(deliveries)
			if err := s.engine.Persist(context.WithoutCancel(ctx), deliveries); err != nil {
				return n, err
			}
		}
	}
	return n, nil
}

// sale puts activity 1001 with SKU 2001 on sale, by the operator's routes.
func (s *shop) sale(total, limit int) {
	s.t.Helper()
	s.save(1001, total, limit, "30m")
	s.operate("POST", "/api/admin/activities/1001/preheat", "").want(200)
	s.operate("POST", "/api/admin/activities/1001/open", "").want(200)
}

func (s *shop) save(activity, total, limit int, paymentWindow string) {
	s.t.Helper()
	now := s.clock.Now()
	s.operate("PUT", fmt.Sprintf("/api/admin/activities/%d", activity), fmt.Sprintf(
		`{"name":"Flash","startsAt":%q,"endsAt":%q,"paymentWindow":%q,"skus":[{"skuId":2001,"name":"Phone","total":%d,"perUserLimit":%d,"price":9900}]}`,
		now.Add(-time.Hour).Format(time.RFC3339), now.Add(time.Hour).Format(time.RFC3339), paymentWindow, total, limit)).want(200)
}

// grab grabs one unit and returns the order id.
func (s *shop) grab(buyer string) string {
	s.t.Helper()
	return s.buy("POST", "/api/seckill/order", fmt.Sprintf(`{"activityId":1001,"skuId":2001,"userId":%q}`, buyer)).
		want(202).text("orderId")
}

// placed grabs one unit and waits until the ledger has the order.
func (s *shop) placed(buyer string) string {
	s.t.Helper()
	id := s.grab(buyer)
	s.buy("GET", "/api/seckill/order/"+id+"?wait=10s", "", "X-User-Id", buyer).want(200).member("status", "pending_payment")
	return id
}

// levels is the account of the sale as the operator's report has it.
func (s *shop) levels() string {
	s.t.Helper()
	return s.operate("GET", "/api/admin/activities/1001/report", "").want(200).body
}

func (s *shop) buy(method, path, body string, headers ...string) *reply {
	s.t.Helper()
	return serve(s.t, s.api.Buyer(), method, path, body, headers...)
}

func (s *shop) operate(method, path, body string, headers ...string) *reply {
	s.t.Helper()
	return serve(s.t, s.api.Operator(), method, path, body, append([]string{"Authorization", "Bearer " + adminToken}, headers...)...)
}

// serve sends a request. A body is sent as JSON unless the headers say
// otherwise; a header whose value is "-" is left out.
func serve(t *testing.T, h http.Handler, method, path, body string, headers ...string) *reply {
	t.Helper()
	request := httptest.NewRequest(method, path, strings.NewReader(body))
	if body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	set := map[string]bool{}
	for i := 0; i < len(headers); i += 2 {
		if !set[headers[i]] {
			request.Header.Del(headers[i])
		}
		set[headers[i]] = true
		if headers[i+1] != "-" {
			request.Header.Add(headers[i], headers[i+1])
		}
	}
	recorder := httptest.NewRecorder()
	h.ServeHTTP(recorder, request)
	return &reply{t, method + " " + path + " " + body, recorder.Code, recorder.Header(), recorder.Body.String()}
}

type reply struct {
	t       *testing.T
	request string
	status  int
	header  http.Header
	body    string
}

func (r *reply) want(status int) *reply {
	r.t.Helper()
	if r.status != status {
		r.t.Fatalf("%s: got %d %s, want %d", r.request, r.status, r.body, status)
	}
	return r
}

func (r *reply) object() map[string]any {
	r.t.Helper()
	var object map[string]any
	if err := json.Unmarshal([]byte(r.body), &object); err != nil {
		r.t.Fatalf("%s: %q is no JSON object: %v", r.request, r.body, err)
	}
	return object
}

func (r *reply) text(name string) string {
	r.t.Helper()
	text, ok := r.object()[name].(string)
	if !ok {
		r.t.Fatalf("%s: %s has no text %q", r.request, r.body, name)
	}
	return text
}

// member wants a member to have a value; numbers are float64, absent is nil.
func (r *reply) member(name string, want any) *reply {
	r.t.Helper()
	if got := r.object()[name]; got != want {
		r.t.Errorf("%s: %s is %v in %s, want %v", r.request, name, got, r.body, want)
	}
	return r
}

// problem wants a problem document of a status and reason.
func (r *reply) problem(status int, reason string) *reply {
	r.t.Helper()
	r.want(status)
	if got := r.header.Get("Content-Type"); got != "application/problem+json" {
		r.t.Errorf("%s: Content-Type is %q", r.request, got)
	}
	r.member("type", "urn:seckill:"+reason).member("status", float64(status)).member("reason", reason)
	for _, name := range []string{"title", "detail"} {
		if r.text(name) == "" {
			r.t.Errorf("%s: %s is empty in %s", r.request, name, r.body)
		}
	}
	return r
}

// invalid wants a 400 that names a field.
func (r *reply) invalid(field string) *reply {
	r.t.Helper()
	return r.problem(400, "invalid").member("field", field)
}

func (r *reply) headerIs(name, want string) *reply {
	r.t.Helper()
	if got := r.header.Get(name); got != want {
		r.t.Errorf("%s: header %s is %q, want %q", r.request, name, got, want)
	}
	return r
}

// movableClock is the real time plus an offset.
type movableClock struct{ offset atomic.Int64 }

func (c *movableClock) Now() time.Time           { return time.Now().Add(time.Duration(c.offset.Load())) }
func (c *movableClock) advance(by time.Duration) { c.offset.Add(int64(by)) }

// faultyStock answers Reserve as it is told to.
type faultyStock struct {
	domain.Stock
	mu      sync.Mutex
	reserve func() ([]domain.Outcome, error)
}

func (f *faultyStock) answer(outcome domain.Outcome, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.reserve = func() ([]domain.Outcome, error) { return []domain.Outcome{outcome}, err }
}

func (f *faultyStock) heal() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.reserve = nil
}

func (f *faultyStock) Reserve(ctx context.Context, sale domain.SaleID, claims []domain.Claim) ([]domain.Outcome, error) {
	f.mu.Lock()
	reserve := f.reserve
	f.mu.Unlock()
	if reserve != nil {
		return reserve()
	}
	return f.Stock.Reserve(ctx, sale, claims)
}

// syncBuffer is a log that many may write.
type syncBuffer struct {
	mu   sync.Mutex
	data bytes.Buffer
}

var _ io.Writer = (*syncBuffer)(nil)

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.data.Write(p)
}

// lines returns the entries with a message.
func (b *syncBuffer) lines(t *testing.T, message string) []map[string]any {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	var found []map[string]any
	for line := range strings.Lines(b.data.String()) {
		var entry map[string]any
		if err := json.Unmarshal([]byte(line), &entry); err != nil {
			t.Fatalf("log line %q: %v", line, err)
		}
		if entry["msg"] == message {
			found = append(found, entry)
		}
	}
	return found
}
