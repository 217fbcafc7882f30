// Package bpf will hold the eBPF programs that report refused operations and the reader of their ring buffer.
package bpf
