package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"seckill/test/harness"
)

// drillBound is how long a drill of the tests may take.
const drillBound = 90 * time.Second

// figures are a drill's as they are documented; no name may be missing.
type figures struct {
	Requests, Accepted, SoldOut, LimitReached, Rejected, Errors *int64
	Total, Available, Held, Sold, QueuePeak, Orders             *int64
	Balanced                                                    *bool
	PerSecond, P50Ms, P99Ms                                     *float64
	ActivityID                                                  int64
	Loop                                                        string
}

// drill runs the command and reads the figures that it writes.
func drill(t *testing.T, program string, env []string, args ...string) (int, *harness.Process, figures) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "figures.json")
	p := harness.Start(t, program, append([]string{"drill", "--stock=50", "--buyers=200", "--requests=405", "--concurrency=16", "--json=" + file}, args...), env)
	code := p.Wait(t, drillBound)
	var f figures
	text, err := os.ReadFile(file)
	if err == nil {
		decoder := json.NewDecoder(bytes.NewReader(text))
		err = decoder.Decode(&f)
	}
	if err != nil {
		t.Fatalf("figures: %v\n%s", err, text)
	}
	for _, name := range []string{"requests", "accepted", "soldOut", "limitReached", "rejected", "errors", "total", "available", "held", "sold", "queuePeak", "orders", "balanced", "perSecond", "p50Ms", "p99Ms"} {
		if !bytes.Contains(text, []byte(`"`+name+`"`)) {
			t.Errorf("figures without %s: %s", name, text)
		}
	}
	return code, p, f
}

// agrees wants the figures of the drill above when all is well: five buyers ask
// twice, then 195 once, then all 200 again.
func (f figures) agrees(t *testing.T) {
	t.Helper()
	got := []int64{*f.Requests, *f.Accepted, *f.SoldOut, *f.LimitReached, *f.Rejected, *f.Errors, *f.Total, *f.Available, *f.Held, *f.Sold, *f.Orders}
	if want := []int64{405, 50, 300, 55, 0, 0, 50, 0, 50, 0, 50}; !slices.Equal(got, want) || !*f.Balanced {
		t.Fatalf("figures %v, balanced %t, want %v", got, *f.Balanced, want)
	}
	if *f.PerSecond <= 0 || *f.P50Ms <= 0 || *f.P99Ms < *f.P50Ms {
		t.Errorf("%f per second, p50 %f ms, p99 %f ms", *f.PerSecond, *f.P50Ms, *f.P99Ms)
	}
}

// TestDrillHere: without a target the drill starts the service itself, on nothing
// or on the configured stores, and takes away what it made.
// covers O2
func TestDrillHere(t *testing.T) {
	t.Run("embedded", func(t *testing.T) {
		temporary := t.TempDir()
		code, p, f := drill(t, harness.Seckill(t), []string{"TMPDIR=" + temporary}, "--rate=2000")
		if code != 0 || !strings.Contains(p.Stdout.String(), "Every number agrees.") || f.Loop != "open" {
			t.Fatalf("exit code %d, loop %q", code, f.Loop)
		}
		f.agrees(t)
		if left, err := os.ReadDir(temporary); err != nil || len(left) > 0 {
			t.Errorf("left behind: %v %v", left, err)
		}
	})
	t.Run("lua+mariadb", func(t *testing.T) {
		c := newCell(t, pairing{"lua", "mariadb"})
		code, _, f := drill(t, c.program, c.env)
		if code != 0 || f.Loop != "closed" {
			t.Fatalf("exit code %d, loop %q", code, f.Loop)
		}
		f.agrees(t)
		// A second one does not meet the first.
		if code, _, again := drill(t, c.program, c.env, "--keep"); code != 0 || again.ActivityID == f.ActivityID {
			t.Fatalf("once more: exit code %d, activity %d", code, again.ActivityID)
		}
		client := c.redis.Client(t)
		for activity, want := range map[int64]bool{f.ActivityID: false} {
			keys, err := client.Keys(t.Context(), fmt.Sprintf("%s:*:%d:*", c.prefix, activity)).Result()
			if err != nil || len(keys) > 0 != want {
				t.Errorf("keys of activity %d: %v %v", activity, keys, err)
			}
		}
	})
	t.Run("pending migrations", func(t *testing.T) {
		database := harness.SharedMariaDB(t).NewDatabase(t)
		p := harness.Start(t, harness.Seckill(t), []string{"drill"}, []string{"SECKILL_STOCK=memory", "SECKILL_DATABASE=" + database})
		if code := p.Wait(t, startBound); code != 1 || !strings.Contains(p.Stderr.String(), "migrat") {
			t.Errorf("exit code %d", code)
		}
	})
}

