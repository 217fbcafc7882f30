package main

import (
	"errors"
	"os"
)

// ownPlace is where commands could open a file of srt's once more, and what they are kept from there. The zero value is a file
// without a name: a pipe, or one that is removed.
type ownPlace struct {
	own     string // absolute path of a regular file, which commands cannot change
	private string // absolute path of a FIFO, which commands cannot open at all: reading it takes from it
}

// errOtherName is a file that a command could reach past what keeps it from the name that is known.
var errOtherName = errors.New("it has a second name, a hard link, by which the command could reach it; " +
	"remove that, or use a file of its own (a copy has one name)")

// list is a path as a list, empty for none.
func list(path string) []string {
	if path == "" {
		return nil
	}
	return []string{path}
}

// regular tells whether a file is one that commands are only kept from changing.
func regular(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode().IsRegular()
}
