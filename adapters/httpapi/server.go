package httpapi

import (
	"net/http"
	"time"
)

// Bounds of one connection. A long poll lasts up to application.MaxWait, 30 s,
// and both the read and the write deadline must outlive it: the server watches
// for the client's leaving under the read deadline, and takes its end for that.
const (
	headerTimeout  = 5 * time.Second
	requestTimeout = 45 * time.Second
	idleTimeout    = 2 * time.Minute
	maxHeaderBytes = 16 << 10
)

// Server is an http.Server with bounds on everything a client may draw out.
// The caller starts it and shuts it down.
func Server(addr string, h http.Handler) *http.Server {
	return &http.Server{
		Addr:              addr,
		Handler:           h,
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       requestTimeout,
		WriteTimeout:      requestTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
	}
}
