package bpf

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

func prctlName(name *byte) error {
	return unix.Prctl(unix.PR_SET_NAME, uintptr(unsafe.Pointer(name)), 0, 0, 0)
}
