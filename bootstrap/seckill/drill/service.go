package drill

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"
)

// Bounds of one HTTP request.
const (
	requestTime = 30 * time.Second // more than a request and a long poll may take
	maxAnswer   = 4 << 20          // bytes
)

// service is the running service, seen from outside.
type service struct {
	client  *http.Client
	targets []string // base URLs of buyers' listeners
	admin   string   // base URL of an operators' listener
	token   string
}

func newService(config Config) *service {
	return &service{
		targets: config.Targets, admin: config.Admin, token: config.Token,
		client: &http.Client{Timeout: requestTime, Transport: &http.Transport{
			DialContext:         (&net.Dialer{Timeout: 5 * time.Second}).DialContext,
			MaxIdleConns:        2 * config.Callers * len(config.Targets),
			MaxIdleConnsPerHost: 2 * config.Callers,
			DisableCompression:  true,
		}},
	}
}

func (s *service) close() { s.client.CloseIdleConnections() }

// target takes the buyers' listeners in turn.
func (s *service) target(n int64) string { return s.targets[n%int64(len(s.targets))] }

// said is an answer of the service. Its members are those of every route that
// the drill asks; what an answer does not have is zero.
type said struct {
	status int
	body   []byte

	Code       *int        `json:"code"`
	Reason     string      `json:"reason"`
	OrderID    string      `json:"orderId"`
	ActivityID int64       `json:"activityId"`
	UserID     string      `json:"userId"`
	Quantity   int64       `json:"quantity"`
	Status     orderStatus `json:"status"`
	State      string      `json:"state"`
	SKUs       []Account   `json:"skus"`
}

// orderStatus is an order's status; a problem's status is a number and none.
type orderStatus string

// UnmarshalJSON takes what is not text as no status.
func (s *orderStatus) UnmarshalJSON(data []byte) error {
	var text string
	if json.Unmarshal(data, &text) == nil {
		*s = orderStatus(text)
	}
	return nil
}

// Account is the operators' report on the sale. All figures are units.
type Account struct {
	Total     int64  `json:"total"`
	Available int64  `json:"available"`
	Held      int64  `json:"held"`
	Sold      int64  `json:"sold"`
	Queued    int64  `json:"queued"`
	Drift     int64  `json:"drift"`
	Balanced  bool   `json:"balanced"`
	Problem   string `json:"problem"`
	Ledger    struct {
		Pending   int64 `json:"pending"`
		Paid      int64 `json:"paid"`
		Cancelled int64 `json:"cancelled"`
		Expired   int64 `json:"expired"`
		Rejected  int64 `json:"rejected"`
		RefundDue int64 `json:"refundDue"`
	} `json:"ledger"`
}

func (s *service) ask(ctx context.Context, method, url string, body []byte, header ...string) (said, error) {
	request, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return said{}, err
	}
	if len(body) > 0 {
		request.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	response, err := s.client.Do(request)
	if err != nil {
		return said{}, err
	}
	defer func() { _ = response.Body.Close() }()
	answer := said{status: response.StatusCode}
	if answer.body, err = io.ReadAll(io.LimitReader(response.Body, maxAnswer)); err != nil {
		return said{}, err
	}
	// An answer that is no JSON has a status all the same.
	_ = json.Unmarshal(answer.body, &answer)
	return answer, nil
}

// grab sends one grab of one unit.
func (s *service) grab(ctx context.Context, n int64, activity int64, buyer, request string) (said, error) {
	body := make([]byte, 0, 160)
	body = append(body, `{"activityId":`...)
	body = strconv.AppendInt(body, activity, 10)
	body = append(body, `,"skuId":`...)
	body = strconv.AppendInt(body, sku, 10)
	body = append(body, `,"userId":"`...)
	body = append(body, buyer...)
	body = append(body, `","requestId":"`...)
	body = append(body, request...)
	body = append(body, `"}`...)
	return s.ask(ctx, http.MethodPost, s.target(n)+"/api/seckill/order", body)
}

// order asks what became of an order, and waits for it to leave the queue.
func (s *service) order(ctx context.Context, n int64, buyer, id string) (said, error) {
	return s.ask(ctx, http.MethodGet, s.target(n)+"/api/seckill/order/"+id+"?wait=5s", nil, "X-User-Id", buyer)
}

func (s *service) cancel(ctx context.Context, n int64, buyer, id string) error {
	return want(http.StatusOK)(s.ask(ctx, http.MethodPost, s.target(n)+"/api/seckill/order/"+id+"/cancel", nil, "X-User-Id", buyer))
}

// operate asks the operators' listener.
func (s *service) operate(ctx context.Context, method, path string, body any) (said, error) {
	var data []byte
	if body != nil {
		var err error
		if data, err = json.Marshal(body); err != nil {
			return said{}, err
		}
	}
	answer, err := s.ask(ctx, method, s.admin+"/api/admin/"+path, data, "Authorization", "Bearer "+s.token)
	return answer, want(http.StatusOK)(answer, err)
}

func (s *service) command(ctx context.Context, activity int64, name string) error {
	_, err := s.operate(ctx, http.MethodPost, fmt.Sprintf("activities/%d/%s", activity, name), nil)
	if err != nil {
		return fmt.Errorf("%s activity %d: %w", name, activity, err)
	}
	return nil
}

// account reads the report of the drill's only sale. With records, the service
// counts record by record; it repairs nothing.
func (s *service) account(ctx context.Context, activity int64, records bool) (Account, error) {
	method, path, body := http.MethodGet, fmt.Sprintf("activities/%d/report", activity), any(nil)
	if records {
		method, path, body = http.MethodPost, fmt.Sprintf("activities/%d/reconcile", activity), map[string]bool{"repair": false}
	}
	answer, err := s.operate(ctx, method, path, body)
	if err != nil {
		return Account{}, err
	}
	if answer.ActivityID != activity || len(answer.SKUs) != 1 {
		return Account{}, fmt.Errorf("not the account of activity %d: %.300s", activity, answer.body)
	}
	return answer.SKUs[0], nil
}

var errNotFound = errors.New("not found")

// want makes an error of an answer with another status.
func want(status int) func(said, error) error {
	return func(answer said, err error) error {
		switch {
		case err != nil:
			return err
		case answer.status == http.StatusNotFound && status != http.StatusNotFound:
			return fmt.Errorf("%w: %.300s", errNotFound, answer.body)
		case answer.status != status:
			return fmt.Errorf("status %d instead of %d: %.300s", answer.status, status, answer.body)
		}
		return nil
	}
}
