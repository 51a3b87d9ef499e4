package httpapi

import (
	"fmt"
	"io"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"seckill/application"
	"seckill/domain"
)

const adminPath = "/api/admin/activities/1001"

// covers A3
func TestOperatorToken(t *testing.T) {
	metrics := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "grabs 1") })
	with := func(token string) *shop {
		return newShop(t, func(_ *application.Config, c *Config) { c.Metrics, c.AdminToken = metrics, token })
	}
	routes := []string{
		"GET /metrics", "GET /debug/pprof", "GET /debug/pprof/", "GET /debug/pprof/goroutine", "GET /debug/pprof/cmdline", "GET /nowhere",
		"GET /api/admin/activities", "GET " + adminPath, "PUT " + adminPath, "GET " + adminPath + "/report",
		"POST " + adminPath + "/preheat", "POST " + adminPath + "/open", "POST " + adminPath + "/pause", "POST " + adminPath + "/resume",
		"POST " + adminPath + "/close", "POST " + adminPath + "/archive", "POST " + adminPath + "/reconcile",
		"GET " + adminPath + "/skus/2001/stock", "POST " + adminPath + "/skus/2001/stock",
		"GET /api/admin/dead-letters", "POST /api/admin/dead-letters/1/replay", "POST /api/admin/dead-letters/1/discard",
	}
	s, closed := with(adminToken), with("")
	for _, route := range routes {
		method, path, _ := strings.Cut(route, " ")
		for _, said := range []string{"-", "", "Bearer", "Bearer ", "Bearer wrong", "Bearer " + adminToken + "x", "Bearer  " + adminToken, "Basic " + adminToken, adminToken} {
			serve(t, s.api.Operator(), method, path, "", "Authorization", said).problem(401, "unauthenticated").headerIs("WWW-Authenticate", "Bearer")
		}
		for _, said := range []string{"-", "Bearer", "Bearer ", "Bearer " + adminToken} {
			serve(t, closed.api.Operator(), method, path, "", "Authorization", said).problem(401, "unauthenticated")
		}
		if r := s.operate(method, path, ""); r.status == 401 {
			t.Errorf("%s: %d with the token", route, r.status)
		}
	}
	serve(t, s.api.Operator(), "GET", "/metrics", "", "Authorization", "bearer "+adminToken).want(200)
	if got := s.operate("GET", "/metrics", "").want(200).body; got != "grabs 1" {
		t.Errorf("metrics: %s", got)
	}
	if got := s.operate("GET", "/debug/pprof/", "").want(200).body; !strings.Contains(got, "goroutine") {
		t.Errorf("profiles: %s", got)
	}
	s.operate("GET", "/debug/pprof/goroutine?debug=1", "").want(200)
	newShop(t).operate("GET", "/metrics", "").problem(404, "not_found")
}

// covers A3
func TestOperatorChangesAreAudited(t *testing.T) {
	s := newShop(t)
	s.sale(10, 1)
	s.operate("POST", adminPath+"/resume", "").want(200)
	s.operate("POST", adminPath+"/archive", "").problem(409, "wrong_state")
	s.operate("GET", adminPath+"/report", "").want(200)
	serve(t, s.api.Operator(), "POST", adminPath+"/close", "").want(401)
	var got []string
	for _, line := range s.log.lines(t, "operator change") {
		if line["remote"] != "192.0.2.1:1234" || line["level"] != "INFO" {
			t.Errorf("audit: %v", line)
		}
		got = append(got, fmt.Sprint(line["method"], " ", line["path"], " ", line["status"]))
	}
	want := []string{
		"PUT " + adminPath + " 200", "POST " + adminPath + "/preheat 200", "POST " + adminPath + "/open 200",
		"POST " + adminPath + "/resume 200", "POST " + adminPath + "/archive 409",
	}
	if !slices.Equal(got, want) {
		t.Errorf("audited %q, want %q", got, want)
	}
}