// TestDrillTarget drives a running service, both of its nodes.
// covers O2
func TestDrillTarget(t *testing.T) {
	c := serving(t, pairing{"lua", "postgres"})
	targets := fmt.Sprintf("--target=http://%s,http://%s", c.here().addr, c.there().addr)
	code, _, f := drill(t, c.program, nil, targets, "--admin=http://"+c.there().admin, "--admin-token="+c.token)
	if code != 0 {
		t.Fatalf("exit code %d", code)
	}
	f.agrees(t)
	c.becomes(t, f.ActivityID, account{Total: 50, Available: 50, Ledger: ledger{Cancelled: 50}})

	t.Run("activity that is there", func(t *testing.T) {
		code, p, _ := drill(t, c.program, nil, targets, "--admin=http://"+c.here().admin, "--admin-token="+c.token, fmt.Sprintf("--activity=%d", f.ActivityID))
		if code != 1 || !strings.Contains(p.Stderr.String(), "there already") {
			t.Errorf("exit code %d", code)
		}
	})
	t.Run("wrong token", func(t *testing.T) {
		code, p, _ := drill(t, c.program, []string{"SECKILL_ADMIN_TOKEN=wrong"}, targets, "--admin=http://"+c.here().admin)
		if code != 1 || !strings.Contains(p.Stderr.String(), "401") {
			t.Errorf("exit code %d", code)
		}
	})
	t.Run("interrupted", func(t *testing.T) {
		activity := c.last.Add(1)
		p := harness.Start(t, c.program, []string{"drill", targets, "--admin=http://" + c.here().admin, "--stock=50", "--rate=20", "--requests=10000",
			"--admin-token=" + c.token, fmt.Sprintf("--activity=%d", activity)}, nil)
		eventually(t, startBound, func() error {
			rest, err := c.report(c.here(), activity)
			if err == nil && rest.Held == 0 {
				err = fmt.Errorf("nothing is held yet")
			}
			return err
		})
		p.Signal(syscall.SIGINT)
		if code := p.Wait(t, startBound); code != 1 {
			t.Errorf("exit code %d", code)
		}
		a := c.operate(c.here(), http.MethodGet, fmt.Sprintf("activities/%d", activity), nil).want(t, http.StatusOK)
		if !strings.Contains(string(a.body), `"closed"`) {
			t.Errorf("the activity is left open: %s", a.body)
		}
	})
	for name, lie := range lies {
		t.Run(name, func(t *testing.T) {
			liar := httptest.NewServer(lie.proxy(t, c.here().addr))
			defer liar.Close()
			code, p, _ := drill(t, c.program, nil, "--target="+liar.URL, "--admin=http://"+c.here().admin, "--admin-token="+c.token, "--settle=3s", "--retries=0")
			if code != 1 || !strings.Contains(p.Stdout.String(), lie.finding) {
				t.Fatalf("exit code %d and not %q", code, lie.finding)
			}
		})
	}
	// What is allowed to be unknown is no fault.
	t.Run("lost answers are asked for again", func(t *testing.T) {
		liar := httptest.NewServer(lies["a lost answer"].proxy(t, c.here().addr))
		defer liar.Close()
		code, _, f := drill(t, c.program, nil, "--target="+liar.URL, "--admin=http://"+c.here().admin, "--admin-token="+c.token)
		if code != 0 {
			t.Fatalf("exit code %d", code)
		}
		f.agrees(t)
	})
	t.Run("allowed errors", func(t *testing.T) {
		liar := httptest.NewServer(lies["a lost answer"].proxy(t, c.here().addr))
		defer liar.Close()
		code, _, f := drill(t, c.program, nil, "--target="+liar.URL, "--admin=http://"+c.here().admin, "--admin-token="+c.token, "--retries=0", "--allow-errors=1", "--keep")
		if code != 0 || *f.Errors != 1 || *f.Accepted != 49 || *f.Held != 50 {
			t.Fatalf("exit code %d, %d errors, %d accepted, %d held", code, *f.Errors, *f.Accepted, *f.Held)
		}
	})
}

// lie changes what a service says on its way to the drill.
type lie struct {
	finding string
	change  func(*http.Response, []byte, *lieState) []byte
}

type lieState struct {
	done  atomic.Bool
	first atomic.Pointer[[]byte]
}

// lies are told once, about one grab.
var lies = map[string]lie{
	"two get the same order": {"distinct order ids: 49 instead of 50", func(r *http.Response, body []byte, s *lieState) []byte {
		if r.StatusCode == http.StatusAccepted && !s.first.CompareAndSwap(nil, &body) && s.done.CompareAndSwap(false, true) {
			return *s.first.Load()
		}
		return body
	}},
	"sold out while units are left": {`had heard "sold out" before`, func(r *http.Response, body []byte, s *lieState) []byte {
		if r.StatusCode == http.StatusAccepted && s.done.CompareAndSwap(false, true) {
			r.StatusCode, r.Status = http.StatusConflict, "409 Conflict"
			return []byte(`{"status":409,"code":0,"reason":"sold_out"}`)
		}
		return body
	}},
	"a lost answer": {"errors: 1, allowed are 0", func(r *http.Response, body []byte, s *lieState) []byte {
		if r.StatusCode == http.StatusAccepted && s.done.CompareAndSwap(false, true) {
			r.StatusCode, r.Status = http.StatusServiceUnavailable, "503 Service Unavailable"
			return []byte(`{"status":503,"reason":"unavailable"}`)
		}
		return body
	}},
	"another refusal": {"refusals other than sold out and limit reached: 1", func(r *http.Response, body []byte, s *lieState) []byte {
		if r.StatusCode == http.StatusConflict && s.done.CompareAndSwap(false, true) {
			return []byte(`{"status":409,"code":-3,"reason":"paused"}`)
		}
		return body
	}},
}

// proxy stands before a buyers' listener.
func (l lie) proxy(t *testing.T, addr string) http.Handler {
	target, err := url.Parse("http://" + addr)
	if err != nil {
		t.Fatal(err)
	}
	var state lieState
	proxy := httputil.NewSingleHostReverseProxy(target)
	proxy.ModifyResponse = func(r *http.Response) error {
		if r.Request.Method != http.MethodPost {
			return nil
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return err
		}
		_ = r.Body.Close()
		body = l.change(r, body, &state)
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		r.Header.Set("Content-Length", fmt.Sprint(len(body)))
		return nil
	}
	return proxy
}
