package bootstrap

import (
	"io"
	"log/slog"
)

var logLevels = map[string]slog.Leveler{
	"debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError,
}

// NewLogger makes the service's log. Values are structured, so no input can
// forge a line.
func NewLogger(config Config, to io.Writer) *slog.Logger {
	options := &slog.HandlerOptions{Level: logLevels[config.Log.Level]}
	if config.Log.Format == "text" {
		return slog.New(slog.NewTextHandler(to, options))
	}
	return slog.New(slog.NewJSONHandler(to, options))
}
