package fsview

import (
	"errors"

	"golang.org/x/sys/unix"

	"github.com/srt-sandbox/srt/ns"
)

const mountProc = "mount a proc file system for"

// hostProcPaths are further protected paths where the sandbox shows the surrounding /proc: a fresh one tells there of the sandbox's own
// processes alone (locks_show in fs/locks.c).
var hostProcPaths = [...]kernelPath{{"/proc/locks", false, hidden}}

// FreshProcRefused tells whether a start failed because no other /proc than the surrounding one can be had: the kernel mounts
// none that would show what is masked in that (EPERM, mount_too_revealing in fs/namespace.c). What container runtimes mask and
// make read-only goes together (OCI runtime specification, config-linux.md): that no limit of user namespaces can be set says so earlier.
func FreshProcRefused(err error) bool {
	step, ok := errors.AsType[*ns.StepError](err)
	switch {
	case !ok:
		return false
	case step.Op == mountProc && step.Subject == "/proc":
		return errors.Is(step, unix.EPERM)
	}
	return step.Subject == ns.UserNamespaceLimit && errors.Is(step, unix.EROFS)
}

// procStays tells whether nothing of the sandbox's /proc has to be told apart from the rest.
func (o *CompileOptions) procStays() bool {
	if o.HostProc {
		return !o.NestedNamespaces
	}
	return len(o.ProcEntries) == 0
}

// openProc makes what attachProc attaches, before anything covers the surrounding /proc. That is copied with all that is
// mounted in it: the kernel does not part what a container's mounts cover from what covers it (MNT_LOCKED,
// mount_namespaces(7)), and takes off none of the attributes that it has.
func (c *compiler) openProc() {
	if !c.opts.HostProc {
		c.proc = c.newFilesystem("proc", "/proc", nil, attrQuiet|unix.MOUNT_ATTR_NOEXEC)
		return
	}
	fd := c.open("/proc")
	c.proc = c.copyTree("/proc", fd)
	c.p.Close(fd)
	c.quiet("/proc", c.proc, attrReadOnly|unix.MOUNT_ATTR_NOEXEC)
}
