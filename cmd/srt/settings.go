package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

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
	// place is where the file that was read could be opened once more: a later run may read it. A FIFO that commands could open
	// would give them what is meant for that run, and that run what they write. Zero for a pipe, a device or the built-in config.
	place ownPlace
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
	data, place, err := readStream(path)
	switch {
	case err == nil:
	case !asked && errors.Is(err, fs.ErrNotExist):
		return &settings{config: config.Default(), absent: path}, nil
	case asked && errors.Is(err, fs.ErrNotExist):
		return nil, &settingsError{path, "does not exist.", askedRules, err}
	case errors.Is(err, errOtherName):
		return nil, &settingsError{path, "is not safe to use: " + errOtherName.Error() + ".", fileRules, err}
	default:
		return nil, &settingsError{path, fmt.Sprintf("could not be read (%s).", errnoName(err)), fileRules, err}
	}
	cfg, err := decodeSettings(path, data)
	if err != nil {
		return nil, err
	}
	return &settings{config: cfg, place: place}, nil
}

// readStream reads path to its end as a byte stream, so that a pipe or a device serves as well as a file (CFG-2), and
// tells where what was read could be opened once more. How it fails is found by the read itself, never by a check before it.
func readStream(path string) (data []byte, place ownPlace, err error) {
	file, err := os.Open(path) //nolint:gosec // reading the file that a person names is what it is for
	if err != nil {
		return nil, place, err
	}
	defer file.Close()
	if data, err = io.ReadAll(file); err != nil {
		return nil, place, err
	}
	place, err = settingsPlace(file, path)
	return data, place, err
}

// settingsPlace is the place of a settings file. That of a regular file is what it is called by, links included: these are
// to stay as well (FS-42). By the names of descriptors (/dev/stdin, /dev/fd/3) it is called for this process alone.
func settingsPlace(file *os.File, path string) (place ownPlace, err error) {
	path, err = filepath.Abs(path)
	if err != nil {
		return place, fmt.Errorf("the absolute path could not be found: %w", err)
	}
	if regular(file) && !strings.HasPrefix(path, "/dev/") && !strings.HasPrefix(path, "/proc/") {
		return ownPlace{own: path}, nil
	}
	return placeOf(file)
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
