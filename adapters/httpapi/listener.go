package httpapi

import (
	"bytes"
	"net"
)

// Listener makes grabs cheaper for the server that it is given to.
//
// While a handler works, net/http reads one byte ahead, to end the request's
// context when the client goes. A grab does not use that context (see
// deadlines), yet the reading, its waking and its two deadlines took a tenth of
// the server's time. So on these connections that one byte is not waited for
// while a grab is at work; for all other requests, long polls among them,
// nothing changes.
//
// It rests on how net/http reads: should that change, grabs are only slower.
func Listener(l net.Listener) net.Listener { return grabListener{l} }

type grabListener struct{ net.Listener }

func (l grabListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &grabConn{Conn: conn}, nil
}

// CloseWrite ends the answers of a connection whose requests are not read to
// their end: net/http looks for it, so that the client hears why.
func (c *grabConn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// grabConn is a connection that knows whether its last request was a grab. The
// server reads from one goroutine at a time.
type grabConn struct {
	net.Conn
	grab bool
}

var grabStart = []byte("POST /api/seckill/order ")

// grabBytes bounds a request that counts as a grab, far below the server's read
// buffer of 4 KiB: so a read of one byte cannot be for the rest of the request.
const grabBytes = 2 << 10

// Read implements net.Conn. It answers a read of one byte that follows a grab
// with nothing at all: the server takes that for the end of its reading ahead.
func (c *grabConn) Read(p []byte) (int, error) {
	if len(p) == 1 && c.grab {
		return 0, nil
	}
	n, err := c.Conn.Read(p)
	c.grab = n <= grabBytes && bytes.HasPrefix(p[:n], grabStart)
	return n, err
}
