package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"runtime/debug"
	"sync/atomic"
	"time"

	"go.uber.org/fx"

	"seckill/adapters/httpapi"
	"seckill/adapters/sqlstore"
	"seckill/adapters/telemetry"
	"seckill/application"
	"seckill/domain"
)

// HTTP adds the listeners of buyers and operators to Module.
var HTTP = fx.Module("http", fx.Provide(newAPI, newBound), fx.Invoke(listen))

// health tells whether this node can take grabs.
type health struct {
	stopping atomic.Bool
	store    *sqlstore.Store
	hot      pinger
}

func newHealth(store *sqlstore.Store, hot pinger) *health {
	return &health{store: store, hot: hot}
}

func (h *health) ready(ctx context.Context) error {
	if h.stopping.Load() {
		return errors.New("shutting down")
	}
	if err := h.hot(ctx); err != nil {
		return fmt.Errorf("hot store: %w", err)
	}
	if err := h.store.Ping(ctx); err != nil {
		return fmt.Errorf("database: %w", err)
	}
	return nil
}

func newAPI(config Config, engine *application.Engine, metrics *telemetry.Metrics, health *health, clock domain.Clock, log *slog.Logger) *httpapi.API {
	return httpapi.New(engine, httpapi.Config{
		AdminToken: config.Admin.Token, DefaultPaymentWindow: config.PaymentWindow,
		Metrics: metrics.Handler(), Ready: health.ready, Clock: clock, Log: log,
	})
}

// gcPercent is GOGC where the environment does not set it. With the stock in
// Redis the heap holds little but connections, so it stays small: at 1,000 of
// them some 40 MB are alive, which a fourfold heap collects a quarter as often.
const gcPercent = 400

// TuneGC sets the garbage collector as the service has it. It leaves a process
// alone whose heap is the hot store: that may be large.
func TuneGC(config Config) {
	if _, set := os.LookupEnv("GOGC"); !set && config.Stock != "memory" {
		debug.SetGCPercent(gcPercent)
	}
}

// listen opens both listeners with the application. At the stop the node first
// says that it is not ready, then takes no new request and finishes the others.
func listen(lc fx.Lifecycle, config Config, api *httpapi.API, health *health, bound *Bound, shutdown fx.Shutdowner, log *slog.Logger) {
	lc.Append(fx.StartHook(func() { TuneGC(config) }))
	if config.Auth == "body" {
		log.Warn("auth=body: a request says who its buyer is; let only a gateway that checks reach the buyers' listener")
	}
	for _, l := range []struct {
		key    string
		server *http.Server
		bound  *string
		wrap   func(net.Listener) net.Listener
	}{
		{"admin.addr", httpapi.Server(config.Admin.Addr, api.Operator()), &bound.Admin, func(l net.Listener) net.Listener { return l }},
		{"addr", httpapi.Server(config.Addr, api.Buyer()), &bound.Buyers, httpapi.Listener},
	} {
		lc.Append(fx.Hook{
			OnStart: func(ctx context.Context) error {
				listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", l.server.Addr)
				if err != nil {
					return fmt.Errorf("%s: %w: set another one (%s)", l.key, err, setting{key: l.key}.env())
				}
				*l.bound = listener.Addr().String()
				log.Info("listening", "for", l.key, "addr", listener.Addr().String())
				go func() {
					if err := l.server.Serve(l.wrap(listener)); !errors.Is(err, http.ErrServerClosed) {
						log.Error("listener failed", "addr", l.server.Addr, "error", err)
						_ = shutdown.Shutdown(fx.ExitCode(1))
					}
				}()
				return nil
			},
			OnStop: func(ctx context.Context) error {
				health.stopping.Store(true)
				api.Drain()
				defer flushLog(log) // no grab writes a line after this
				return drain(ctx, l.server, log)
			},
		})
	}
}

// drain finishes a server's requests, in half of the time that is left at most:
// the other half is for the queue and the stores. A client that does not finish
// its own request by then is cut off.
func drain(ctx context.Context, server *http.Server, log *slog.Logger) error {
	if deadline, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Until(deadline)/2)
		defer cancel()
	}
	err := server.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		log.Warn("requests that did not finish in time are cut off", "addr", server.Addr)
		return server.Close()
	}
	return err
}
