package ns

import (
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// namespaceFiles are the namespaces of a sandbox that a hand enters, in this order: the user namespace gives the right to
// enter the others, and the mount namespace changes what a path means. The pid namespace is not among them: the sandbox
// must not see its hands. The others are, because files of /proc show those of whoever opens them (/proc/sysvipc,
// /proc/sys/net, /proc/sys/kernel/hostname).
var namespaceFiles = [...]struct {
	flag Namespaces
	name string
}{
	{unix.CLONE_NEWUSER, "user"}, {unix.CLONE_NEWNET, "net"}, {unix.CLONE_NEWIPC, "ipc"}, {unix.CLONE_NEWUTS, "uts"},
	{unix.CLONE_NEWCGROUP, "cgroup"}, {unix.CLONE_NEWNS, "mnt"},
}

// AllowHands opens the namespaces of the sandbox for StartHand. It belongs between Prepare and Start: later pid 1 is not
// dumpable, and nobody but root may ask for its namespaces (namespaces(7), ptrace(2)). They are closed when the sandbox
// has been waited for. A confined sandbox has none.
func (p *Prepared) AllowHands() error {
	if p.process.confined {
		p.process.hands = true
		return nil
	}
	dir := procDir(p.process.pid) + "ns/"
	for i, n := range namespaceFiles {
		if p.namespaces&n.flag == 0 {
			continue
		}
		fd, err := unix.Open(dir+n.name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			closeAll(p.process.entries[:])
			return p.process.ended(&StepError{Op: "open the namespace", Subject: dir + n.name, Err: err})
		}
		p.process.entries[i] = os.NewFile(uintptr(fd), dir+n.name)
	}
	return nil
}

// UserNamespace opens the user namespace of the sandbox, which every process of it is in or beneath. As AllowHands it
// belongs between Prepare and Start. The caller closes it. A confined sandbox has none: os.ErrNotExist.
func (p *Prepared) UserNamespace() (*os.File, error) {
	if p.process.confined {
		return nil, &StepError{Op: "open the user namespace of", Subject: "a confined sandbox", Err: os.ErrNotExist}
	}
	path := procDir(p.process.pid) + "ns/user"
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, p.process.ended(&StepError{Op: "open the namespace", Subject: path, Err: err})
	}
	return os.NewFile(uintptr(fd), path), nil
}

// closeAll closes files and forgets them.
func closeAll(files []*os.File) {
	for i, f := range files {
		if f != nil {
			f.Close()
			files[i] = nil
		}
	}
}

// setUp writes a hand's first program, with which it becomes part of the sandbox. The order matters: what it needs of the
// host's /proc and /dev comes before the sandbox's mounts, and from the first step on nothing can trace it.
func (h *Hand) setUp(c *HandConfig, entries [len(namespaceFiles)]*os.File) {
	p := h.program()
	p.undumpable("a hand", "srt-hand")
	fds := p.Call("open", "/proc/self/fd", syscall.SYS_OPENAT, Int(unix.AT_FDCWD), p.Str("/proc/self/fd"),
		Int(unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC), Int(0))
	p.Call("place", "/proc/self/fd", unix.SYS_DUP3, fds.Arg(), Int(HandFDs), Int(unix.O_CLOEXEC))
	p.leaveTerminal()
	p.endWith(lifelineFD)
	for i, f := range entries {
		if f != nil {
			p.Call("enter the namespace", namespaceFiles[i].name, unix.SYS_SETNS, Int(namespacesFD+i), Int(namespaceFiles[i].flag))
		}
	}
	// Entering a user namespace is a change of credentials, after which fs.suid_dumpable decides (proc_sys_fs(5)).
	p.undumpable("a hand", "srt-hand")
	dumpable, _ := p.Buffer(8)
	p.Store(dumpable, 0, p.Call("ask whether a hand can be traced", "", syscall.SYS_PRCTL, Int(unix.PR_GET_DUMPABLE), Int(0), Int(0), Int(0), Int(0)))
	p.Expect("forbid tracing of", "a hand", dumpable, 0, 1<<32-1, 0, unix.EPERM)
	p.NewKeyring()
	h.learnSelf(c.Keep)
	if p.NoNewPrivs(); c.Process.confined {
		p.limitCapabilities(c.Keep, unix.EINVAL, unix.EPERM) // as Program.ConfineCapabilities
	} else {
		p.KeepCapabilities(c.Keep)
	}
	if c.Ruleset != nil {
		p.Call("enforce the Landlock ruleset", "", unix.SYS_LANDLOCK_RESTRICT_SELF, Int(rulesetFD), Int(0))
	}
}

