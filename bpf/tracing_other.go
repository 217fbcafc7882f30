//go:build !linux

package bpf

// TracingSupported reports whether this process may trace sandboxes: only on Linux.
func TracingSupported() error {
	return &Unsupported{what: "refused system calls cannot be read from the kernel (eBPF)", Reason: ErrNotLinux,
		Detail: "Other systems have mechanisms of their own."}
}
