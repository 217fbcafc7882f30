package bpf

import "golang.org/x/sys/unix"

// oldCalls are those that this architecture has beside the ones that all have.
func oldCalls() []tracedCall {
	return []tracedCall{renaming(unix.SYS_RENAMEAT, "renameat", none)}
}

// tracedArchitecture says that the programs know how this architecture passes the arguments of a system call.
const tracedArchitecture = true
