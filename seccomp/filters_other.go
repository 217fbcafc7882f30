//go:build !amd64 && !arm64

package seccomp

// Empty: Supported returns an error.
const (
	baseProgram, namespacesProgram, unixProgram, unixDatagramProgram   = "", "", "", ""
	ioctlNamesProgram, namesProgram, opensProgram, networkProgram      = "", "", "", ""
	observeWritesProgram, observeAllProgram                            = "", ""
	confinedSocketsProgram, confinedNetworkProgram, madeSocketsProgram = "", "", ""
	changesProgram, confinedProgram                                    = "", ""
)
