package httpapi

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"

	"github.com/gin-gonic/gin"

	"seckill/domain"
)

// limitBody refuses bodies of more than limit bytes and closes their
// connection, so that the rest need not be read.
func limitBody(limit int64) gin.HandlerFunc {
	return func(c *gin.Context) {
		c.Request.Body = http.MaxBytesReader(c.Writer, c.Request.Body, limit)
	}
}

var errUnreadable = domain.Invalid("body", "could not be read to its end")

// readBody reads the body, which may be empty. One that is not must be JSON.
func readBody(c *gin.Context) ([]byte, error) {
	data, err := io.ReadAll(c.Request.Body)
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		c.Header("Connection", "close")
		return nil, fmt.Errorf("%w: at most %d bytes are read", errTooLarge, tooLarge.Limit)
	case err != nil:
		return nil, errUnreadable
	case len(data) > 0 && !sendsJSON(c):
		return nil, errMediaType
	}
	return data, nil
}

// sendsJSON says whether the body is JSON as it stands: in UTF-8, not compressed.
func sendsJSON(c *gin.Context) bool {
	if encoding := c.Request.Header["Content-Encoding"]; len(encoding) > 0 && !strings.EqualFold(encoding[0], "identity") {
		return false
	}
	contentType := c.GetHeader("Content-Type")
	if contentType == "application/json" {
		return true
	}
	media, parameters, err := mime.ParseMediaType(contentType)
	charset, named := parameters["charset"]
	return err == nil && media == "application/json" && (!named || strings.EqualFold(charset, "utf-8"))
}

func requiredBody(c *gin.Context) ([]byte, error) {
	data, err := readBody(c)
	if err == nil && len(data) == 0 {
		err = domain.Invalid("body", "is missing")
	}
	return data, err
}

// object reads a body that must be a JSON object.
func object(c *gin.Context) (*fields, error) {
	data, err := requiredBody(c)
	if err != nil {
		return nil, err
	}
	return parseObject(data)
}

// optionalObject reads a body that may be empty, which is then as good as {}.
func optionalObject(c *gin.Context) (*fields, error) {
	data, err := readBody(c)
	if err != nil {
		return nil, err
	}
	if len(data) == 0 {
		return &fields{}, nil
	}
	return parseObject(data)
}
