package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"testing"
	"time"
)

// requestBound is longer than any answer of the program may take.
const requestBound = 30 * time.Second

func newClient() *http.Client {
	return &http.Client{
		Timeout:   requestBound,
		Transport: &http.Transport{MaxIdleConnsPerHost: 256, MaxConnsPerHost: 256},
	}
}

// answer is what the program said, or why it said nothing.
type answer struct {
	status  int
	header  http.Header
	body    []byte
	problem problem // of a status from 400
	order   order   // of the buyers' order routes
	err     error   // no answer, or one that is not as documented
}

type problem struct {
	Type     string     `json:"type"`
	Title    string     `json:"title"`
	Status   int        `json:"status"`
	Detail   string     `json:"detail"`
	Reason   string     `json:"reason"`
	Code     *int       `json:"code"`
	Field    string     `json:"field"`
	StartsAt *time.Time `json:"startsAt"`
	Order    *order     `json:"order"`
}

// order is both the answer to a grab and an order.
type order struct {
	Code       int        `json:"code"` // of a grab
	OrderID    string     `json:"orderId"`
	ActivityID int64      `json:"activityId"`
	SKUID      int64      `json:"skuId"`
	UserID     string     `json:"userId"`
	Quantity   int64      `json:"quantity"`
	Status     string     `json:"status"`
	CreatedAt  *time.Time `json:"createdAt"`
	ExpiresAt  *time.Time `json:"expiresAt"`
	PaidAt     *time.Time `json:"paidAt"`
	ClosedAt   *time.Time `json:"closedAt"`
	Reason     *string    `json:"reason"`
}

// ask sends one request. An empty body is none.
func (c *cell) ask(method, url string, header http.Header, body any) (a answer) {
	var data []byte
	if body != nil {
		if data, a.err = json.Marshal(body); a.err != nil {
			return a
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), requestBound)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(data))
	if err != nil {
		return answer{err: err}
	}
	if header != nil {
		request.Header = header
	}
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := c.client.Do(request)
	if err != nil {
		return answer{err: err}
	}
	defer response.Body.Close()
	a.status, a.header = response.StatusCode, response.Header
	if a.body, a.err = io.ReadAll(io.LimitReader(response.Body, 4<<20)); a.err != nil {
		return a
	}
	if a.status >= 400 {
		a.err = a.readProblem()
	}
	return a
}

// readProblem reads a refusal and wants it to be as RFC 9457 has it.
func (a *answer) readProblem() error {
	if kind := a.header.Get("Content-Type"); kind != "application/problem+json" {
		return fmt.Errorf("status %d with a body of type %q: %s", a.status, kind, a.body)
	}
	if err := json.Unmarshal(a.body, &a.problem); err != nil {
		return fmt.Errorf("problem %s: %w", a.body, err)
	}
	p := a.problem
	if p.Status != a.status || p.Type == "" || p.Title == "" || p.Detail == "" || p.Reason == "" {
		return fmt.Errorf("status %d with an incomplete problem: %s", a.status, a.body)
	}
	if a.status == http.StatusServiceUnavailable && a.header.Get("Retry-After") == "" {
		return fmt.Errorf("status 503 without Retry-After: %s", a.body)
	}
	return nil
}

// check says how the answer differs from the status that it should have.
func (a answer) check(status int) error {
	if a.err != nil {
		return a.err
	}
	if a.status != status {
		return fmt.Errorf("status %d instead of %d: %s", a.status, status, a.body)
	}
	return nil
}

// want ends the test unless the answer has the status.
func (a answer) want(t *testing.T, status int) answer {
	t.Helper()
	if err := a.check(status); err != nil {
		t.Fatal(err)
	}
	return a
}

// refused ends the test unless the answer is this refusal of a grab.
func (a answer) refused(t *testing.T, status, code int, reason string) answer {
	t.Helper()
	if err := a.isRefusal(status, code, reason); err != nil {
		t.Fatal(err)
	}
	return a
}

func (a answer) isRefusal(status, code int, reason string) error {
	if err := a.check(status); err != nil {
		return err
	}
	if a.problem.Reason != reason || a.problem.Code == nil || *a.problem.Code != code {
		return fmt.Errorf("not the refusal %d %q: %s", code, reason, a.body)
	}
	return nil
}

// closedAs ends the test unless the answer says that the order went this way.
func (a answer) closedAs(t *testing.T, status string) {
	t.Helper()
	if err := a.isClosedAs(status); err != nil {
		t.Fatal(err)
	}
}

