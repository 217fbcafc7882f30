//go:build !unix

package mitm

import (
	"os"
	"syscall"
)

const errIsDirectory = syscall.EISDIR

// openNonblocking opens a file for reading.
func openNonblocking(path string) (*os.File, error) { return os.Open(path) }

// systemErrnoName is "": error numbers have other names here.
func systemErrnoName(error) string { return "" }
