package proxy

import (
	"io"
	"log/slog"
)

// testLogger writes everything to w.
func testLogger(w io.Writer) *slog.Logger {
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: slog.LevelDebug}))
}
