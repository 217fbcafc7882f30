package broker

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

func init() { probes["idle"] = func(string) any { return nil } }

func pointerOfWords(list []uint32) uintptr { return uintptr(unsafe.Pointer(&list[0])) }

func pointerOf(p *byte) uintptr { return uintptr(unsafe.Pointer(p)) }

// withoutRestart takes SA_RESTART off the runtime's own handler of a signal (rt_sigaction(2)).
func withoutRestart(sig syscall.Signal) {
	var action struct {
		handler, flags, restorer uintptr
		mask                     uint64
	}
	if _, _, errno := syscall.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(sig), 0, uintptr(unsafe.Pointer(&action)), 8, 0, 0); errno != 0 {
		panic(errno)
	}
	const restart = 0x10000000
	action.flags &^= restart
	if _, _, errno := syscall.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(sig), uintptr(unsafe.Pointer(&action)), 0, 8, 0, 0); errno != 0 {
		panic(errno)
	}
}