func TestSaveActivity(t *testing.T) {
	s := newShop(t, func(_ *application.Config, c *Config) { c.DefaultPaymentWindow = 20 * time.Minute })
	full := `{"name":"抢购","startsAt":"2030-01-02T11:04:05.6789+08:00","endsAt":"2030-01-02T04:04:05Z","paymentWindow":"15m","skus":[` +
		`{"skuId":2001,"name":"Phone","total":100,"perUserLimit":2,"price":9900,"segments":1},{"skuId":2002,"total":1}]}`
	r := s.operate("PUT", adminPath, full).want(200)
	want := map[string]any{
		"activityId": 1001.0, "name": "抢购", "state": "draft", "startsAt": "2030-01-02T03:04:05.678Z", "endsAt": "2030-01-02T04:04:05.000Z",
		"paymentWindow": "15m0s", "serverTime": r.object()["serverTime"],
		"skus": []any{
			map[string]any{"skuId": 2001.0, "name": "Phone", "total": 100.0, "perUserLimit": 2.0, "price": 9900.0, "segments": 1.0},
			map[string]any{"skuId": 2002.0, "name": "", "total": 1.0, "perUserLimit": 1.0, "price": 0.0, "segments": 1.0},
		},
	}
	if got := r.object(); !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	found := s.operate("GET", adminPath, "").want(200).object()
	want["serverTime"] = found["serverTime"]
	if !reflect.DeepEqual(found, want) {
		t.Errorf("found %v, want %v", found, want)
	}
	// What a later save leaves out is set to its default.
	r = s.operate("PUT", adminPath, `{"name":"B","startsAt":"2030-01-02T03:04:05Z","endsAt":"2030-01-03T00:00:00Z","skus":[{"skuId":2001,"total":7}]}`).want(200)
	r.member("paymentWindow", "20m0s").member("name", "B")
	if !strings.Contains(r.body, `"skus":[{"skuId":2001,"name":"","price":0,"total":7,"perUserLimit":1,"segments":1}]`) {
		t.Errorf("defaults: %s", r.body)
	}
	s.operate("GET", "/api/admin/activities/1002", "").problem(404, "not_found")
	if got := s.operate("GET", "/api/admin/activities", "").want(200).body; strings.Count(got, `"activityId"`) != 1 || !strings.HasPrefix(got, "[{") {
		t.Errorf("list: %s", got)
	}
}

