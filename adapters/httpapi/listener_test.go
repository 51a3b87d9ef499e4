package httpapi

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gin-gonic/gin"
)

// onTheWire serves a shop as the program does, and dials it.
func onTheWire(t *testing.T, s *shop) (net.Conn, *bufio.Reader) {
	t.Helper()
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := Server("", s.api.Buyer())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(Listener(inner))
	}()
	conn, err := net.Dial("tcp", inner.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if err := conn.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = conn.Close()
		_ = server.Close()
		<-done
	})
	return conn, bufio.NewReader(conn)
}

func wireRequest(method, path, body, header string) string {
	return fmt.Sprintf("%s %s HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n%s\r\n%s",
		method, path, len(body), header, body)
}

func wireAnswer(t *testing.T, r *bufio.Reader) (int, string) {
	t.Helper()
	response, err := http.ReadResponse(r, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(body)
}

func wireGrab(buyer int, padding string) string {
	return wireRequest("POST", grabPath, fmt.Sprintf(`{"activityId":1001,"skuId":2001,"userId":%d}`, buyer), padding)
}

// Whatever the sizes and the pieces that a client's requests come in, each has
// its answer, in order.
func TestListenerKeepsHTTP(t *testing.T) {
	s := newShop(t)
	s.sale(1000, 1)
	conn, answers := onTheWire(t, s)
	send := func(text string) {
		t.Helper()
		if _, err := io.WriteString(conn, text); err != nil {
			t.Fatal(err)
		}
	}
	want := func(status int) {
		t.Helper()
		if got, body := wireAnswer(t, answers); got != status {
			t.Fatalf("status %d %s, want %d", got, body, status)
		}
	}
	list := wireRequest("GET", "/api/seckill/activities", "", "")
	for buyer := range 3 { // one after the other
		send(wireGrab(buyer, ""))
		want(202)
		send(wireGrab(buyer, ""))
		want(409)
		send(list)
		want(200)
	}
	send(wireGrab(10, "") + wireGrab(11, "") + list + wireGrab(12, "")) // pipelined
	for _, status := range []int{202, 202, 200, 202} {
		want(status)
	}
	// Headers around the sizes of the server's buffer, with another request behind.
	for i, size := range []int{1900, 2000, 2048, 2100, 4000, 4050, 4095, 4096, 4097, 8200} {
		grab := wireGrab(20+i, "X-Pad: "+strings.Repeat("p", size)+"\r\n")
		send(grab)
		want(202)
		// In two pieces, cut within the header and before the body's last byte.
		for j, cut := range []int{20, size / 2, len(grab) - 1} {
			grab := wireGrab(100+10*i+j, "X-Pad: "+strings.Repeat("p", size)+"\r\n")
			send(grab[:cut])
			time.Sleep(2 * time.Millisecond) // so that the pieces come apart; not a proof
			send(grab[cut:] + list)
			want(202)
			want(200)
		}
	}
}

// The client's leaving still ends what waits for it, also after a grab on the
// same connection.
func TestListenerSeesClientsGo(t *testing.T) {
	s := newShop(t)
	s.sale(10, 1)
	began, ended := make(chan struct{}), make(chan struct{})
	s.api.buyers.GET("/wait", func(c *gin.Context) {
		close(began)
		select {
		case <-c.Request.Context().Done():
			close(ended)
		case <-time.After(20 * time.Second):
		}
	})
	conn, answers := onTheWire(t, s)
	if _, err := io.WriteString(conn, wireGrab(7, "")); err != nil {
		t.Fatal(err)
	}
	if status, body := wireAnswer(t, answers); status != 202 {
		t.Fatalf("status %d %s", status, body)
	}
	if _, err := io.WriteString(conn, wireRequest("GET", "/wait", "", "")); err != nil {
		t.Fatal(err)
	}
	<-began
	_ = conn.Close()
	select {
	case <-ended:
	case <-time.After(15 * time.Second):
		t.Error("the request outlives its client")
	}
}

// A grab's time is bounded although it does not end with its client.
//
// covers T5
func TestGrabIsBounded(t *testing.T) {
	d := deadlines{most: 50 * time.Millisecond, span: 10 * time.Millisecond}
	type key struct{}
	parent, cancel := context.WithCancel(context.WithValue(t.Context(), key{}, "value"))
	first := d.of(parent)
	if first.Value(key{}) != "value" {
		t.Error("the request's values are lost")
	}
	child, stop := context.WithTimeout(first, time.Hour)
	defer stop()
	cancel()
	if first.Err() != nil {
		t.Error("the grab ended with its client")
	}
	for _, ctx := range []context.Context{first, child} {
		select {
		case <-ctx.Done():
		case <-time.After(10 * time.Second):
			t.Fatal("the grab has no bound")
		}
	}
	if deadline, ok := first.Deadline(); !ok || time.Until(deadline) > 0 {
		t.Errorf("deadline %v, %v", deadline, ok)
	}
	// The next one is of a later span.
	if next := d.of(t.Context()); next.Err() != nil {
		t.Error("a new grab has no time left")
	}
}

// The server can end its half of a connection, so that a client that is still
// sending hears why it is refused.
func TestListenerKeepsCloseWrite(t *testing.T) {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer inner.Close()
	client, err := net.Dial("tcp", inner.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	conn, err := Listener(inner).Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	half, ok := conn.(interface{ CloseWrite() error })
	if !ok {
		t.Fatal("the connection has no CloseWrite: net/http asks for it")
	}
	if err := half.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if n, err := client.Read(make([]byte, 1)); n != 0 || err != io.EOF {
		t.Errorf("the client read %d bytes, %v; want the end", n, err)
	}
}
