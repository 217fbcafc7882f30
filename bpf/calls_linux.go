package bpf

import (
	"golang.org/x/sys/unix"
)

// How a call treats the last name of its path, and where it says so.
const (
	followAlways = iota
	followNever
	followUnlessAt   // AT_SYMLINK_NOFOLLOW in its flags
	followUnlessOpen // O_NOFOLLOW, or O_CREAT with O_EXCL
)

// Kinds and shapes of call, as programs/trace.h numbers them.
const (
	callWrite   = 1
	callRead    = 2
	callOpen    = 3
	callOpenHow = 4

	shapeTwo   = 1
	shapeNames = 2
	shapeLinks = 4
	shapeOther = 8
)

// none is an argument that a call does not have.
const none = 7

// tracedCall says where the arguments of a system call are.
type tracedCall struct {
	number uint32
	name   string
	kind   uint8
	flags  uint8    // none: it has no flags
	dir    [2]uint8 // none: the working directory
	path   [2]uint8 // none: the descriptor itself
	follow uint8
	// effects of each path; the second is empty for a call with one. Those of an open follow from its flags.
	effects [2][]Effect
	names   bool       // it takes names away or moves them: EBUSY and EXDEV can be refusals
	links   bool       // a symbolic link may be where none was
	change  ChangeKind // what its success does to a name
}

// The effects of calls.
var (
	reading  = []Effect{EffectRead}
	changing = []Effect{EffectChange}
	creating = []Effect{EffectCreate}
	removing = []Effect{EffectRemove}
	swapping = []Effect{EffectRemove, EffectCreate}
	opening  = []Effect{EffectCreate, EffectChange}
	updating = []Effect{EffectChange, EffectRead}
)

// sysSetxattrat and the others have one number on every architecture, and the library no name for them (Linux 6.13).
const (
	sysSetxattrat    = 463
	sysRemovexattrat = 466
	sysFchmodat2     = 452
)

// on is a call about the path in one argument, from the working directory.
func on(number uint32, name string, kind, path, follow uint8, effects []Effect) tracedCall {
	return tracedCall{number: number, name: name, kind: kind, flags: none, dir: [2]uint8{none, none}, path: [2]uint8{path, none},
		follow: follow, effects: [2][]Effect{effects}, names: len(effects) > 0 && effects[0] == EffectRemove}
}

// at is a call about the path in an argument, from the directory in the argument before it. flags is the argument that has
// the flags.
func at(number uint32, name string, kind, path, flags, follow uint8, effects []Effect) tracedCall {
	c := on(number, name, kind, path, follow, effects)
	c.dir[0], c.flags = path-1, flags
	return c
}

// about is a call about a descriptor, its first argument.
func about(number uint32, name string, kind uint8, effects []Effect) tracedCall {
	c := on(number, name, kind, none, followAlways, effects)
	c.dir[0] = 0
	return c
}

// linking is a call that makes another name for a file, whose old one is in the arguments dir and path.
func linking(c tracedCall, dir, path uint8) tracedCall {
	c.names, c.links, c.change = true, true, ChangeName // EXDEV
	c.dir[1], c.path[1] = dir, path
	return c
}

// placing is a call that makes a symbolic link, with the text in its first argument.
func placing(c tracedCall) tracedCall {
	c.links, c.change, c.path[1] = true, ChangeLink, 0
	return c
}

// taking is a call that takes a name away.
func taking(c tracedCall) tracedCall {
	c.change = ChangeGone
	return c
}

// renaming is a rename with directories.
func renaming(number uint32, name string, flags uint8) tracedCall {
	c := at(number, name, callWrite, 1, flags, followNever, removing)
	c.dir[1], c.path[1], c.effects[1], c.links, c.change = 2, 3, creating, true, ChangeMove
	return c
}