// leaveTerminal appends that the process has no controlling terminal any more, so that /dev/tty never leads to the host's
// (tty_ioctl(4), TIOCNOTTY). It leads no session, so nobody else loses theirs.
func (p *Program) leaveTerminal() {
	const path = "/dev/tty"
	tty := p.Call("open", path, syscall.SYS_OPENAT, Int(unix.AT_FDCWD), p.Str(path), Int(unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC), Int(0))
	p.Tolerate(unix.ENXIO, unix.ENOENT)
	p.Call("leave the terminal", "", syscall.SYS_IOCTL, tty.Arg(), Int(unix.TIOCNOTTY), Int(0))
	p.OnlyIf(tty)
}

// endWith appends that the kernel kills the process when the writing end of the pipe fd is closed.
func (p *Program) endWith(fd int) {
	const op = "tie a hand's life to the host process"
	self := p.Call("ask for the process id", "", syscall.SYS_GETPID)
	p.Call(op, "F_SETOWN", syscall.SYS_FCNTL, Int(fd), Int(unix.F_SETOWN), self.Arg())
	p.Call(op, "F_SETSIG", syscall.SYS_FCNTL, Int(fd), Int(unix.F_SETSIG), Int(unix.SIGKILL))
	p.Call(op, "O_ASYNC", syscall.SYS_FCNTL, Int(fd), Int(unix.F_SETFL), Int(unix.O_ASYNC))
}

// learnSelf appends the writing down of the hand's own identity, for the way back of Program.ActAs. The numbers are those
// of the sandbox's user namespace, so only the hand itself can tell.
func (h *Hand) learnSelf(keep Capabilities) {
	p, s := h.program(), &h.state.self
	for _, id := range []struct {
		trap uintptr
		dst  *uint32
	}{{syscall.SYS_GETEUID, &s.uid}, {syscall.SYS_GETEGID, &s.gid}} {
		p.Store(fixed(id.dst), 0, p.Call("ask for the hand's own ids", "", id.trap))
	}
	s.capHead = capHeader{version: unix.LINUX_CAPABILITY_VERSION_3}
	s.capData = newCapData(keep, keep)
	if keep&CapabilitySet(unix.CAP_SETGID) == 0 {
		return
	}
	if p.fixedGroups {
		return // as in the whole user namespace: there is nothing to take back
	}
	s.setgroups = 1
	n := p.Call("ask for the hand's own groups", "", syscall.SYS_GETGROUPS, Int(s.ngroups), Int(s.groups))
	count, _ := p.Buffer(8)
	p.Store(count, 0, n)
	p.Expect("know", "the hand's own groups", count, 0, 1<<32-1, uint64(s.ngroups), unix.EIO)
}

// check refuses what a hand must not be started with.
func (c *HandConfig) check() error {
	switch {
	case c.Process != nil && c.Process.confined && c.Ruleset == nil:
		return errors.New("ns: a hand of a confined sandbox is held by nothing but its Landlock ruleset, and needs one")
	case c.Process == nil:
		return errors.New("ns: a hand needs the process of its sandbox")
	case c.Ruleset == nil && !c.Unrestricted:
		return errors.New("ns: a hand needs the Landlock ruleset of its sandbox's command, or to be told that there is none")
	}
	return nil
}
