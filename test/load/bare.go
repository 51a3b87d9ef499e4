package main

import (
	"context"
	"errors"
	"flag"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"
)

// bareRequest is the body of a grab, bound as gin's own manual shows it.
type bareRequest struct {
	ActivityID int64  `json:"activityId"`
	SKUID      int64  `json:"skuId"`
	UserID     int64  `json:"userId"`
	Quantity   int64  `json:"quantity"`
	RequestID  string `json:"requestId"` // sent only with --request-ids
}

type bareAnswer struct {
	Code    int    `json:"code"`
	OrderID string `json:"orderId"`
	Status  string `json:"status"`
}

// bareCommand serves the yardstick: a gin handler that binds the same JSON,
// decides nothing and answers as an accepted grab is answered.
func bareCommand(flags *flag.FlagSet) func(context.Context) error {
	addr := flags.String("addr", "127.0.0.1:8080", "address to listen on")
	return func(ctx context.Context) error {
		gin.SetMode(gin.ReleaseMode)
		r := gin.New()
		r.GET("/healthz", func(c *gin.Context) { c.Status(http.StatusOK) })
		r.POST(grabPath, func(c *gin.Context) {
			var request bareRequest
			if err := c.ShouldBindJSON(&request); err != nil {
				c.AbortWithStatus(http.StatusBadRequest)
				return
			}
			c.JSON(http.StatusAccepted, bareAnswer{1, "SK1001-2001-034pe8k13trjh4l1ut15r2n3oc", "queued"})
		})
		server := &http.Server{Addr: *addr, Handler: r, ReadHeaderTimeout: 5 * time.Second}
		go func() {
			<-ctx.Done()
			_ = server.Close()
		}()
		if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	}
}
