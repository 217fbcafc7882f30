package main

import (
	"errors"
	"os"
)

// noFollow is nothing here: making a link takes a privilege.
const noFollow = 0

// duplicate gives standard output under a name of its own. Windows hands no numbered descriptors to a program.
func duplicate(fd int) (*os.File, string, error) {
	if uintptr(fd) != os.Stdout.Fd() {
		return nil, "", errors.New("descriptors cannot be handed to a program on Windows; name a file")
	}
	return os.Stdout, "", nil
}
