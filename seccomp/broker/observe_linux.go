package broker

import (
	"bytes"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/srt-sandbox/srt/fsview"
)

// The observer tells of refusals that come from the kernel, of mounts and of Landlock, where no tracer in the kernel can
// (VIO-10). A filter puts the calls that can be refused so to the listener. Of each is found out what it is about, before it
// happens, and whether the policy denies that; then it goes on, whatever came of this.
//
//	caller              worker
//	open("x", ...) --> receive; read "x" once; where is x, and is it there?    (O_PATH: nothing is opened)
//	  waits             does the plan deny it?                                 (fsview.Judge: no system call)
//	<-- goes on         no more than a report depends on the answer
//
// It gates nothing. What it reads can change before the kernel reads it again: that makes a wrong report, of an access that the
// kernel decides about all the same. A call that the Server performs anyway is looked at before it is performed, and what is
// found counts if it fails.
//
// It never waits for somebody else without end. A path whose parts the kernel has at hand is followed without waiting at all
// (RESOLVE_CACHED of openat2(2)), one on a file system of this machine in this process; only where a lookup may ask a server or
// another process it is left to the hand, and given up after stallLimit.

// PathJudge says what the policy makes of an access. *fsview.Judge is one. It is asked by many goroutines at once.
type PathJudge interface {
	Judge(path string, a fsview.Access) fsview.Judgement
}

// Observation is what the Server reports beside its own refusals.
type Observation struct {
	// Judge tells what is denied.
	Judge PathJudge
	// Reads says that refused reads count, too: the filter is seccomp.ObserveAll, not seccomp.ObserveWrites.
	Reads bool
	// Only says that no rule about names is the Server's: the filters hold neither seccomp.Names nor seccomp.Opens. What opens
	// a file or makes a name is then observed alone.
	Only bool
}

// observer is the state of the Server's observation.
type observer struct {
	lost   atomic.Uint64 // calls that could not be looked at
	begun  atomic.Bool   // the command exists
	mounts mountTable
	root   heldFD // the sandbox's root directory
	own    heldFD // /proc/self/fd
}

// Unobserved is how many calls could not be looked at, so that nothing is known of their refusal: their memory could not be
// read (a program that must not be traced), or where their path leads took too long to find out.
func (s *Server) Unobserved() uint64 { return s.observer.lost.Load() }

// observed looks at a call that the filter has put to the listener for that. It tells whether the call is one of those.
func (c *call) observed() bool {
	o := c.s.config.Observe
	if o == nil {
		return false
	}
	look, ok := looks(c.w.note.Arch, c.w.note.Nr)
	if !ok {
		return false
	}
	c.name = look.name
	c.watch(look)
	return true
}

// watch runs one look, whose failures of any kind hurt nobody but the report.
func (c *call) watch(look look) {
	kept := len(c.files)
	c.watching = true
	defer func() {
		if recover() != nil {
			c.unseen = true
			c.w.dropHand() // it may be in the middle of something
		}
		for len(c.files) > kept {
			c.drop(c.files[len(c.files)-1].fd)
		}
		c.watching, c.links = false, 0
		c.countUnseen()
	}()
	switch o := &c.s.observer; {
	case c.tid == 0:
		c.unseen = true
		return
	case !o.begun.Load() && c.isLauncher():
		return
	default:
		o.begun.Store(true)
	}
	look.at(c)
	c.signSeen()
}

// countUnseen counts a call that could not be looked at.
func (c *call) countUnseen() {
	if c.unseen && c.waits() {
		c.s.observer.lost.Add(1)
	}
}

// isLauncher tells whether the call is srt's own in the sandbox, which executes the command's program: it is still the program of
// this process, and for an ordinary user nobody's to look at. That the program is not found is said otherwise.
func (c *call) isLauncher() bool {
	if c.w.note.Nr != unix.SYS_EXECVE {
		return false
	}
	own, err := readLink(unix.AT_FDCWD, "/proc/self/exe")
	if err != nil {
		return false
	}
	var theirs string
	err = c.onThread(func(t *thread) (err error) {
		theirs, err = readLink(t.dir, "exe")
		return err
	})
	return err != nil || theirs == own
}

