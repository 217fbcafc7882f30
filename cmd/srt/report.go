package main

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"

	"github.com/srt-sandbox/srt/runtime"
	"github.com/srt-sandbox/srt/runtime/violation"
)

// settings reads the settings of this run and names what of them has no effect: under debug, or as a warning where the key
// looks like one that was meant to protect something.
func (a *app) settings(opts *options, log *slog.Logger) (*settings, error) {
	s, err := readSettings(opts.settings, a.homeDirectory)
	if err != nil {
		return nil, err
	}
	a.timing(log, "settings read")
	if s.absent != "" {
		log.Debug("no settings file at " + s.absent + ": using the built-in configuration " +
			"(no network, no writes but the default write paths)") // CFG-3
	}
	for _, key := range s.config.UnknownKeys() {
		log.Debug("unknown settings key ignored: " + key.Path) // CFG-14
		if key.Grave() {
			fmt.Fprintln(a.stderr, asWarning(key.String()))
		}
	}
	for _, key := range s.config.IgnoredKeys() {
		log.Debug("settings key has no effect in srt: " + key) // CFG-30
	}
	return s, nil
}

// sessionOptions are the reports a session makes while it lives.
func (e *execution) sessionOptions(s *settings) sessionOptions {
	report := e.violations.ownPlace()
	if s.config.Filesystem.Disabled { // then nothing keeps it from being changed but what hides it (FS-56)
		report = ownPlace{private: cmp.Or(report.private, report.own)}
	}
	return sessionOptions{
		ownFiles:       append(e.app.ownFiles(s), list(report.own)...),
		privateFiles:   slices.Concat(e.control.hidden(), list(report.private), list(s.place.private)),
		nullDescriptor: e.control.number(),
		ask:            e.prompt.callback(),
		debug:          e.log,
		debugging:      e.app.debugging(e.opts),
		monitor:        e.monitor(),
		violation:      e.violation,
		warning:        func(line string) { fmt.Fprintln(e.app.stderr, asWarning(line)) },
		timing:         func(phase string) { e.app.timing(e.log, phase) },
	}
}

// asWarning is a line for standard error. One whose words are laid down says itself what it is (CRED-14).
func asWarning(line string) string {
	if strings.HasPrefix(line, "[sandbox-runtime] ") {
		return line
	}
	return "Warning: " + line
}

// monitor is what of the kernel's refusals the run asks for: they cost something, so only a run that shows them does.
func (e *execution) monitor() runtime.Monitor {
	if e.violations != nil || e.app.debugging(e.opts) {
		return runtime.MonitorAll
	}
	return runtime.MonitorOff
}

// filesUnwatched tells whether there are rules about files, and nobody reports what they refuse.
func (e *execution) filesUnwatched(s *settings) bool {
	return e.monitor() == runtime.MonitorOff && !s.config.Filesystem.Disabled
}

// violation is told of each refusal.
func (e *execution) violation(event violation.Event) {
	if e.log.Enabled(context.Background(), slog.LevelDebug) { // the line is not made for nobody
		e.log.Debug("violation: " + event.Line())
	}
	if !e.opts.quiet {
		e.refused.note(event)
	}
}

// ownFiles are the settings file in use, unless it is a pipe or a device, and the default one: the next run may read that
// (FS-51).
func (a *app) ownFiles(s *settings) (paths []string) {
	paths = list(s.place.own)
	if home, err := a.homeDirectory(); err == nil {
		if path := filepath.Join(home, settingsName); path != s.place.own {
			paths = append(paths, path)
		}
	}
	return paths
}
