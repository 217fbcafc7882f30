//go:build !amd64 && !arm64

package seccomp

// Empty: Supported returns an error.
const base, namespaces, unix, unixDatagram = "", "", "", ""
