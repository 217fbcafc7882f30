package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/srt-sandbox/srt/runtime/config"
)

// settingsName is the default settings file in the home directory (CFG-1).
const settingsName = ".srt-settings.json"

// What a run with the built-in configuration would drop (CFG-7).
const (
	askedRules = "the rules --settings asked for"
	fileRules  = "this file's rules (its denyRead, allowRead and credential entries included)"
)

// settings is an accepted configuration and where it came from.
type settings struct {
	config *config.Config
	// path is the absolute path of a regular file that was read; empty for a pipe, a device or the built-in config.
	path string
	// absent is the default file's path when it is absent and the built-in config is used (CFG-3).
	absent string
}

// settingsError is a settings file that stops the run (CFG-4 to CFG-7).
type settingsError struct {
	path   string // as spelled
	reason string // the rest of the sentence, with its own punctuation
	drops  string // what the built-in config would drop
	cause  error
}

// Error returns both lines of CFG-7, the first without its "Error: " prefix.
func (e *settingsError) Error() string {
	return fmt.Sprintf("%s %s\nRefusing to run with the built-in defaults: that would drop %s.",
		e.path, e.reason, e.drops)
}

// Unwrap returns the error below, nil for an empty file.
func (e *settingsError) Unwrap() error { return e.cause }

// readSettings reads the one settings file of a run: path as spelled on the command line, or the default file when path
// is empty. Only an absent default file gives the built-in config (CFG-3); every other failure is an error (CFG-9).
func readSettings(path string, home func() (string, error)) (*settings, error) {
	asked := path != ""
	if !asked {
		dir, err := home()
		if err != nil {
			return nil, err
		}
		path = filepath.Join(dir, settingsName)
	}
	data, regular, err := readStream(path)
	switch {
	case err == nil:
	case !asked && errors.Is(err, fs.ErrNotExist):
		return &settings{config: config.Default(), absent: path}, nil
	case asked && errors.Is(err, fs.ErrNotExist):
		return nil, &settingsError{path, "does not exist.", askedRules, err}
	default:
		return nil, &settingsError{path, fmt.Sprintf("could not be read (%s).", errnoName(err)), fileRules, err}
	}
	cfg, err := decodeSettings(path, data)
	if err != nil {
		return nil, err
	}
	s := &settings{config: cfg}
	if regular {
		if s.path, err = filepath.Abs(path); err != nil {
			return nil, fmt.Errorf("the absolute path of %s could not be found: %w", path, err)
		}
	}
	return s, nil
}

// readStream reads path to its end as a byte stream, so that a pipe or a device serves as well as a file (CFG-2), and
// tells whether it is a regular file. How it fails is found by the read itself, never by a check before it.
func readStream(path string) (data []byte, regular bool, err error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, false, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, false, err
	}
	data, err = io.ReadAll(file)
	return data, info.Mode().IsRegular(), err
}

func decodeSettings(path string, data []byte) (*config.Config, error) {
	if len(bytes.TrimSpace(data)) == 0 {
		return nil, &settingsError{path, "is empty. Delete it, or put a config in it.", fileRules, nil}
	}
	cfg, err := config.Decode(data)
	if err == nil {
		return cfg, nil
	}
	var syntax *config.SyntaxError
	if errors.As(err, &syntax) {
		return nil, &settingsError{path, "is not valid JSON: " + syntax.Detail, fileRules, err}
	}
	return nil, &settingsError{path, "does not hold a valid config — " + err.Error(), fileRules, err}
}
