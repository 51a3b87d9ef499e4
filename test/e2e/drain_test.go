package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// TestDrain ends all processes by SIGTERM in the middle of the load: each ends
// with code 0, a request that it has begun to read is answered, and nothing that
// was accepted is lost.
// covers Q8 N2
func TestDrain(t *testing.T) {
	for _, kind := range []struct {
		pairing
		accept string
	}{
		{pairing{"lua", "mariadb"}, "queued"},
		{pairing{"memory", "sqlite"}, "committed"},
		// Here what is queued lives only as long as the process.
		{pairing{"memory", "sqlite"}, "queued"},
	} {
		t.Run(kind.String()+" "+kind.accept, func(t *testing.T) {
			t.Parallel()
			const crowd, stock = 400, 450
			c := serving(t, kind.pairing, "SECKILL_ACCEPT="+kind.accept)
			activity := c.sell(t, sale{total: stock})
			list := attempts("b", crowd)
			half := begin(t, c.here(), activity, "half")
			var answered atomic.Int64
			atOnce(t, crowd, 50, func(i int) {
				c.try(t, c.any(), activity, &list[i])
				if answered.Add(1) == crowd/2 {
					c.terminate()
				}
			})
			eventually(t, startBound, func() error {
				conn, err := net.Dial("tcp", c.here().addr)
				if err == nil {
					_ = conn.Close()
					return fmt.Errorf("%s still takes connections", c.here().addr)
				}
				return nil
			})
			if !c.here().process.Running() {
				t.Fatal("the process ended before the request that it had begun to read")
			}
			list = append(list, attempt{buyer: "half", id: half.finish(t)})
			c.drained(t)
			c.start(t)
			c.whole(t, activity, stock, list)
		})
	}
}

// halfGrab is a grab of which the program has read the head, and waits for the body.
type halfGrab struct {
	conn net.Conn
	from *bufio.Reader
	body string
}

func begin(t *testing.T, n *node, activity int64, buyer string) *halfGrab {
	t.Helper()
	conn, err := net.Dial("tcp", n.addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(loadBound)); err != nil {
		t.Fatal(err)
	}
	h := &halfGrab{conn: conn, from: bufio.NewReader(conn)}
	h.body = fmt.Sprintf(`{"activityId":%d,"skuId":%d,"userId":"%s","requestId":"r-%s"}`, activity, sku, buyer, buyer)
	_, err = fmt.Fprintf(conn, "POST /api/seckill/order HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\n"+
		"Content-Length: %d\r\nExpect: 100-continue\r\n\r\n", n.addr, len(h.body))
	if err != nil {
		t.Fatal(err)
	}
	// The go-ahead comes when the handler begins to read.
	line, err := h.from.ReadString('\n')
	if err != nil || !strings.HasPrefix(line, "HTTP/1.1 100 ") {
		t.Fatalf("instead of the go-ahead: %q %v", line, err)
	}
	if line, err = h.from.ReadString('\n'); err != nil || line != "\r\n" {
		t.Fatalf("after the go-ahead: %q %v", line, err)
	}
	return h
}

// finish sends the body and returns the order id.
func (h *halfGrab) finish(t *testing.T) string {
	t.Helper()
	if _, err := io.WriteString(h.conn, h.body); err != nil {
		t.Fatal(err)
	}
	response, err := http.ReadResponse(h.from, nil)
	if err != nil {
		t.Fatalf("a request in flight was not answered: %v", err)
	}
	defer response.Body.Close()
	var o order
	if err := json.NewDecoder(response.Body).Decode(&o); err != nil || response.StatusCode != http.StatusAccepted {
		t.Fatalf("a request in flight: status %d, %+v, %v", response.StatusCode, o, err)
	}
	return o.OrderID
}
