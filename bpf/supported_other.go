//go:build !linux

package bpf

// Supported reports whether this process may have the kernel refuse names: only on Linux.
func Supported() error {
	return &Unsupported{Reason: ErrNotLinux, Detail: "Other systems have mechanisms of their own."}
}
