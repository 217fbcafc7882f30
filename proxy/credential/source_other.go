//go:build !linux

package credential

import (
	"errors"
	"os"
)

// openSource opens a file to read at an absolute path without links.
func openSource(location string) (*os.File, error) {
	info, err := os.Lstat(location)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("it is not a regular file")
	}
	return os.Open(location)
}
