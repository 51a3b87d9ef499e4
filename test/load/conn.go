package main

import (
	"bytes"
	"fmt"
	"net"
	"strconv"
	"time"
)

const grabPath = "/api/seckill/order"

// Buyers' numbers all have ten digits, so that every request of a run has the
// same length and is made by writing the digits into a ready one.
const firstBuyer = 1_000_000_000

// answerTimeout bounds one answer. It is far above anything a sound run shows.
const answerTimeout = 20 * time.Second

// connection is a kept-alive HTTP/1.1 connection that does just enough of the
// protocol to send a grab and check its answer: a full client would cost more
// than what is measured.
type connection struct {
	conn    net.Conn
	request []byte
	buyer   []byte   // the digits inside request
	ids     [][]byte // the same digits where a request id is sent
	answer  []byte
	turns   int
}

// connect dials and makes the request. Fields are those of the contract.
func connect(addr string, plan plan) (*connection, error) {
	conn, err := net.DialTimeout("tcp", addr, answerTimeout)
	if err != nil {
		return nil, err
	}
	digits := strconv.Itoa(firstBuyer)
	body := fmt.Sprintf(`{"activityId":%d,"skuId":%d,"userId":%s,"quantity":1}`, plan.Activity, plan.SKU, digits)
	if plan.RequestIDs {
		body = fmt.Sprintf(`%s,"requestId":"r-%s"}`, body[:len(body)-1], digits)
	}
	request := fmt.Appendf(nil, "POST %s HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
		grabPath, addr, len(body), body)
	c := &connection{conn: conn, request: request, answer: make([]byte, 4<<10)}
	at := bytes.Index(request, []byte(`"userId":`)) + len(`"userId":`)
	c.buyer = request[at : at+len(digits)]
	if plan.RequestIDs {
		at = bytes.LastIndex(request, []byte(`"r-`)) + len(`"r-`)
		c.ids = append(c.ids, request[at:at+len(digits)])
	}
	return c, nil
}

// grab sends one grab and returns the status and the body, which is valid until
// the next call.
func (c *connection) grab(buyer int64) (status int, body []byte, err error) {
	putDigits(c.buyer, buyer)
	for _, id := range c.ids {
		putDigits(id, buyer)
	}
	// A deadline for each answer would cost a timer each.
	if c.turns%64 == 0 {
		if err := c.conn.SetDeadline(time.Now().Add(answerTimeout)); err != nil {
			return 0, nil, err
		}
	}
	c.turns++
	if _, err := c.conn.Write(c.request); err != nil {
		return 0, nil, err
	}
	for n := 0; n < len(c.answer); {
		more, err := c.conn.Read(c.answer[n:])
		if err != nil {
			return 0, nil, err
		}
		n += more
		status, body, whole, err := parseAnswer(c.answer[:n])
		if whole || err != nil {
			return status, body, err
		}
	}
	return 0, nil, fmt.Errorf("answer of more than %d bytes", len(c.answer))
}

var (
	endOfHeader   = []byte("\r\n\r\n")
	contentLength = []byte("\r\nContent-Length: ")
)

// parseAnswer reads an answer; whole says whether all of it is there.
func parseAnswer(data []byte) (status int, body []byte, whole bool, err error) {
	head, rest, found := bytes.Cut(data, endOfHeader)
	if !found {
		return 0, nil, false, nil
	}
	if len(head) < 12 || string(head[:9]) != "HTTP/1.1 " {
		return 0, nil, false, fmt.Errorf("not an answer: %.60q", head)
	}
	status = int(head[9]-'0')*100 + int(head[10]-'0')*10 + int(head[11]-'0')
	at := bytes.Index(head, contentLength)
	if at < 0 {
		return status, nil, false, fmt.Errorf("answer without a length: %.200q", head)
	}
	length := 0
	for _, digit := range head[at+len(contentLength):] {
		if digit < '0' || digit > '9' {
			break
		}
		length = 10*length + int(digit-'0')
	}
	if len(rest) < length {
		return 0, nil, false, nil
	}
	return status, rest[:length], true, nil
}

func putDigits(to []byte, n int64) {
	for i := len(to) - 1; i >= 0; i-- {
		to[i] = byte('0' + n%10)
		n /= 10
	}
}
