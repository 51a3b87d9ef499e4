// Package httpapi is the engine's HTTP side: the buyers' routes and, on a
// handler of its own, the operators' routes. It turns requests into use cases
// and their answers into JSON; it decides nothing.
package httpapi

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"

	"seckill/application"
	"seckill/domain"
)

// Bounds of request bodies, bytes.
const (
	defaultMaxBody  = 64 << 10 // a grab has about a hundred; the rest is room for unknown fields
	operatorMaxBody = 1 << 20  // the largest activity (100 SKUs) stays far below
)

// Bounds of a request's work, so that a store that hangs makes a 503 and not a
// client that waits. A long poll has its own wait on top. Both are below the
// server's write time-out.
const (
	buyerTime    = 10 * time.Second
	operatorTime = 40 * time.Second
)

// Config is what can be set about the HTTP adapter. The zero value of a field
// means its default.
type Config struct {
	// Log receives audit lines, panics and failures of stores. Default: slog.Default().
	Log *slog.Logger
	// Clock is the server time that buyers see. Required.
	Clock domain.Clock
	// AdminToken is the operators' bearer token. While it is empty, every
	// operator route answers 401.
	AdminToken string
	// MaxBody bounds a buyer's request body. Bytes, default 64 KiB. An
	// operator's is bounded by 1 MiB.
	MaxBody int64
	// Metrics is served to operators at /metrics. Default: there is none.
	Metrics http.Handler
	// Ready says whether this process can take grabs; nil means it can.
	// Default: always.
	Ready func(context.Context) error
	// DefaultPaymentWindow is for activities saved without one.
	// Default: domain.DefaultPayWindow, 30 min.
	DefaultPaymentWindow time.Duration
}

// API holds the two handlers.
type API struct {
	engine   *application.Engine
	cfg      Config
	log      *slog.Logger
	buyers   *gin.Engine
	operator *gin.Engine
	grabTime deadlines
	draining context.Context // ends with Drain
	// Drain answers long polls with what is known now, and those to come at
	// once. Call it before the server's Shutdown, which would wait for them.
	Drain func()
}

// New builds the handlers. It starts nothing.
func New(engine *application.Engine, cfg Config) *API {
	if cfg.Log == nil {
		cfg.Log = slog.Default()
	}
	if cfg.MaxBody == 0 {
		cfg.MaxBody = defaultMaxBody
	}
	if cfg.DefaultPaymentWindow == 0 {
		cfg.DefaultPaymentWindow = domain.DefaultPayWindow
	}
	a := &API{engine: engine, cfg: cfg, log: cfg.Log, grabTime: deadlines{most: buyerTime, span: grabSpan}}
	a.draining, a.Drain = context.WithCancel(context.Background())
	a.buyers = a.router()
	a.buyerRoutes(a.buyers)
	a.operator = a.router()
	a.operatorRoutes(a.operator)
	return a
}

// Buyer is the handler of the public listener.
func (a *API) Buyer() http.Handler { return a.buyers }

// Operator is the handler of the operators' listener. All of it but /healthz
// and /readyz is behind the token.
func (a *API) Operator() http.Handler { return a.operator }

func (a *API) router() *gin.Engine {
	gin.SetMode(gin.ReleaseMode)
	r := gin.New()
	r.HandleMethodNotAllowed = true
	r.RedirectTrailingSlash = false
	// Forwarded-For headers are anybody's word until a proxy is trusted by name.
	if err := r.SetTrustedProxies(nil); err != nil {
		panic(err) // only a malformed list fails, and this one is empty
	}
	r.NoRoute(a.do(func(*gin.Context) error { return errNoRoute }))
	r.NoMethod(a.do(func(*gin.Context) error { return errMethod }))
	a.probes(r) // before any middleware, so that they need no token
	return r
}

// do makes a handler of one that returns its error, so that errors are
// answered in one place.
func (a *API) do(handle func(*gin.Context) error) gin.HandlerFunc {
	return func(c *gin.Context) {
		if err := handle(c); err != nil {
			a.fail(c, err)
		}
	}
}

func (a *API) buyerRoutes(r *gin.Engine) {
	r.Use(a.recovered)
	r.POST("/api/seckill/order", a.do(a.grab))
	api := r.Group("/api/seckill", limitBody(a.cfg.MaxBody), limitTime(buyerTime))
	api.GET("/order/:orderId", a.do(a.order))
	api.POST("/order/:orderId/pay", a.do(a.pay))
	api.POST("/order/:orderId/cancel", a.do(a.cancel))
	api.GET("/activities", a.do(a.activities))
	api.GET("/activities/:id", a.do(a.activity))
}

func (a *API) operatorRoutes(r *gin.Engine) {
	// The audit is outside the recovery, so that it sees a panic's 500.
	r.Use(a.token, a.audited, a.recovered, limitBody(operatorMaxBody), limitTime(operatorTime))
	admin := r.Group("/api/admin")
	admin.GET("/activities", a.do(a.listActivities))
	admin.GET("/activities/:id", a.do(a.findActivity))
	admin.PUT("/activities/:id", a.do(a.saveActivity))
	admin.POST("/activities/:id/preheat", a.do(a.command(a.engine.Preheat)))
	admin.POST("/activities/:id/archive", a.do(a.command(a.engine.Archive)))
	for _, name := range []string{"open", "pause", "resume", "close"} {
		admin.POST("/activities/:id/"+name, a.do(a.command(func(ctx context.Context, id domain.ActivityID) (domain.Activity, error) {
			return a.engine.SetState(ctx, id, name)
		})))
	}
	admin.GET("/activities/:id/skus/:skuId/stock", a.do(a.stockEdits))
	admin.POST("/activities/:id/skus/:skuId/stock", a.do(a.editStock))
	admin.GET("/activities/:id/report", a.do(a.report))
	admin.POST("/activities/:id/reconcile", a.do(a.reconcile))
	admin.GET("/dead-letters", a.do(a.deadLetters))
	admin.POST("/dead-letters/:id/replay", a.do(a.replay))
	admin.POST("/dead-letters/:id/discard", a.do(a.discard))
	a.profiling(r)
	if a.cfg.Metrics != nil {
		r.GET("/metrics", gin.WrapH(a.cfg.Metrics))
	}
}

// send answers 200 with JSON. Nothing here may be kept by a cache on the way: the
// same question has another answer a moment later.
func send(c *gin.Context, body any) {
	sendAs(c, http.StatusOK, "application/json; charset=utf-8", body)
}

func sendAs(c *gin.Context, status int, contentType string, body any) {
	data, err := json.Marshal(body)
	if err != nil {
		panic(err) // the bodies are this package's own types, none of which can fail
	}
	c.Header("Cache-Control", "no-store")
	c.Data(status, contentType, data)
}
