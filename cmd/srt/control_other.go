//go:build !linux

package main

import "runtime"

// openDescriptor refuses the channel where this version of srt has no sandbox to control.
func openDescriptor(fd int) (controlInput, string, error) {
	return nil, "", &controlError{fd, "the control channel is not available on " + runtime.GOOS + " in this version of srt"}
}

// errnoText is the description of an error.
func errnoText(err error) string { return err.Error() }
