// Package rlimit remembers the soft limit of open files that this process was started with.
//
// Go's package os raises the soft limit to the hard one when it initialises (golang.org/issue/46279) and package
// syscall undoes that for the children it starts itself. Children that ns starts need the same. This package imports
// nothing that imports os, and its import path sorts before "os", so that the language's initialisation order (packages
// sorted by import path, each as soon as its imports are initialised) runs it first; a test holds that.
//
// What does not belong here: changing any limit.
package rlimit

import "syscall"

var original, originalErr = read()

func read() (syscall.Rlimit, error) {
	var r syscall.Rlimit
	err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &r)
	return r, err
}

// NoFile gives the limits of open files (RLIMIT_NOFILE, getrlimit(2)) that the process had when it started.
// It is safe for concurrent use.
func NoFile() (syscall.Rlimit, error) { return original, originalErr }