// performs tells whether the Server performs a call that it has looked at. Openings are told apart by what is in registers.
func (c *call) performs() bool {
	o := c.s.config.Observe
	if o.Only {
		return false
	}
	if flags, ok := openFlags(c.w.note.Nr, &c.args); ok {
		how := openHow{flags: flags}
		return how.creates() || c.s.config.Judge.Reads() || c.s.config.Changes != nil && how.writes()
	}
	if _, ok := changeSpecs(c.w.note.Nr); ok && c.s.config.Changes != nil {
		return true
	}
	_, ok := specs(c.w.note.Arch, c.w.note.Nr)
	return ok
}

// tellSeen reports what was seen, unless the call has been reported already. After one that succeeded that is what it was shown
// in the place of something hidden.
func (c *call) tellSeen(out outcome) {
	if c.told || c.failed {
		return
	}
	succeeded := !out.proceed && out.errno == 0
	for _, d := range c.seen {
		if !succeeded || d.Access == fsview.AccessRead {
			c.s.report(d)
		}
	}
}

// signSeen notes whose call it was, as long as that can be told. Of a caller that is gone nothing is known.
func (c *call) signSeen() {
	if len(c.seen) == 0 {
		return
	}
	pid, process := c.tid, c.comm()
	if c.readStatus() == 0 {
		pid = c.status.tgid
	}
	if !c.waits() {
		c.seen = nil
		return
	}
	for i := range c.seen {
		c.seen[i].PID, c.seen[i].Process = pid, process
	}
}

// comm is the name of the calling thread, as far as it can be told (proc_pid_comm(5)).
func (c *call) comm() string {
	var buf [32]byte
	n := 0
	err := c.onThread(func(t *thread) error {
		fd, err := unix.Openat(t.dir, "comm", unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		n, err = unix.Read(fd, buf[:])
		return err
	})
	if err != nil {
		return ""
	}
	return string(bytes.TrimSuffix(buf[:max(n, 0)], []byte{'\n'}))
}

// deny notes a refused access.
func (c *call) deny(path string, a fsview.Access) {
	c.seen = append(c.seen, Denial{Call: c.name, Path: path, Access: a, Observed: true})
}

// judge asks about one access.
func (c *call) judge(path string, a fsview.Access) fsview.Judgement {
	return c.s.config.Observe.Judge.Judge(path, a)
}

// seeUse notes a refused access to an object that has to be there for it. What hides an object shows nothing, or something
// of the sandbox's own in its place: what lies within that is the command's own.
func (c *call) seeUse(at *spot, a fsview.Access) (refused bool) {
	v := c.judge(at.path, a)
	switch {
	case at.errno == unix.ENOENT:
		if v = c.judge(at.path, fsview.AccessRead); v.Denied && v.Substitute {
			c.deny(at.path, fsview.AccessRead)
			return true
		}
		return false
	case !v.Denied, v.Substitute && at.path != v.Path:
		return false
	}
	c.deny(at.path, a)
	return true
}

// seeMake notes a refused making of a name. Where there is one, and where the directory is missing, the call fails anyhow.
func (c *call) seeMake(at *spot) (refused bool) {
	if at.fd >= 0 || at.errno == unix.ENOENT && !at.inDir {
		return false
	}
	v := c.judge(at.path, fsview.AccessCreate)
	if !v.Denied || v.Substitute && !c.sealed(at) {
		return false // a hidden directory takes it, in memory (FS-32)
	}
	c.deny(at.path, fsview.AccessCreate)
	return true
}

// seeRemove notes a refused taking away of a name. A mount that is read-only refuses before it looks for the name
// (do_unlinkat of fs/namei.c).
func (c *call) seeRemove(at *spot) (refused bool) {
	v := c.judge(at.path, fsview.AccessRemove)
	switch missing := at.errno == unix.ENOENT; {
	case missing && (!at.inDir || v.Substitute):
		return c.seeUse(at, fsview.AccessRemove)
	case !v.Denied, missing && !c.sealed(at), !missing && v.Substitute && at.path != v.Path:
		return false
	}
	c.deny(at.path, fsview.AccessRemove)
	return true
}

// sealed tells whether what was found lies on a mount that is read-only.
func (c *call) sealed(at *spot) bool {
	m, ok := c.s.observer.mounts.find(c, at.mount(c))
	return ok && m.sealed
}
