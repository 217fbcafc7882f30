package fsview

import (
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/srt-sandbox/srt/ns"
)

// What Landlock does not know (landlock(7)), and what stands for it in a sandbox without mounts:
//
//	chmod, chown, utime, setxattr, mknod of devices, fallocate   ConfinedJudge, by the broker
//	mkdir, unlink, rename, link, open for writing                both: the judge, and the hands' ruleset behind it
//	stat, access, readlink, getxattr, chdir, statfs, inotify     nothing: names and attributes show (docs/modes.md)
//	flock and locks on what can be opened for reading            nothing: a command can hold up who locks the same file
//	connect(2) to a socket with a name                           the broker, by the rules of full mode
//	ioctl(2) on files                                            a filter (seccomp.Confined)

// Rights to read, which a ruleset of a sandbox with mounts leaves to these.
const readRights = unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR | unix.LANDLOCK_ACCESS_FS_EXECUTE

// netABI is the Landlock ABI that brought the rights to bind and connect TCP sockets (Linux 6.7).
const netABI = 4

// bits are the rights of landlock(7).
func (r ReadRight) bits() (bits uint64) {
	for right, bit := range map[ReadRight]uint64{ReadFile: unix.LANDLOCK_ACCESS_FS_READ_FILE, ReadList: unix.LANDLOCK_ACCESS_FS_READ_DIR,
		ReadExecute: unix.LANDLOCK_ACCESS_FS_EXECUTE} {
		if r&right != 0 {
			bits |= bit
		}
	}
	return bits
}

// CompileLandlock appends the making of the two rulesets of a sandbox without mounts, and gives their descriptors: that of the
// hands (ns.HandConfig.Ruleset), which reads what a command may read and changes the write roots; and the command's own
// (ns.Program.RestrictCommand), in which nothing changes but devices, no TCP socket is bound or connected, and signals and
// abstract sockets stay within. The scope of the processes around the command is the business of package ns. Objects that
// the plan names are proven to be what they were.
func (c *Confined) CompileLandlock(p *ns.Program, opts CompileOptions) (hand, command ns.Slot) {
	r := &rulesetCompiler{compiler: &compiler{p: p, plan: c.plan, opts: opts}, ids: c.identities()}
	r.statx, _ = p.Buffer(int(sizeofStatx))
	all := handled(opts.LandlockABI) | readRights
	hand = r.make("the hands", all, 0, unix.LANDLOCK_SCOPE_SIGNAL)
	net, scope := uint64(0), uint64(unix.LANDLOCK_SCOPE_SIGNAL)
	if opts.LandlockABI >= netABI {
		net = unix.LANDLOCK_ACCESS_NET_BIND_TCP | unix.LANDLOCK_ACCESS_NET_CONNECT_TCP
	}
	if !c.in.AllUnixSockets {
		scope |= unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET
	}
	command = r.make("the command", all, net, scope)
	for _, rule := range c.read {
		r.add(rule.Path, rule.Right.bits(), rule.Listed, hand, command)
	}
	for _, d := range DeviceRules() {
		bits := all & (fileRights | unix.LANDLOCK_ACCESS_FS_READ_FILE)
		if d.Dir {
			bits |= unix.LANDLOCK_ACCESS_FS_READ_DIR
		}
		r.add(d.Path, bits, true, hand, command)
	}
	for _, w := range c.write {
		bits := handled(opts.LandlockABI)
		if !w.Dir {
			bits &= fileRights
		}
		r.add(w.Path, bits, w.Path == sharedMemory, hand)
	}
	r.proveMarks(c.marks)
	return hand, command
}

// identities are the objects that the plan named, by their locations.
func (c *Confined) identities() map[string]Identity {
	ids := make(map[string]Identity, len(c.plan.Steps))
	for i := range c.plan.Steps {
		switch s := &c.plan.Steps[i]; {
		case s.Late:
		case s.Kind == Reveal || s.Kind == RevealWritable:
			ids[s.Source] = s.ID
		case s.Kind == Writable:
			ids[s.Path] = s.ID
		}
	}
	return ids
}

// rulesetCompiler appends rulesets.
type rulesetCompiler struct {
	*compiler
	ids map[string]Identity
}

// make appends the making of a ruleset. Of the attribute kernels take as much as they know, if the rest is zero: one without scopes
// refuses it (E2BIG), and nothing starts.
func (r *rulesetCompiler) make(whose string, fs, net, scope uint64) ns.Slot {
	attr := &[rulesetSize / 8]uint64{fs, net, scope}
	return r.p.Call("make the Landlock ruleset of", whose, unix.SYS_LANDLOCK_CREATE_RULESET, ns.Pointer(r.p, attr), ns.Int(rulesetSize), ns.Int(0))
}

// gone are the errors of what was there when a directory was listed, or is not there on every system; and of what the kernel
// takes no rule for (files of namespaces: EBADFD). Nothing is granted there then.
var gone = []syscall.Errno{syscall.ENOENT, syscall.ELOOP, syscall.EACCES}

// add appends one rule of several rulesets.
func (r *rulesetCompiler) add(path string, bits uint64, optional bool, sets ...ns.Slot) {
	if bits == 0 {
		return
	}
	rule := &unix.LandlockPathBeneathAttr{Allowed_access: bits}
	fd := r.open(path)
	if optional {
		r.p.Tolerate(gone...)
	}
	if id, named := r.ids[path]; named {
		r.prove(path, fd, id)
	}
	ptr := ns.Pointer(r.p, rule)
	r.p.Store(ptr, parentFD, fd)
	r.p.OnlyIf(fd)
	for _, set := range sets {
		r.p.Call("add the Landlock rule for", path, unix.SYS_LANDLOCK_ADD_RULE, set.Arg(), ns.Int(unix.LANDLOCK_RULE_PATH_BENEATH), ptr, ns.Int(0))
		if optional {
			r.p.Tolerate(unix.EBADFD)
		}
		r.p.OnlyIf(fd)
	}
	r.p.Close(fd)
	r.p.OnlyIf(fd)
}

// proveMarks appends the check that what must not be read still lies where it was when its directory was listed: then none of the
// names beside it is its own.
func (r *rulesetCompiler) proveMarks(marks []mark) {
	for _, m := range marks {
		if m.id == (Identity{}) {
			continue
		}
		fd := r.open(m.path)
		r.prove(m.path, fd, m.id)
		r.p.Close(fd)
	}
}
