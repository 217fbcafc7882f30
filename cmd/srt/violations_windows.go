package main

import (
	"errors"
	"os"
)

// openReport opens a file to append to. A link in its place is followed: making one takes a privilege.
func openReport(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
}

// duplicate gives standard output under a name of its own. Windows hands no numbered descriptors to a program.
func duplicate(fd int) (*os.File, ownPlace, error) {
	if uintptr(fd) != os.Stdout.Fd() {
		return nil, ownPlace{}, errors.New("descriptors cannot be handed to a program on Windows; name a file")
	}
	return os.Stdout, ownPlace{}, nil
}
