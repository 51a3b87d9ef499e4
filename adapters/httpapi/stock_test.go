package httpapi

import (
	"strings"
	"testing"
)

const stockPath = adminPath + "/skus/2001/stock"

// covers S13
func TestEditStock(t *testing.T) {
	s := newShop(t)
	s.sale(10, 1)
	s.grab("alice")
	s.operate("POST", stockPath, `{"delta":-9,"reason":"a broken pallet"}`, "Idempotency-Key", "k-1").want(200).
		member("delta", -9.0).member("reason", "a broken pallet").member("total", 1.0).member("key", "k-1")
	s.buy("POST", "/api/seckill/order", `{"activityId":1001,"skuId":2001,"userId":"bob"}`).problem(409, "sold_out")
	s.operate("POST", stockPath, `{"delta":-1,"reason":"one more"}`).problem(409, "unbalanced").member("field", "delta")
	s.operate("POST", stockPath, `{"delta":3,"reason":"found some"}`).want(200).member("total", 4.0)
	s.grab("bob")
	list := s.operate("GET", stockPath, "").want(200).body
	if !strings.HasPrefix(list, `[{"activityId":1001,"skuId":2001,"delta":3,"reason":"found some","key":"`) || strings.Count(list, "skuId") != 2 {
		t.Errorf("edits: %s", list)
	}
}

func TestEditStockBadValues(t *testing.T) {
	s := newShop(t)
	s.sale(10, 1)
	for _, delta := range []string{`0`, `-0`, `1.5`, `1e3`, `"1"`, `null`, `true`, `9007199254740992`, `-9007199254740992`, `--1`, `+1`} {
		s.operate("POST", stockPath, `{"delta":`+delta+`,"reason":"x"}`).want(400)
	}
	s.operate("POST", stockPath, `{"reason":"x"}`).invalid("delta")
	s.operate("POST", stockPath, `{"delta":0,"reason":"x"}`).invalid("delta")
	s.operate("POST", stockPath, `{"delta":1}`).invalid("reason")
	for _, reason := range []string{`""`, `" "`, `7`, `null`, `"a\nb"`, `"` + strings.Repeat("n", 201) + `"`} {
		s.operate("POST", stockPath, `{"delta":1,"reason":`+reason+`}`).invalid("reason")
	}
	s.operate("POST", stockPath, `{"delta":1,"reason":"x","why":1}`).invalid("why")
	s.operate("POST", stockPath, `{"delta":1,"reason":"x"}`, "Idempotency-Key", "a b").invalid("Idempotency-Key")
	s.operate("POST", adminPath+"/skus/0/stock", `{"delta":1,"reason":"x"}`).invalid("skuId")
	s.operate("POST", adminPath+"/skus/7/stock", `{"delta":1,"reason":"x"}`).problem(404, "not_found")
	s.operate("POST", "/api/admin/activities/7/skus/2001/stock", `{"delta":1,"reason":"x"}`).problem(404, "not_found")
	s.operate("GET", adminPath+"/skus/7/stock", "").problem(404, "not_found")
	s.operate("GET", "/api/admin/activities/7/skus/2001/stock", "").problem(404, "not_found")
	s.operate("GET", adminPath+"/report", "").want(200)
	if levels := s.levels(); !strings.Contains(levels, "10") {
		t.Errorf("levels: %s", levels)
	}
}

// Who sent no key learns the one that makes the edit repeatable, when it is not
// known whether it was made.
// covers S13
func TestAnEditOfUnknownOutcomeTellsItsKey(t *testing.T) {
	s := newShop(t)
	s.sale(10, 1)
	if err := s.store.Close(); err != nil {
		t.Fatal(err)
	}
	body := s.operate("POST", stockPath, `{"delta":1,"reason":"x"}`).problem(503, "unavailable")
	if key := body.text("key"); len(key) < 16 || !strings.Contains(body.text("detail"), "Idempotency-Key") {
		t.Errorf("problem: %s", body.body)
	}
	s.operate("POST", stockPath, `{"delta":1,"reason":"x"}`, "Idempotency-Key", "mine").problem(503, "unavailable").member("key", "mine")
}
