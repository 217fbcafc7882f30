package main

import "os"

// placeOf tells where an open file could be opened once more.
func placeOf(f *os.File) (p ownPlace, err error) {
	if regular(f) {
		p.own, err = realPath(f.Name())
	}
	return p, err
}
