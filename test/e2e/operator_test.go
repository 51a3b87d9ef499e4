package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
	"time"
)

// sale is what an operator puts up. What is zero has a default: one unit per
// buyer, half an hour to pay, a window from an hour ago to in an hour.
type sale struct {
	total, limit int64
	segments     int // default 1
	toPay        time.Duration
	starts, ends time.Time
}

func (s sale) body() map[string]any {
	now := time.Now()
	if s.starts.IsZero() {
		s.starts = now.Add(-time.Hour)
	}
	if s.ends.IsZero() {
		s.ends = now.Add(time.Hour)
	}
	if s.toPay == 0 {
		s.toPay = 30 * time.Minute
	}
	return map[string]any{
		"name": "a sale of the tests", "startsAt": s.starts.Format(time.RFC3339Nano), "endsAt": s.ends.Format(time.RFC3339Nano),
		"paymentWindow": s.toPay.String(),
		"skus": []any{map[string]any{
			"skuId": sku, "name": "a thing", "total": s.total, "perUserLimit": max(s.limit, 1), "price": 9900, "segments": max(s.segments, 1),
		}},
	}
}

// operate asks the operators' listener.
func (c *cell) operate(n *node, method, path string, body any, header ...string) answer {
	header = append(header, "Authorization", "Bearer "+c.token)
	return c.ask(method, "http://"+n.admin+"/api/admin/"+path, pairs(header), body)
}

func (c *cell) save(n *node, activity int64, s sale) answer {
	return c.operate(n, http.MethodPut, fmt.Sprintf("activities/%d", activity), s.body())
}

// command is preheat, open, pause, resume, close or archive.
func (c *cell) command(n *node, activity int64, name string) answer {
	return c.operate(n, http.MethodPost, fmt.Sprintf("activities/%d/%s", activity, name), nil)
}

// draft saves an activity that the cell has not had yet.
func (c *cell) draft(t *testing.T, s sale) int64 {
	t.Helper()
	activity := c.last.Add(1)
	c.save(c.any(), activity, s).want(t, http.StatusOK)
	return activity
}

// sell puts up an activity and opens it.
func (c *cell) sell(t *testing.T, s sale) int64 {
	t.Helper()
	activity := c.draft(t, s)
	c.command(c.any(), activity, "preheat").want(t, http.StatusOK)
	c.command(c.any(), activity, "open").want(t, http.StatusOK)
	return activity
}

// account is the report on one sale.
type account struct {
	SKUID     int64  `json:"skuId"`
	Total     int64  `json:"total"`
	Available int64  `json:"available"`
	Held      int64  `json:"held"`
	Sold      int64  `json:"sold"`
	Queued    int64  `json:"queued"`
	Ledger    ledger `json:"ledger"`
	Drift     int64  `json:"drift"`
	Balanced  bool   `json:"balanced"`
}

type ledger struct {
	Pending   int64 `json:"pending"`
	Paid      int64 `json:"paid"`
	Cancelled int64 `json:"cancelled"`
	Expired   int64 `json:"expired"`
	Rejected  int64 `json:"rejected"`
	RefundDue int64 `json:"refundDue"`
}

// report reads the account of an activity's only sale.
func (c *cell) report(n *node, activity int64) (account, error) {
	a := c.operate(n, http.MethodGet, fmt.Sprintf("activities/%d/report", activity), nil)
	if err := a.check(http.StatusOK); err != nil {
		return account{}, err
	}
	return readReport(a.body, activity)
}

func readReport(body []byte, activity int64) (account, error) {
	var report struct {
		ActivityID int64     `json:"activityId"`
		SKUs       []account `json:"skus"`
	}
	if err := json.Unmarshal(body, &report); err != nil {
		return account{}, fmt.Errorf("report %s: %w", body, err)
	}
	if report.ActivityID != activity || len(report.SKUs) != 1 || report.SKUs[0].SKUID != sku {
		return account{}, fmt.Errorf("not the report on activity %d: %s", activity, body)
	}
	return report.SKUs[0], nil
}

// settled waits until nothing of the sale is in flight and all stores agree.
func (c *cell) settled(t *testing.T, activity int64) account {
	t.Helper()
	var rest account
	eventually(t, settleBound, func() (err error) {
		rest, err = c.report(c.any(), activity)
		if err == nil && (!rest.Balanced || rest.Queued != 0 || rest.Drift != 0) {
			err = fmt.Errorf("activity %d is not balanced: %+v", activity, rest)
		}
		return err
	})
	if rest.Total != rest.Available+rest.Held+rest.Sold || rest.Held != rest.Ledger.Pending || rest.Sold != rest.Ledger.Paid {
		t.Fatalf("activity %d is said to be balanced and is not: %+v", activity, rest)
	}
	return rest
}

// becomes waits until the account is at rest with these figures.
func (c *cell) becomes(t *testing.T, activity int64, want account) {
	t.Helper()
	want.SKUID, want.Balanced = sku, true
	var rest account
	eventually(t, settleBound, func() (err error) {
		if rest, err = c.report(c.any(), activity); err == nil && rest != want {
			err = fmt.Errorf("activity %d:\n got %+v\nwant %+v", activity, rest, want)
		}
		return err
	})
}
