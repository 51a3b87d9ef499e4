package bootstrap

import (
	"context"
	"io"
	"log/slog"

	"seckill/application"
)

var logLevels = map[string]slog.Leveler{
	"debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError,
}

// NewLogger makes the service's log. Values are structured, so no input can
// forge a line.
//
// Lines about single grabs are gathered and written together, up to
// lazyDelay later, so that a grab never waits for whoever reads the log. Every
// other line is written at once, after those that came before it.
func NewLogger(config Config, to io.Writer) *slog.Logger {
	options := &slog.HandlerOptions{Level: logLevels[config.Log.Level]}
	format := func(to io.Writer) slog.Handler {
		if config.Log.Format == "text" {
			return slog.NewTextHandler(to, options)
		}
		return slog.NewJSONHandler(to, options)
	}
	lazy := &lazyWriter{to: to, tell: slog.New(format(to))}
	later := format(lazy)
	if config.Log.Format == "json" {
		later = &plainLines{later, lazy}
	}
	return slog.New(&logHandler{atOnce: format(lazy.direct()), later: later, lazy: lazy})
}

// logHandler parts the lines about single grabs from all others.
type logHandler struct {
	atOnce slog.Handler
	later  slog.Handler
	lazy   *lazyWriter
}

func (h *logHandler) Enabled(ctx context.Context, level slog.Level) bool {
	return h.atOnce.Enabled(ctx, level)
}

func (h *logHandler) Handle(ctx context.Context, record slog.Record) error {
	if record.Message == application.GrabLine {
		return h.later.Handle(ctx, record)
	}
	return h.atOnce.Handle(ctx, record)
}

func (h *logHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &logHandler{h.atOnce.WithAttrs(attrs), h.later.WithAttrs(attrs), h.lazy}
}

func (h *logHandler) WithGroup(name string) slog.Handler {
	return &logHandler{h.atOnce.WithGroup(name), h.later.WithGroup(name), h.lazy}
}

// flushLog writes what a log of NewLogger has gathered; other logs gather nothing.
func flushLog(log *slog.Logger) {
	if h, ok := log.Handler().(*logHandler); ok {
		h.lazy.flush()
	}
}
