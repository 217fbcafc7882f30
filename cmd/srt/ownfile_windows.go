package main

import (
	"os"
	"path/filepath"
)

// placeOf tells where an open file could be opened once more.
func placeOf(f *os.File) (p ownPlace, err error) {
	if regular(f) {
		p.own, err = realPath(f.Name())
	}
	return p, err
}

// realPath is the absolute path of a file, links followed: that is what commands must not change.
func realPath(path string) (string, error) {
	path, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", err
	}
	return filepath.Abs(path)
}