// covers S7
func TestSaveActivityBadValues(t *testing.T) {
	s := newShop(t)
	s.save(1001, 10, 1, "30m")
	stored := func() string {
		body := s.operate("GET", adminPath, "").want(200).object()
		delete(body, "serverTime")
		return fmt.Sprint(body)
	}
	was := stored()
	notNames := []string{`""`, `" "`, `null`, `7`, `true`, `{}`, `[]`, `"a\u0000b"`, `"a\nb"`, `"\ud800"`, `"` + strings.Repeat("n", 201) + `"`}
	notTimes := []string{
		`""`, `null`, `1893456000`, `"2030-01-02"`, `"2030-01-02 03:04:05Z"`, `"2030-01-02T03:04:05"`, `"2030-13-02T03:04:05Z"`, `"tomorrow"`,
	}
	integers := func(more ...string) []string {
		return append(more, `-1`, `1.0`, `1.5`, `1e3`, `"1"`, `"0x10"`, `null`, `true`, `[]`, `{}`, `9007199254740992`, `99999999999999999999`)
	}
	for field, bad := range map[string][]string{
		"name":              notNames,
		"startsAt":          notTimes,
		"endsAt":            append(notTimes, `"2029-01-01T00:00:00Z"`, `"2030-01-02T00:00:00Z"`, `"2030-01-02T00:00:00.0009Z"`),
		"paymentWindow":     {`""`, `null`, `30`, `"30"`, `"-30m"`, `"0s"`, `"1ns"`, `"x"`, `"721h"`, `"999999999h"`},
		"skus":              {`null`, `{}`, `[]`, `"x"`, `[1]`, `[null]`, `[[]]`, manySKUs(101)},
		"skus.skuId":        integers(`0`),
		"skus.total":        integers(`0`),
		"skus.perUserLimit": integers(`0`),
		"skus.segments":     integers(`0`, `65`),
		"skus.price":        integers(),
		"skus.name":         {`null`, `7`, `"a\nb"`, `"` + strings.Repeat("n", 201) + `"`},
	} {
		for _, value := range bad {
			s.operate("PUT", adminPath, activityJSON(field, value)).invalid(field)
		}
	}
	for _, field := range []string{"name", "startsAt", "endsAt", "skus", "skus.skuId", "skus.total"} {
		s.operate("PUT", adminPath, activityJSON(field, "")).invalid(field)
	}
	// Unknown fields are refused here, and so is another spelling of a known one.
	for _, field := range []string{"state", "Name", "activityId", "skus.Total", "skus.stock"} {
		s.operate("PUT", adminPath, activityJSON(field, "1")).invalid(field)
	}
	s.operate("PUT", adminPath, `{"name":"A","startsAt":"2030-01-02T00:00:00Z","endsAt":"2030-01-03T00:00:00Z","skus":[{"skuId":1,"total":1},{"skuId":1,"total":1}]}`).
		invalid("skus.skuId")
	for _, body := range []string{"", "[]", "null", "{", "{}{}", "{\"name\":\"\xff\"}"} {
		s.operate("PUT", adminPath, body).invalid("body")
	}
	for _, id := range []string{"0", "-1", "1.0", "x", "01", "9007199254740992"} {
		s.operate("PUT", "/api/admin/activities/"+id, activityJSON("", "")).invalid("activityId")
		for _, route := range []string{"GET /", "GET /report", "POST /preheat", "POST /open", "POST /archive", "POST /reconcile"} {
			method, tail, _ := strings.Cut(route, " ")
			s.operate(method, strings.TrimSuffix("/api/admin/activities/"+id+tail, "/"), "").invalid("activityId")
		}
	}
	if is := stored(); is != was {
		t.Errorf("the activity was %s and is %s", was, is)
	}
	// Of a name that appears twice the last value counts.
	s.operate("PUT", adminPath, strings.Replace(activityJSON("", ""), "{", `{"name":7,"skus":null,`, 1)).want(200).member("name", "A")
}

// activityJSON is a good activity but for one field, which has the value, or
// is missing when the value is empty.
func activityJSON(field, value string) string {
	top := map[string]string{"name": `"A"`, "startsAt": `"2030-01-02T00:00:00Z"`, "endsAt": `"2030-01-03T00:00:00Z"`}
	sku := map[string]string{"skuId": "2001", "total": "10", "price": "1"}
	name, inSKU := strings.CutPrefix(field, "skus.")
	change := top
	if inSKU {
		change = sku
	}
	if name != "" {
		change[name] = value
		if value == "" {
			delete(change, name)
		}
	}
	if field != "skus" {
		top["skus"] = "[" + jsonOf(sku) + "]"
	}
	return jsonOf(top)
}

func manySKUs(n int) string {
	var skus []string
	for i := range n {
		skus = append(skus, fmt.Sprintf(`{"skuId":%d,"total":1}`, i+1))
	}
	return "[" + strings.Join(skus, ",") + "]"
}

