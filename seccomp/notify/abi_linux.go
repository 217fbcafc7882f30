package notify

import (
	"encoding/binary"
	"syscall"

	"golang.org/x/sys/unix"
)

// Control calls of a listener, for programs that make them by number (linux/seccomp.h; the same on both architectures).
const (
	IoctlReceive  = unix.SECCOMP_IOCTL_NOTIF_RECV     // argument: a zeroed [Notification]
	IoctlSend     = unix.SECCOMP_IOCTL_NOTIF_SEND     // argument: a [Response]
	IoctlValid    = unix.SECCOMP_IOCTL_NOTIF_ID_VALID // argument: the id, 8 bytes
	IoctlAddFD    = unix.SECCOMP_IOCTL_NOTIF_ADDFD    // argument: an [AddFD]; result: the caller's new descriptor
	IoctlSetFlags = unix.SECCOMP_IOCTL_NOTIF_SET_FLAGS
)

// Notification is a received call: struct seccomp_notif of linux/seccomp.h, byte for byte.
type Notification struct {
	// ID names the call until it is answered. The kernel gives no id twice for one listener.
	ID uint64
	// PID is the calling thread as numbered in the receiver's pid namespace; 0 if it is not visible there. The number
	// may belong to another thread by the time it is used: use it first, then ask Listener.Valid.
	PID   uint32
	Flags uint32
	// Nr is the system call's number for the architecture Arch (AUDIT_ARCH_*, linux/audit.h).
	Nr   int32
	Arch uint32
	// InstructionPointer and Args are the caller's registers. Pointers among them lead into the caller's memory, which
	// its other threads can change at any time.
	InstructionPointer uint64
	Args               [6]uint64
}

// Response is an answer: struct seccomp_notif_resp. Either Val is the call's result, or Error is a negative errno.
type Response struct {
	ID    uint64
	Val   int64
	Error int32
	// Flags is 0 or FlagContinue.
	Flags uint32
}

// FlagContinue lets the kernel perform the call after all, reading the caller's memory again
// (SECCOMP_USER_NOTIF_FLAG_CONTINUE). It is never the answer to a call that was judged by its memory.
const FlagContinue uint32 = unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE

// Result is the response that a call returned val, or failed with errno if that is not 0.
func Result(id uint64, val int64, errno syscall.Errno) Response {
	if errno != 0 {
		return Response{ID: id, Error: -int32(errno)}
	}
	return Response{ID: id, Val: val}
}

// ResponseSize is the size of a Response in bytes, and ResponseVal the offset of Val, where a program of system calls
// can store a result of its own.
const (
	ResponseSize = 24
	ResponseVal  = 8
)

// Bytes is the response as the kernel reads it.
func (r Response) Bytes() []byte {
	b := make([]byte, 0, ResponseSize)
	b = binary.NativeEndian.AppendUint64(b, r.ID)
	b = binary.NativeEndian.AppendUint64(b, uint64(r.Val))
	b = binary.NativeEndian.AppendUint32(b, uint32(r.Error))
	return binary.NativeEndian.AppendUint32(b, r.Flags)
}

// AddFD gives the caller of a notification a copy of a descriptor: struct seccomp_notif_addfd.
type AddFD struct {
	ID uint64
	// Flags is a set of AddSend and AddSet.
	Flags uint32
	// Source is the descriptor in the process that makes the control call. It stays that process's to close.
	Source uint32
	// Target is the number that the descriptor gets in the caller, only with AddSet; else 0, and the kernel takes the
	// lowest free one within the caller's RLIMIT_NOFILE (EMFILE).
	Target uint32
	// TargetFlags is 0 or O_CLOEXEC.
	TargetFlags uint32
}

// Flags of an AddFD.
const (
	// AddSet puts the descriptor at Target, replacing what is there (SECCOMP_ADDFD_FLAG_SETFD).
	AddSet uint32 = unix.SECCOMP_ADDFD_FLAG_SETFD
	// AddSend answers the call with the number of the new descriptor in the same step (SECCOMP_ADDFD_FLAG_SEND): the
	// caller goes on at once, and cannot be left with a descriptor that it does not know of.
	AddSend uint32 = unix.SECCOMP_ADDFD_FLAG_SEND
)

// AddFDSize is the size of an AddFD in bytes, and AddFDSource the offset of Source, where a program of system calls
// stores the descriptor that it opened.
const (
	AddFDSize   = 24
	AddFDSource = 12
)

// Bytes is the structure as the kernel reads it.
func (a AddFD) Bytes() []byte {
	b := make([]byte, 0, AddFDSize)
	b = binary.NativeEndian.AppendUint64(b, a.ID)
	for _, v := range [...]uint32{a.Flags, a.Source, a.Target, a.TargetFlags} {
		b = binary.NativeEndian.AppendUint32(b, v)
	}
	return b
}
