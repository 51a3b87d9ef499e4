package httpapi

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/gin-gonic/gin"

	"seckill/adapters/system"
	"seckill/adapters/telemetry"
	"seckill/application"
	"seckill/domain"
)

// BenchmarkGrab is everything between the server and the hot store. Compare it
// with bare, the least that a gin handler of the same JSON can do.
func BenchmarkGrab(b *testing.B) {
	accepted := []domain.Outcome{{Verdict: domain.Accepted, Order: "SK1001-2001-034pe8k13trjh4l1ut15r2n3oc", Before: 10, After: 9}}
	soldOut := []domain.Outcome{{Verdict: domain.SoldOut}}
	quiet := slog.New(slog.NewJSONHandler(io.Discard, &slog.HandlerOptions{Level: slog.LevelError}))
	loud := slog.New(slog.NewJSONHandler(io.Discard, nil))
	b.Run("accepted", func(b *testing.B) { benchmarkHandler(b, 202, oneAnswer(accepted, quiet)) })
	b.Run("accepted and logged", func(b *testing.B) { benchmarkHandler(b, 202, oneAnswer(accepted, loud)) })
	b.Run("sold out", func(b *testing.B) { benchmarkHandler(b, 409, oneAnswer(soldOut, loud)) })
	b.Run("bare", func(b *testing.B) { benchmarkHandler(b, 202, bareHandler()) })
}

func BenchmarkDecode(b *testing.B) {
	text := `{"activityId":1001,"skuId":2001,"userId":1000000007,"quantity":1}`
	b.Run("fast", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, ok := scanGrab(text); !ok {
				b.Fatal("not taken")
			}
		}
	})
	b.Run("slow", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := decodeGrab([]byte(text)); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func benchmarkHandler(b *testing.B, want int, h http.Handler) {
	const body = `{"activityId":1001,"skuId":2001,"userId":1000000007,"quantity":1}`
	reader := strings.NewReader(body)
	request, err := http.NewRequestWithContext(b.Context(), http.MethodPost, grabPath, nil)
	if err != nil {
		b.Fatal(err)
	}
	request.ContentLength = int64(len(body))
	request.Header.Set("Content-Type", "application/json")
	w := &discard{header: http.Header{}}
	b.ReportAllocs()
	for b.Loop() {
		reader.Reset(body)
		request.Body = io.NopCloser(reader)
		clear(w.header)
		h.ServeHTTP(w, request)
		if w.status != want {
			b.Fatalf("status %d, want %d", w.status, want)
		}
	}
}

// discard is a response that nobody reads.
type discard struct {
	header http.Header
	status int
}

func (d *discard) Header() http.Header         { return d.header }
func (d *discard) WriteHeader(status int)      { d.status = status }
func (d *discard) Write(p []byte) (int, error) { return len(p), nil }

// oneAnswer is an engine whose hot store always says the same.
func oneAnswer(outcomes []domain.Outcome, log *slog.Logger) http.Handler {
	engine := application.New(application.Ports{
		Stock: constantStock{outcomes: outcomes}, Clock: system.Clock{}, IDs: system.IDs{},
	}, application.Config{Log: log, Observer: telemetry.New()})
	return New(engine, Config{Log: log, Clock: system.Clock{}}).Buyer()
}

type constantStock struct {
	domain.Stock
	outcomes []domain.Outcome
}

func (s constantStock) Reserve(context.Context, domain.SaleID, []domain.Claim) ([]domain.Outcome, error) {
	return s.outcomes, nil
}

func bareHandler() http.Handler {
	gin.SetMode(gin.ReleaseMode)
	r := gin.New()
	r.POST(grabPath, func(c *gin.Context) {
		var request struct {
			ActivityID int64 `json:"activityId"`
			SKUID      int64 `json:"skuId"`
			UserID     int64 `json:"userId"`
			Quantity   int64 `json:"quantity"`
		}
		if err := c.ShouldBindJSON(&request); err != nil {
			c.AbortWithStatus(http.StatusBadRequest)
			return
		}
		c.JSON(http.StatusAccepted, gin.H{"code": 1, "orderId": "SK1001-2001-034pe8k13trjh4l1ut15r2n3oc", "status": "queued"})
	})
	return r
}
