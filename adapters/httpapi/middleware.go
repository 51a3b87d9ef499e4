package httpapi

import (
	"context"
	"errors"
	"net/http"
	"runtime/debug"
	"time"

	"github.com/gin-gonic/gin"
)

// audited writes a line for each change that an operator asked for, granted or not.
func (a *API) audited(c *gin.Context) {
	c.Next()
	if c.Request.Method == http.MethodGet || c.Request.Method == http.MethodHead {
		return
	}
	a.log.Info("operator change", "method", c.Request.Method, "path", c.Request.URL.Path,
		"status", c.Writer.Status(), "remote", c.Request.RemoteAddr)
}

// recovered turns a panic into a 500 and a log line with its stack.
func (a *API) recovered(c *gin.Context) {
	defer func() {
		p := recover()
		if p == nil {
			return
		}
		if err, ok := p.(error); ok && errors.Is(err, http.ErrAbortHandler) {
			panic(p) // the server's own way to drop a connection
		}
		a.log.Error("panic in a request", "method", c.Request.Method, "path", c.Request.URL.Path,
			"panic", p, "stack", string(debug.Stack()))
		if !c.Writer.Written() {
			answerTo(errInternal).problem(errInternal).send(c)
		}
		c.Abort()
	}()
	c.Next()
}

// limitTime ends a request's context after so long, and after a long poll's own
// wait on top.
func limitTime(most time.Duration) gin.HandlerFunc {
	return func(c *gin.Context) {
		wait, err := waitOf(c)
		if err != nil {
			wait = 0 // the handler refuses it
		}
		ctx, cancel := context.WithTimeout(c.Request.Context(), most+wait)
		defer cancel()
		c.Request = c.Request.WithContext(ctx)
		c.Next()
	}
}
