package broker

import (
	"golang.org/x/sys/unix"
)

// Without a pid namespace the numbers of all processes are the host's, and the kernel lets every process change how those of the
// same user are scheduled, and their limits. Each of these calls has its number in a register, and goes on in the kernel if that is
// one of the sandbox's; else it fails as in a sandbox with a pid namespace, in which there is no such process.

// numberSpecs finds a call on a process by its number.
func numberSpecs(number int32) (spec, bool) {
	switch number {
	case unix.SYS_SCHED_SETPARAM:
		return spec{name: "sched_setparam", perform: (*call).onProcess}, true
	case unix.SYS_SCHED_SETSCHEDULER:
		return spec{name: "sched_setscheduler", perform: (*call).onProcess}, true
	case unix.SYS_SCHED_SETAFFINITY:
		return spec{name: "sched_setaffinity", perform: (*call).onProcess}, true
	case unix.SYS_SCHED_SETATTR:
		return spec{name: "sched_setattr", perform: (*call).onProcess}, true
	case unix.SYS_PRLIMIT64:
		return spec{name: "prlimit64", perform: (*call).onProcess}, true
	case unix.SYS_SETPRIORITY:
		return spec{name: "setpriority", perform: func(c *call) outcome { return c.onMany(unix.PRIO_PROCESS, unix.PRIO_USER) }}, true
	case unix.SYS_IOPRIO_SET:
		return spec{name: "ioprio_set", perform: func(c *call) outcome { return c.onMany(ioprioProcess, ioprioUser) }}, true
	}
	return spec{}, false
}

// Values of the first argument of ioprio_set(2): IOPRIO_WHO_PROCESS and the last one, IOPRIO_WHO_USER.
const (
	ioprioProcess = 1
	ioprioUser    = 3
)

// onProcess performs a call on the process that its first argument numbers.
func (c *call) onProcess() outcome { return c.onNumber(c.int(0)) }

// onMany performs a call on a process, or on all of a process group or user, of which some can be the host's.
func (c *call) onMany(process, last int32) outcome {
	switch which := c.int(0); {
	case which == process:
		return c.onNumber(c.int(1))
	case which < process, which > last:
		return failed(unix.EINVAL)
	}
	return failed(unix.EPERM)
}

// onNumber lets a call on a process or thread of the sandbox go on. A number that ends and is another's by the time that the kernel
// looks would take all numbers to be used up meanwhile.
func (c *call) onNumber(n int32) outcome {
	if n < 0 {
		return outcome{proceed: true} // which no process has: the kernel says so
	}
	if errno := c.readStatus(); errno != 0 {
		return failed(errno)
	}
	if int(n) == 0 || int(n) == c.tid || int(n) == c.status.tgid || int(n) != c.s.config.Init && c.s.owns(int(n)) {
		return outcome{proceed: true}
	}
	return failed(unix.ESRCH)
}

// ownProcSettings are files of a process's directory in /proc with which it changes nothing but itself, and in which the kernel
// looks at who writes (proc_pid(5)). In a procfs of its own a command may write to all that the kernel lets it; in the host's it
// may write to these.
var ownProcSettings = map[string]bool{"comm": true, "oom_score_adj": true, "coredump_filter": true}

// openOwnSetting opens such a file of the caller's own to write, which no domain of a hand allows. own is false where it is none.
func (c *call) openOwnSetting(at place, how openHow) (out outcome, own bool) {
	if c.s.config.Changes == nil || !how.writes() || at.magic || !ownProcSettings[at.last] {
		return out, false
	}
	fs, errno := c.fileSystem(at.object)
	where, err := c.where(at.dir)
	if errno != 0 || err != nil || fs.Type != unix.PROC_SUPER_MAGIC {
		return out, false
	}
	owner, ok := procOwner(where)
	process, _, errno := c.numbers()
	if errno != 0 || !ok || owner != process {
		return out, false
	}
	relative, thread := procRelative(where, at.last)
	fd, errno := c.openOwn(relative, thread, reopenFlags(how)|unix.O_NOFOLLOW)
	if errno != 0 {
		return failed(errno), true
	}
	return c.give(fd, how), true
}