func (a answer) isClosedAs(status string) error {
	if err := a.check(http.StatusConflict); err != nil {
		return err
	}
	if a.problem.Reason != "order_closed" || a.problem.Order == nil || a.problem.Order.Status != status {
		return fmt.Errorf("not order_closed with status %s: %s", status, a.body)
	}
	return nil
}

// replayed says whether a grab was answered from an earlier one.
func (a answer) replayed() bool { return a.header.Get("Idempotent-Replayed") == "true" }

// grab is the body of a grab; what is zero is left out.
type grab struct {
	ActivityID int64  `json:"activityId"`
	SKUID      int64  `json:"skuId"`
	UserID     any    `json:"userId"`
	Quantity   int64  `json:"quantity,omitempty"`
	RequestID  string `json:"requestId,omitempty"`
}

func buyers(n *node) string { return "http://" + n.addr + "/api/seckill/" }

// grab sends a grab, with more headers as name and value.
func (c *cell) grab(n *node, g grab, header ...string) answer {
	g.SKUID = max(g.SKUID, sku)
	a := c.ask(http.MethodPost, buyers(n)+"order", pairs(header), g)
	if a.err == nil && a.status == http.StatusAccepted {
		a.err = a.readAccepted(g)
	}
	return a
}

func (a *answer) readAccepted(g grab) error {
	if err := json.Unmarshal(a.body, &a.order); err != nil {
		return fmt.Errorf("grab %s: %w", a.body, err)
	}
	o := a.order
	if o.Code != 1 || o.Status != "queued" || !startsWith(o.OrderID, "SK"+strconv.FormatInt(g.ActivityID, 10)) ||
		a.header.Get("Location") != "/api/seckill/order/"+o.OrderID {
		return fmt.Errorf("not the answer to an accepted grab: %s, Location %q", a.body, a.header.Get("Location"))
	}
	return nil
}

func startsWith(text, start string) bool {
	return len(text) > len(start) && text[:len(start)] == start
}

func pairs(list []string) http.Header {
	header := http.Header{}
	for i := 0; i+1 < len(list); i += 2 {
		header.Set(list[i], list[i+1])
	}
	return header
}

// onOrder asks about an order in its buyer's name.
func (c *cell) onOrder(method, url, buyer string, body any) answer {
	a := c.ask(method, url, pairs([]string{"X-User-Id", buyer}), body)
	if a.err == nil && a.status == http.StatusOK {
		if err := json.Unmarshal(a.body, &a.order); err != nil {
			a.err = fmt.Errorf("order %s: %w", a.body, err)
		}
	}
	return a
}

// find asks for an order; wait is "" or a duration.
func (c *cell) find(n *node, buyer, id, wait string) answer {
	url := buyers(n) + "order/" + id
	if wait != "" {
		url += "?wait=" + wait
	}
	return c.onOrder(http.MethodGet, url, buyer, nil)
}

func (c *cell) pay(n *node, buyer, id, payment string) answer {
	return c.onOrder(http.MethodPost, buyers(n)+"order/"+id+"/pay", buyer, map[string]string{"paymentId": payment})
}

func (c *cell) cancel(n *node, buyer, id string) answer {
	return c.onOrder(http.MethodPost, buyers(n)+"order/"+id+"/cancel", buyer, nil)
}

var errQueued = errors.New("still queued")

// placed waits until the order has left the queue, and wants it to be its
// buyer's.
func (c *cell) placed(n *node, buyer, id string) (order, error) {
	deadline := time.Now().Add(settleBound)
	for {
		a := c.find(n, buyer, id, "10s")
		err := a.check(http.StatusOK)
		if err == nil && a.order.Status == "queued" {
			err = errQueued
		}
		switch {
		case err == nil && (a.order.OrderID != id || a.order.UserID != buyer):
			return order{}, fmt.Errorf("order %s of buyer %s: %s", id, buyer, a.body)
		case err == nil:
			return a.order, nil
		case time.Now().After(deadline):
			return order{}, fmt.Errorf("order %s of buyer %s after %s: %w", id, buyer, settleBound, err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// take grabs one unit and waits for the order.
func (c *cell) take(t *testing.T, n *node, activity int64, buyer string) order {
	t.Helper()
	id := c.grab(n, grab{ActivityID: activity, UserID: buyer}).want(t, http.StatusAccepted).order.OrderID
	o, err := c.placed(n, buyer, id)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// eventually tries again until there is no error, within a bound.
func eventually(t *testing.T, bound time.Duration, try func() error) {
	t.Helper()
	deadline := time.Now().Add(bound)
	for {
		err := try()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("after %s: %v", bound, err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}
