//go:build linux && !amd64 && !arm64

package bpf

// tracedArchitecture says that the programs know how this architecture passes the arguments of a system call.
const tracedArchitecture = false

// oldCalls are those that this architecture has beside the ones that all have.
func oldCalls() []tracedCall { return nil }
