package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/srt-sandbox/srt/runtime/violation"
)

// debugVariable turns debug lines on when it holds anything (CLI-11); debugTiming as its value adds durations.
const (
	debugVariable = "SRT_DEBUG"
	debugTiming   = "timing"
)

// debugPrefix starts every debug line (CLI-11).
const debugPrefix = "[SandboxDebug] "

// debugging tells whether debug lines are wanted: -d, or the variable with any value at all, "0" and "false" included.
func (a *app) debugging(opts *options) bool {
	return opts.debug || a.getenv(debugVariable) != ""
}

// logger returns the logger of this run: to standard error under debug, to nowhere otherwise, so that a good run is
// silent (CLI-11).
func (a *app) logger(opts *options) *slog.Logger {
	if !a.debugging(opts) {
		return slog.New(slog.DiscardHandler)
	}
	return slog.New(&debugHandler{mu: &sync.Mutex{}, w: a.stderr})
}

// timing logs how long the run has taken so far, if asked to.
func (a *app) timing(log *slog.Logger, phase string) {
	if a.getenv(debugVariable) == debugTiming {
		log.Debug(fmt.Sprintf("timing: %s at %.3f ms", phase, float64(time.Since(a.started))/float64(time.Millisecond)))
	}
}

// debugHandler writes each record as one line: prefix, message, then key=value pairs. It is safe for concurrent use:
// handlers made from one another share the lock.
type debugHandler struct {
	mu    *sync.Mutex
	w     io.Writer
	attrs string // already formatted
	group string // prefix of keys, with its dot
}

// Enabled accepts every level: the handler exists only under debug.
func (h *debugHandler) Enabled(context.Context, slog.Level) bool { return true }

// Handle writes one line. What came from a sandbox cannot start a line of its own: control characters are cleaned out
// (NET-75).
func (h *debugHandler) Handle(_ context.Context, r slog.Record) error {
	var line strings.Builder
	line.WriteString(r.Message)
	line.WriteString(h.attrs)
	r.Attrs(func(attr slog.Attr) bool {
		appendAttr(&line, h.group, attr)
		return true
	})
	h.mu.Lock()
	defer h.mu.Unlock()
	_, err := io.WriteString(h.w, debugPrefix+violation.Clean(line.String())+"\n")
	return err
}

// WithAttrs returns a handler that adds attrs to every line.
func (h *debugHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	var text strings.Builder
	for _, attr := range attrs {
		appendAttr(&text, h.group, attr)
	}
	child := *h
	child.attrs += text.String()
	return &child
}

// WithGroup returns a handler that puts name and a dot before every key.
func (h *debugHandler) WithGroup(name string) slog.Handler {
	child := *h
	if name != "" {
		child.group += name + "."
	}
	return &child
}

func appendAttr(line *strings.Builder, group string, attr slog.Attr) {
	value := attr.Value.Resolve()
	if value.Kind() == slog.KindGroup {
		if attr.Key != "" {
			group += attr.Key + "."
		}
		for _, member := range value.Group() {
			appendAttr(line, group, member)
		}
		return
	}
	if !attr.Equal(slog.Attr{}) {
		fmt.Fprintf(line, " %s%s=%s", group, attr.Key, value.String())
	}
}