// covers S3
func TestCommands(t *testing.T) {
	s := newShop(t)
	s.operate("POST", adminPath+"/preheat", "").problem(404, "not_found")
	s.operate("POST", adminPath+"/open", "").problem(404, "not_found")
	s.save(1001, 10, 1, "30m")
	s.operate("POST", adminPath+"/open", "").problem(409, "wrong_state")
	for _, step := range []struct{ command, state, grab string }{
		{"preheat", "ready", "not_started"},
		{"open", "open", ""},
		{"pause", "paused", "paused"},
		{"resume", "open", ""},
		{"resume", "open", ""},
		{"close", "closed", "ended"},
	} {
		s.operate("POST", adminPath+"/"+step.command, "").want(200).member("activityId", 1001.0).member("state", step.state)
		r := s.buy("POST", grabPath, seven)
		if step.grab != "" {
			r.problem(409, step.grab)
		}
		if r.status == 202 {
			s.consume()
			id := r.text("orderId")
			s.buy("GET", grabPath+"/"+id+"?wait=10s", "", "X-User-Id", "7").want(200)
			s.operate("POST", adminPath+"/preheat", "").problem(409, "has_holds")
			s.buy("POST", grabPath+"/"+id+"/cancel", "", "X-User-Id", "7").want(200)
		}
	}
	s.operate("POST", adminPath+"/archive", "{}").want(200).member("state", "archived")
	s.operate("POST", adminPath+"/preheat", "").problem(409, "wrong_state")
	s.operate("PUT", adminPath, activityJSON("", "")).problem(409, "wrong_state")
	for _, command := range []string{"preheat", "open", "archive"} {
		s.operate("POST", adminPath+"/"+command, `{"force":true}`).invalid("force")
		s.operate("POST", adminPath+"/"+command, `[]`).invalid("body")
	}
}

// covers N1, N3
func TestReportAndReconcile(t *testing.T) {
	s := newShop(t)
	s.operate("GET", adminPath+"/report", "").problem(404, "not_found")
	s.operate("POST", adminPath+"/reconcile", "").problem(404, "not_found")
	s.sale(10, 9)
	s.consume()
	paid, cancelled := s.placed("ann"), s.placed("ann")
	s.placed("ann")
	s.buy("POST", grabPath+"/"+paid+"/pay", `{"paymentId":"p"}`, "X-User-Id", "ann").want(200)
	s.buy("POST", grabPath+"/"+cancelled+"/cancel", "", "X-User-Id", "ann").want(200)
	want := `{"activityId":1001,"state":"open","balanced":true,"skus":[{"skuId":2001,"loaded":true,"total":10,"available":8,"held":1,"sold":1,"queued":0,` +
		`"ledger":{"pending":1,"paid":1,"cancelled":1,"expired":0,"rejected":0,"refundDue":0},"drift":0,"balanced":true}]}`
	if got := s.levels(); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	for _, body := range []string{"", `{}`, `{"repair":false}`, `{"repair":true}`} {
		if got := s.operate("POST", adminPath+"/reconcile", body).want(200).body; got != want {
			t.Errorf("reconcile %s: got  %s\nwant %s", body, got, want)
		}
	}
	for _, value := range []string{`null`, `1`, `"true"`, `{}`} {
		s.operate("POST", adminPath+"/reconcile", `{"repair":`+value+`}`).invalid("repair")
	}
	s.operate("POST", adminPath+"/reconcile", `{"repairs":true}`).invalid("repairs")
	s.operate("POST", adminPath+"/reconcile", `{"Repair":true}`).invalid("Repair")
}

// covers N3
func TestReconcileTellsRepairs(t *testing.T) {
	s := newShop(t)
	s.sale(10, 9)
	s.grab("ann")
	// The queue entry is acknowledged and its order is not in the ledger.
	deliveries, err := s.engine.Queue.Receive(t.Context(), 0, 10)
	if err != nil || len(deliveries) != 1 {
		t.Fatalf("%d deliveries, %v", len(deliveries), err)
	}
	if err := s.engine.Queue.Ack(t.Context(), deliveries...); err != nil {
		t.Fatal(err)
	}
	id := string(deliveries[0].Intents[0].Order)
	// It is not put right before somebody says so.
	for _, body := range []string{"", `{"repair":false}`} {
		r := s.operate("POST", adminPath+"/reconcile", body).want(200).member("balanced", false)
		if !strings.Contains(r.body, `"drift":1,"balanced":false`) || strings.Contains(r.body, "repairs") {
			t.Errorf("drift: %s", r.body)
		}
	}
	r := s.operate("POST", adminPath+"/reconcile", `{"repair":true}`).want(200)
	if want := fmt.Sprintf(`"repairs":[{"what":"requeued","orderId":%q,"units":1}]`, id); !strings.Contains(r.body, want) {
		t.Errorf("%s does not tell %s", r.body, want)
	}
	s.consume()
	s.buy("GET", grabPath+"/"+id+"?wait=10s", "", "X-User-Id", "ann").want(200).member("status", "pending_payment")
}

