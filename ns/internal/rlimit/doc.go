// Package rlimit remembers the soft limit of open files that this process was started with.
//
// Go's package syscall raises the soft limit to the hard one when it initialises (golang.org/issue/46279) and undoes
// that for the children it starts itself. Children that ns starts need the same. So this package must be initialised
// before syscall, and cannot import it: it has no imports at all, and its path sorts before some that syscall needs. The
// language's order (packages sorted by import path, each as soon as its imports are initialised) then runs it first; a
// test holds that.
//
// What does not belong here: changing any limit.
package rlimit
