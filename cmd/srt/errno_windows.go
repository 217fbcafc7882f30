package main

import (
	"errors"
	"io/fs"
)

// errnoName returns the name that other platforms give to the system error below err, for the message of CFG-6.
func errnoName(err error) string {
	names := []struct {
		is   error
		name string
	}{{fs.ErrPermission, "EACCES"}, {fs.ErrNotExist, "ENOENT"}, {fs.ErrInvalid, "EINVAL"}}
	for _, known := range names {
		if errors.Is(err, known.is) {
			return known.name
		}
	}
	var path *fs.PathError
	if errors.As(err, &path) {
		return path.Err.Error()
	}
	return err.Error()
}