// covers Q6
func TestDeadLetters(t *testing.T) {
	s := newShop(t)
	s.sale(10, 9)
	s.consume()
	if got := s.operate("GET", "/api/admin/dead-letters", "").want(200).body; got != `{"deadLetters":[]}` {
		t.Errorf("none: %s", got)
	}
	sale := domain.SaleID{Activity: 1001, SKU: 2001}
	bury := func(unique string) string {
		id := domain.NewOrderID(sale, unique)
		letter := domain.DeadLetter{
			Intent:  domain.Intent{Order: id, Sale: sale, Buyer: "ann", Quantity: 2, Epoch: 1},
			Payload: "{}", Reason: "no luck",
		}
		if err := s.store.Bury(t.Context(), letter); err != nil {
			t.Fatal(err)
		}
		return string(id)
	}
	first, second := bury("a"), bury("b")
	if err := s.store.Bury(t.Context(), domain.DeadLetter{Payload: "junk", Reason: "no JSON"}); err != nil {
		t.Fatal(err)
	}
	list := s.operate("GET", "/api/admin/dead-letters", "").want(200).object()["deadLetters"].([]any)
	if len(list) != 3 {
		t.Fatalf("listed %v", list)
	}
	var ids []string
	for _, entry := range list {
		ids = append(ids, fmt.Sprint(entry.(map[string]any)["id"]))
	}
	got := list[0].(map[string]any)
	want := map[string]any{
		"id": got["id"], "orderId": first, "activityId": 1001.0, "skuId": 2001.0, "userId": "ann", "quantity": 2.0,
		"payload": "{}", "reason": "no luck", "createdAt": got["createdAt"],
	}
	if !reflect.DeepEqual(got, want) || got["createdAt"] == nil {
		t.Errorf("got %v, want %v", got, want)
	}
	if page := s.operate("GET", "/api/admin/dead-letters?limit=1&after="+ids[0], "").want(200).body; !strings.Contains(page, second) || strings.Contains(page, first) {
		t.Errorf("second page: %s", page)
	}

	s.operate("POST", "/api/admin/dead-letters/"+ids[0]+"/replay", "").want(200).member("orderId", first).member("status", "pending_payment")
	s.operate("POST", "/api/admin/dead-letters/"+ids[0]+"/replay", "").problem(404, "not_found")
	if r := s.operate("POST", "/api/admin/dead-letters/"+ids[1]+"/discard", "").want(204); r.body != "" {
		t.Errorf("discard: %s", r.body)
	}
	s.operate("POST", "/api/admin/dead-letters/"+ids[1]+"/discard", "").problem(404, "not_found")
	s.buy("GET", grabPath+"/"+second, "", "X-User-Id", "ann").want(200).member("status", "rejected").member("reason", "dead_letter")
	s.operate("POST", "/api/admin/dead-letters/"+ids[2]+"/replay", "").problem(409, "wrong_state")
	for _, bad := range []string{"0", "x", "-1", "1.0"} {
		s.operate("POST", "/api/admin/dead-letters/"+bad+"/replay", "").invalid("id")
		s.operate("POST", "/api/admin/dead-letters/"+bad+"/discard", "").invalid("id")
	}
	s.operate("POST", "/api/admin/dead-letters/"+ids[2]+"/discard", `{"why":1}`).invalid("why")
}
