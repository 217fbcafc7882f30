package ns

import (
	"encoding/binary"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// Capability is a number of capabilities(7).
type Capability uint

// Capabilities is a set of them.
type Capabilities uint64

// CapabilitySet builds a set.
func CapabilitySet(list ...Capability) (s Capabilities) {
	for _, c := range list {
		s |= 1 << c
	}
	return s
}

// maxCapability is above any that a kernel knows (capabilities are 64-bit sets).
const maxCapability = 63

// KeepCapabilities appends what limits the process and all its descendants to a set: the bounding set, the permitted and
// effective sets; the inheritable and ambient sets become empty (capabilities(7)). Pid 1 itself gives up the rest once
// the command is started.
func (p *Program) KeepCapabilities(keep Capabilities) {
	p.limitCapabilities(keep, unix.EINVAL)
}

// limitCapabilities does so; tolerated are the errors that a number may fail with which is to leave the bounding set: EINVAL says
// that the kernel knows no capability of that number.
func (p *Program) limitCapabilities(keep Capabilities, tolerated ...syscall.Errno) {
	p.Call("clear the ambient capabilities", "", syscall.SYS_PRCTL, Int(unix.PR_CAP_AMBIENT), Int(unix.PR_CAP_AMBIENT_CLEAR_ALL), Int(0), Int(0), Int(0))
	for c := range maxCapability + 1 {
		if keep&(1<<c) != 0 {
			continue
		}
		p.Call("drop a capability from the bounding set", "", syscall.SYS_PRCTL, Int(unix.PR_CAPBSET_DROP), Int(c), Int(0), Int(0), Int(0))
		p.Tolerate(tolerated...)
	}
	p.capset("set the capabilities (capset)", keep, keep)
	p.bare = keep == 0
}

// capset appends capset(2): the permitted and the effective set; the inheritable one becomes empty.
func (p *Program) capset(op string, permitted, effective Capabilities) {
	head := &capHeader{version: unix.LINUX_CAPABILITY_VERSION_3}
	data := newCapData(permitted, effective)
	p.Call(op, "", unix.SYS_CAPSET, Pointer(p, head), Pointer(p, &data))
}

// newCapData is the data of capset(2).
func newCapData(permitted, effective Capabilities) (data [2]capData) {
	for i := range data {
		data[i] = capData{effective: uint32(effective >> (32 * i)), permitted: uint32(permitted >> (32 * i))}
	}
	return data
}

// ClearUmask appends umask(0), so that what the set-up makes has exactly the modes it asks for, and gives the caller's.
func (p *Program) ClearUmask() Slot {
	return p.Call("clear the umask", "", syscall.SYS_UMASK, Int(0))
}

// RestoreUmask appends the caller's umask again.
func (p *Program) RestoreUmask(s Slot) { p.Call("restore the umask", "", syscall.SYS_UMASK, s.Arg()) }

// UserNamespaceLimit is the Subject of the steps of ForbidUserNamespaces.
const UserNamespaceLimit = "/proc/sys/user/max_user_namespaces"

// ForbidUserNamespaces appends the limit of zero further user namespaces below the sandbox's own (NET-83). The value
// belongs to the user namespace of the writer (user_namespaces(7)). Where the surrounding container has made /proc/sys read-only, or
// the broker of a sandbox around this one opens it with less, there is no such limit; leaveOut then leaves it out, and the filter against namespaces holds alone.
func (p *Program) ForbidUserNamespaces(leaveOut bool) {
	const path = UserNamespaceLimit
	fd := p.Call("open", path, syscall.SYS_OPENAT, Int(unix.AT_FDCWD), p.Str(path), Int(unix.O_WRONLY|unix.O_CLOEXEC), Int(0))
	if leaveOut {
		p.Tolerate(unix.EROFS, unix.EACCES) // the second from a broker around this sandbox, whose hand has no right to it
	}
	p.Call("write", path, syscall.SYS_WRITE, fd.Arg(), p.Str("0"), Int(1))
	p.OnlyIf(fd)
	p.Close(fd)
}

// NewKeyring appends a session keyring of the sandbox's own, so that it possesses no key of the caller's
// (keyrings(7)). A kernel or an outer sandbox without keyrings leaves nothing to part from.
func (p *Program) NewKeyring() {
	p.Call("make a session keyring", "", unix.SYS_KEYCTL, Int(unix.KEYCTL_JOIN_SESSION_KEYRING), Int(0), Int(0), Int(0), Int(0))
	p.Tolerate(unix.ENOSYS, unix.EPERM, unix.EDQUOT)
}

// Undumpable appends that no other process may trace this one or read its memory (PR_SET_DUMPABLE(2const)). execve
// ends it: it is for pid 1.
func (p *Program) Undumpable() { p.undumpable("pid 1", "srt-init") }

// undumpable does so for what is called who in errors and name in lists of processes.
func (p *Program) undumpable(who, name string) {
	p.Call("forbid tracing of "+who, "", syscall.SYS_PRCTL, Int(unix.PR_SET_DUMPABLE), Int(0), Int(0), Int(0), Int(0))
	p.Call("name "+who, "", syscall.SYS_PRCTL, Int(unix.PR_SET_NAME), p.Str(name), Int(0), Int(0), Int(0))
}

// NoNewPrivs appends no_new_privs (PR_SET_NO_NEW_PRIVS(2const)).
func (p *Program) NoNewPrivs() {
	p.Call("set no_new_privs", "", syscall.SYS_PRCTL, Int(unix.PR_SET_NO_NEW_PRIVS), Int(1), Int(0), Int(0), Int(0))
}

// Chdir appends the change of the working directory to an absolute path.
func (p *Program) Chdir(path string) {
	p.Call("enter the working directory", path, syscall.SYS_CHDIR, p.Str(path))
}

// Filter appends a seccomp filter, an array of struct sock_filter of 8 bytes each (seccomp(2)). no_new_privs comes
// before it.
func (p *Program) Filter(name string, program []byte) {
	p.filter("load the system call filter", name, program, 0)
}

func (p *Program) filter(op, name string, program []byte, flags int) Slot {
	code := p.Bytes(program)
	prog, b := p.Buffer(16)
	binary.NativeEndian.PutUint16(b, uint16(len(program)/8))
	binary.NativeEndian.PutUint64(b[8:], uint64(code.value))
	return p.Call(op, name, unix.SYS_SECCOMP, Int(unix.SECCOMP_SET_MODE_FILTER), Int(flags), prog)
}

// Stream is a standard stream of the command that is to be opened again through the sandbox's own view, so that it
// gives no right that the view withholds (FS-46).
type Stream struct {
	FD       int    // 0 to 2
	Path     string // absolute, without links
	Flags    int    // access mode and O_APPEND, O_NONBLOCK of the original (open(2))
	Offset   int64  // file offset to continue at
	Dev, Ino uint64 // the object it must be
	// FIFO tells that the object is a FIFO, whose opening must not wait for somebody at the other end (fifo(7)).
	FIFO bool
	// Index is where the host side receives the new descriptor in Process.Files, -1 for not at all.
	Index int
}

// Reopen appends the replacement of a standard stream.
func (p *Program) Reopen(s Stream) {
	subject := strings.TrimSpace(s.Path)
	flags := s.Flags | unix.O_CLOEXEC | unix.O_NOCTTY
	if s.FIFO {
		flags |= unix.O_NONBLOCK
	}
	how := &unix.OpenHow{Flags: uint64(flags), Resolve: unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS}
	fd := p.Call("open the standard stream again at", subject, unix.SYS_OPENAT2, Int(unix.AT_FDCWD), p.Str(s.Path), Pointer(p, how), Int(unix.SizeofOpenHow))
	statx, _ := p.Buffer(256)
	p.Call("stat", subject, unix.SYS_STATX, fd.Arg(), p.Str(""), Int(unix.AT_EMPTY_PATH), Int(unix.STATX_INO), statx)
	const offInode, offDevice = 32, 136
	dev := uint64(unix.Major(s.Dev)) | uint64(unix.Minor(s.Dev))<<32
	p.Expect("show the standard stream at", subject, statx, offInode, ^uint64(0), s.Ino, unix.EACCES)
	p.Expect("show the standard stream at", subject, statx, offDevice, ^uint64(0), dev, unix.EACCES)
	if s.FIFO {
		p.Call("restore the flags of the standard stream at", subject, syscall.SYS_FCNTL, fd.Arg(), Int(unix.F_SETFL), Int(s.Flags))
	}
	if s.Offset > 0 {
		p.Call("seek in the standard stream at", subject, syscall.SYS_LSEEK, fd.Arg(), Int(s.Offset), Int(0))
	}
	p.Call("replace the standard stream at", subject, unix.SYS_DUP3, fd.Arg(), Int(s.FD), Int(0))
	if s.Index >= 0 {
		p.SendFiles(s.Index, subject, fd)
	}
	p.Close(fd)
}
