package main

import (
	"fmt"
	"log/slog"
	"path/filepath"
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
		ownFiles:  e.app.ownFiles(s),
		debug:     e.log,
		debugging: e.app.debugging(e.opts),
		violation: func(line string) { e.log.Debug("violation: " + line) },
		warning:   func(line string) { fmt.Fprintf(e.app.stderr, "Warning: %s\n", line) },
		timing:    func(phase string) { e.app.timing(e.log, phase) },
	}
}

// ownFiles are the settings file in use, unless it is a pipe or a device, and the default one: the next run may read that
// (FS-51).
func (a *app) ownFiles(s *settings) (paths []string) {
	if s.path != "" {
		paths = append(paths, s.path)
	}
	if home, err := a.homeDirectory(); err == nil {
		if path := filepath.Join(home, settingsName); path != s.path {
			paths = append(paths, path)
		}
	}
	return paths
}