// tracedCalls are the calls that are watched on this architecture: those of VIO-10 that it has, openat2, the attributes, and
// those that read.
func tracedCalls() []tracedCall {
	return append(oldCalls(),
		at(unix.SYS_OPENAT, "openat", callOpen, 1, 2, followUnlessOpen, nil),
		at(unix.SYS_OPENAT2, "openat2", callOpenHow, 1, 2, followUnlessOpen, nil),
		taking(at(unix.SYS_UNLINKAT, "unlinkat", callWrite, 1, 2, followNever, removing)),
		at(unix.SYS_MKDIRAT, "mkdirat", callWrite, 1, none, followNever, creating),
		at(unix.SYS_MKNODAT, "mknodat", callWrite, 1, none, followNever, creating),
		linking(at(unix.SYS_LINKAT, "linkat", callWrite, 3, 4, followNever, creating), 0, 1),
		placing(at(unix.SYS_SYMLINKAT, "symlinkat", callWrite, 2, none, followNever, creating)),
		renaming(unix.SYS_RENAMEAT2, "renameat2", 4),
		on(unix.SYS_TRUNCATE, "truncate", callWrite, 0, followAlways, changing),
		at(unix.SYS_FCHMODAT, "fchmodat", callWrite, 1, none, followAlways, changing),
		at(sysFchmodat2, "fchmodat2", callWrite, 1, 3, followUnlessAt, changing),
		about(unix.SYS_FCHMOD, "fchmod", callWrite, changing),
		at(unix.SYS_FCHOWNAT, "fchownat", callWrite, 1, 4, followUnlessAt, changing),
		about(unix.SYS_FCHOWN, "fchown", callWrite, changing),
		at(unix.SYS_UTIMENSAT, "utimensat", callWrite, 1, 3, followUnlessAt, changing),
		on(unix.SYS_SETXATTR, "setxattr", callWrite, 0, followAlways, changing),
		on(unix.SYS_LSETXATTR, "lsetxattr", callWrite, 0, followNever, changing),
		about(unix.SYS_FSETXATTR, "fsetxattr", callWrite, changing),
		on(unix.SYS_REMOVEXATTR, "removexattr", callWrite, 0, followAlways, changing),
		on(unix.SYS_LREMOVEXATTR, "lremovexattr", callWrite, 0, followNever, changing),
		about(unix.SYS_FREMOVEXATTR, "fremovexattr", callWrite, changing),
		at(sysSetxattrat, "setxattrat", callWrite, 1, 2, followUnlessAt, changing),
		at(sysRemovexattrat, "removexattrat", callWrite, 1, 2, followUnlessAt, changing),
		on(unix.SYS_EXECVE, "execve", callRead, 0, followAlways, reading),
		at(unix.SYS_EXECVEAT, "execveat", callRead, 1, 4, followUnlessAt, reading),
		at(unix.SYS_READLINKAT, "readlinkat", callRead, 1, none, followNever, reading),
		on(unix.SYS_CHDIR, "chdir", callRead, 0, followAlways, reading),
		about(unix.SYS_FCHDIR, "fchdir", callRead, reading))
}

// effectsOf are those of one path of a call with flags.
func (c *tracedCall) effectsOf(which int, flags uint64) []Effect {
	switch {
	case c.kind == callOpen || c.kind == callOpenHow:
		return effectsOfOpen(flags)
	case len(c.effects[1]) > 0 && c.flags != none && flags&unix.RENAME_EXCHANGE != 0:
		return swapping
	}
	return c.effects[which]
}

// effectsOfOpen are those of an open, which tells by its flags whether it may create. What it finds instead, it changes.
func effectsOfOpen(flags uint64) []Effect {
	switch {
	case flags&unix.O_CREAT != 0:
		return opening
	case flags&unix.O_ACCMODE == unix.O_RDWR:
		return updating
	case flags&(unix.O_ACCMODE|unix.O_TRUNC) != 0:
		return changing
	}
	return reading
}

// follows says whether a symbolic link in the place of the last name is followed.
func (c *tracedCall) follows(flags uint64) bool {
	switch c.follow {
	case followNever:
		return false
	case followUnlessAt:
		return flags&unix.AT_SYMLINK_NOFOLLOW == 0
	case followUnlessOpen:
		return flags&unix.O_NOFOLLOW == 0 && flags&(unix.O_CREAT|unix.O_EXCL) != unix.O_CREAT|unix.O_EXCL
	}
	return true
}

// encode is struct call of programs/trace.h.
func (c *tracedCall) encode() []byte {
	shape := uint8(0)
	if len(c.effects[1]) > 0 {
		shape |= shapeTwo
	}
	if c.names {
		shape |= shapeNames
	}
	if c.links {
		shape |= shapeLinks
	}
	if c.change == ChangeLink || c.change == ChangeName {
		shape |= shapeOther
	}
	return []byte{c.kind, shape, c.flags, 0, c.dir[0], c.dir[1], c.path[0], c.path[1]}
}
