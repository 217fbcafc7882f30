package bpf

import "golang.org/x/sys/unix"

// tracedArchitecture says that the programs know how this architecture passes the arguments of a system call.
const tracedArchitecture = true

// oldCalls are those that only this architecture has.
func oldCalls() []tracedCall {
	open := on(unix.SYS_OPEN, "open", callOpen, 0, followUnlessOpen, nil)
	open.flags = 1
	rename := on(unix.SYS_RENAME, "rename", callWrite, 0, followNever, removing)
	rename.path[1], rename.effects[1], rename.links, rename.change = 1, creating, true, ChangeMove
	return []tracedCall{
		open, rename, renaming(unix.SYS_RENAMEAT, "renameat", none),
		on(unix.SYS_CREAT, "creat", callWrite, 0, followAlways, opening),
		taking(on(unix.SYS_UNLINK, "unlink", callWrite, 0, followNever, removing)),
		taking(on(unix.SYS_RMDIR, "rmdir", callWrite, 0, followNever, removing)),
		on(unix.SYS_MKDIR, "mkdir", callWrite, 0, followNever, creating),
		on(unix.SYS_MKNOD, "mknod", callWrite, 0, followNever, creating),
		linking(on(unix.SYS_LINK, "link", callWrite, 1, followNever, creating), none, 0),
		placing(on(unix.SYS_SYMLINK, "symlink", callWrite, 1, followNever, creating)),
		on(unix.SYS_CHMOD, "chmod", callWrite, 0, followAlways, changing),
		on(unix.SYS_CHOWN, "chown", callWrite, 0, followAlways, changing),
		on(unix.SYS_LCHOWN, "lchown", callWrite, 0, followNever, changing),
		on(unix.SYS_UTIME, "utime", callWrite, 0, followAlways, changing),
		on(unix.SYS_UTIMES, "utimes", callWrite, 0, followAlways, changing),
		at(unix.SYS_FUTIMESAT, "futimesat", callWrite, 1, none, followAlways, changing),
		on(unix.SYS_READLINK, "readlink", callRead, 0, followNever, reading),
	}
}
