package httpapi

import (
	"context"
	"fmt"
	"net/http"
	"net/http/pprof"
	"time"

	"github.com/gin-gonic/gin"

	"seckill/domain"
)

// readyTimeout bounds one readiness check, so that a store that hangs makes
// the process unready instead of silent.
const readyTimeout = 2 * time.Second

func (a *API) probes(r *gin.Engine) {
	r.GET("/healthz", a.recovered, func(c *gin.Context) {
		send(c, gin.H{"status": "ok"})
	})
	r.GET("/readyz", a.recovered, a.do(a.ready))
}

func (a *API) ready(c *gin.Context) error {
	if a.cfg.Ready != nil {
		ctx, cancel := context.WithTimeout(c.Request.Context(), readyTimeout)
		defer cancel()
		if err := a.cfg.Ready(ctx); err != nil {
			return fmt.Errorf("%w: not ready: %w", domain.ErrUnavailable, err)
		}
	}
	send(c, gin.H{"status": "ok"})
	return nil
}

// profiling serves the runtime's profiles. Importing the package also puts
// them on http.DefaultServeMux, which this program never serves.
func (a *API) profiling(r *gin.Engine) {
	r.GET("/debug/pprof", func(c *gin.Context) { c.Redirect(http.StatusFound, "/debug/pprof/") })
	r.GET("/debug/pprof/*name", func(c *gin.Context) {
		serve := pprof.Index
		switch c.Param("name") {
		case "/cmdline":
			serve = pprof.Cmdline
		case "/profile":
			serve = pprof.Profile
		case "/symbol":
			serve = pprof.Symbol
		case "/trace":
			serve = pprof.Trace
		}
		serve(c.Writer, c.Request)
	})
}
