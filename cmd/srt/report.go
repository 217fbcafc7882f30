package main

import (
	"fmt"
	"log/slog"
)

// settings reads the settings of this run and, under debug, names what of them has no effect.
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
		log.Debug("unknown settings key ignored: " + key) // CFG-14
	}
	for _, key := range s.config.IgnoredKeys() {
		log.Debug("settings key has no effect in srt: " + key) // CFG-30
	}
	return s, nil
}

// sessionOptions are the reports a session makes while it lives.
func (e *execution) sessionOptions(s *settings) sessionOptions {
	return sessionOptions{
		settingsFile: s.path,
		debug:        e.log,
		debugging:    e.app.debugging(e.opts),
		violation:    func(line string) { e.log.Debug("violation: " + line) },
		warning:      func(line string) { fmt.Fprintf(e.app.stderr, "Warning: %s\n", line) },
		timing:       func(phase string) { e.app.timing(e.log, phase) },
	}
}
