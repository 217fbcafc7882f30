package broker

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// spec says how a system call is performed: which arguments are what.
type spec struct {
	name     string
	perform  func(c *call) outcome
	pathless bool // it has no path, or asks for the caller's root directory itself
}

// nativeArch is the value of seccomp_data.arch for this binary (linux/audit.h).
func nativeArch() uint32 {
	if runtime.GOARCH == "arm64" {
		return unix.AUDIT_ARCH_AARCH64
	}
	return unix.AUDIT_ARCH_X86_64
}

func (c *call) int(i int) int32   { return int32(c.args[i]) }
func (c *call) word(i int) uint32 { return uint32(c.args[i]) }

// specs finds the call of a number. A filter ends whoever uses another architecture (NET-82).
func specs(arch uint32, number int32) (spec, bool) {
	if arch != nativeArch() {
		return spec{}, false
	}
	switch number {
	case unix.SYS_OPENAT:
		return spec{"openat", func(c *call) outcome { return c.legacyOpen(c.int(0), c.args[1], c.word(2), c.word(3)) }, false}, true
	case unix.SYS_OPENAT2:
		return spec{"openat2", func(c *call) outcome { return c.open2(c.int(0), c.args[1], c.args[2], c.args[3]) }, false}, true
	case unix.SYS_MKDIRAT:
		return spec{"mkdirat", func(c *call) outcome { return c.mkdir(c.int(0), c.args[1], c.word(2)) }, false}, true
	case unix.SYS_MKNODAT:
		return spec{"mknodat", func(c *call) outcome { return c.mknod(c.int(0), c.args[1], c.word(2), c.word(3)) }, false}, true
	case unix.SYS_SYMLINKAT:
		return spec{"symlinkat", func(c *call) outcome { return c.symlink(c.args[0], c.int(1), c.args[2]) }, false}, true
	case unix.SYS_LINKAT:
		return spec{"linkat", func(c *call) outcome { return c.link(c.int(0), c.args[1], c.int(2), c.args[3], c.word(4)) }, false}, true
	case unix.SYS_RENAMEAT:
		return spec{"renameat", func(c *call) outcome { return c.rename(c.int(0), c.args[1], c.int(2), c.args[3], 0) }, false}, true
	case unix.SYS_RENAMEAT2:
		return spec{"renameat2", func(c *call) outcome { return c.rename(c.int(0), c.args[1], c.int(2), c.args[3], c.word(4)) }, false}, true
	case unix.SYS_BIND:
		return spec{"bind", func(c *call) outcome { return c.bind(c.int(0), c.args[1], c.int(2)) }, true}, true
	case unix.SYS_CONNECT:
		return spec{"connect", func(c *call) outcome { return c.connect(c.int(0), c.args[1], c.int(2)) }, true}, true
	case unix.SYS_LISTEN:
		return spec{"listen", func(c *call) outcome { return c.listen(c.int(0), c.int(1)) }, true}, true
	case unix.SYS_SOCKET:
		return spec{"socket", func(c *call) outcome { return c.makeSocket(c.int(0), c.int(1), c.int(2)) }, true}, true
	case unix.SYS_GETPEERNAME:
		return spec{"getpeername", func(c *call) outcome { return c.getpeername(c.int(0), c.args[1], c.args[2]) }, true}, true
	case unix.SYS_GETSOCKOPT:
		return spec{"getsockopt", func(c *call) outcome {
			return c.getsockopt(c.int(0), c.word(1), c.word(2), c.args[3], c.args[4])
		}, true}, true
	case unix.SYS_UMASK:
		return spec{"umask", func(c *call) outcome { return c.change(true) }, true}, true
	case unix.SYS_SETUID, unix.SYS_SETGID, unix.SYS_SETREUID, unix.SYS_SETREGID, unix.SYS_SETRESUID, unix.SYS_SETRESGID,
		unix.SYS_SETFSUID, unix.SYS_SETFSGID, unix.SYS_SETGROUPS:
		return spec{"change of rights", func(c *call) outcome { return c.change(false) }, true}, true
	}
	s, ok := olderSpecs(number)
	return s, ok
}
