package ns

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// What a confined sandbox (Config.Confined) has in the place of a pid namespace. The restrictions at the top of child_linux.go
// hold here too.
//
//	srt            no Landlock domain of the sandbox
//	  keeper       domain D1, which scopes signals (ours: confine); adopts orphans
//	    supervisor D1; what pid 1 is elsewhere (init_linux.go); adopts orphans before the keeper does
//	      command  domain D2 in D1 (Program.RestrictCommand), which scopes signals as well; and all that descends from it
//
// A signal goes to the sender's domain and to those within it (landlock(7)). So the command reaches neither of the two, nor srt;
// and kill(-1, SIGKILL) by one of the two reaches exactly their own sandbox. The kernel sends that with the list of tasks
// locked, and a fork that is under way fails once its caller has to die (kill(2), copy_process() in kernel/fork.c): nothing is
// missed, however fast it forks.
//
// There are two so that nothing gets away when somebody outside kills one of them: the keeper kills and reaps the rest when the
// supervisor has ended, however it has, and the supervisor does when the keeper has. What ends both at the same instant leaves
// processes behind that are held by their rules and that nobody answers any more.

// sigcont tells the supervisor that the keeper is gone, and has it go on if somebody has stopped it.
const sigcont = uintptr(unix.SIGCONT)

// confine puts the process into a Landlock domain of its own that scopes signals, and has it adopt the orphans among its
// descendants. c.scoped, without which endTree does nothing, is set here alone. It comes before any other step: filters that
// the program loads may refuse these calls.
//
//go:norace
//go:nosplit
func confine(c *child) (step, errno uintptr) {
	if _, errno = sys(syscall.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0, 0); errno != 0 {
		return fixedScope, errno
	}
	c.scope = [3]uint64{2: unix.LANDLOCK_SCOPE_SIGNAL}
	set, errno := sys(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&c.scope)), unsafe.Sizeof(c.scope), 0, 0, 0, 0)
	if errno != 0 {
		return fixedScope, errno
	}
	if _, errno = sys(unix.SYS_LANDLOCK_RESTRICT_SELF, set, 0, 0, 0, 0, 0); errno != 0 {
		return fixedScope, errno
	}
	c.scoped = 1
	if _, errno = sys(syscall.SYS_CLOSE, set, 0, 0, 0, 0, 0); errno != 0 {
		return fixedScope, errno
	}
	_, errno = sys(syscall.SYS_PRCTL, unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0, 0)
	return fixedReaper, errno
}

// awaitBegin waits for the word to start the command. Until it has come this process is alone and the host side may simply kill
// it; from then on the host side does not (Process.Kill).
//
//go:norace
//go:nosplit
func awaitBegin(c *child) uintptr {
	n, errno := receive(&c.parcel)
	if errno != 0 {
		return errno
	}
	if n != msgSize || c.msg[0] != msgBegin {
		return uintptr(syscall.ESHUTDOWN)
	}
	return 0
}

// undumpable makes sure that nobody without CAP_SYS_PTRACE looks into this process, or traces it (PR_SET_DUMPABLE(2const)). The two
// processes share their memory, and with it this.
//
//go:norace
//go:nosplit
func undumpable() uintptr {
	if _, errno := sys(syscall.SYS_PRCTL, unix.PR_SET_DUMPABLE, 0, 0, 0, 0, 0); errno != 0 {
		return errno
	}
	if is, errno := sys(syscall.SYS_PRCTL, unix.PR_GET_DUMPABLE, 0, 0, 0, 0, 0); errno != 0 || is != 0 {
		return uintptr(syscall.EPERM)
	}
	return 0
}

// stepBack makes the process the keeper, and a child of it, in which this function does not return but supervisorMain runs, the
// supervisor. It returns only with an error.
//
//go:norace
//go:nosplit
func stepBack(c *child) (step, errno uintptr) {
	if errno = undumpable(); errno != 0 {
		return fixedUndumpable, errno
	}
	if errno = awaitBegin(c); errno != 0 {
		return fixedBegin, errno
	}
	c.keeper, _ = sys(syscall.SYS_GETPID, 0, 0, 0, 0, 0, 0)
	pid, errno := forkOn(unix.CLONE_VM|unix.CLONE_SETTLS|uintptr(unix.SIGCHLD), c.second, c.secondTLS)
	if errno != 0 {
		return fixedFork, errno
	}
	keep(c, pid)
	return 0, 0
}

// keep is all the rest of the keeper's life. It holds what the sandbox holds (Command.Hold), and the right to kill whatever user
// the command has become, and nothing else.
//
//go:norace
//go:nosplit
func keep(c *child, supervisor uintptr) {
	closeFrom(firstFree + c.held)
	for fd := range uintptr(firstFree) {
		sys(syscall.SYS_CLOSE, fd, 0, 0, 0, 0, 0)
	}
	sys(syscall.SYS_PRCTL, unix.PR_SET_NAME, uintptr(unsafe.Pointer(&c.keeperName)), 0, 0, 0, 0)
	if c.bare == 0 {
		if _, errno := sys(unix.SYS_CAPSET, uintptr(unsafe.Pointer(&c.capHead)), uintptr(unsafe.Pointer(&c.capData)), 0, 0, 0, 0); errno != 0 {
			endTree(c)
			dieKilled(c.keeper)
		}
	}
	for {
		pid, _ := sys(syscall.SYS_WAIT4, ^uintptr(0), uintptr(unsafe.Pointer(&c.keeperStatus)), syscall.WALL|unix.WUNTRACED, 0, 0, 0)
		if pid != supervisor {
			continue
		}
		switch w := syscall.WaitStatus(c.keeperStatus); {
		case w.Stopped(): // by somebody outside
			sys(syscall.SYS_KILL, supervisor, sigcont, 0, 0, 0, 0)
		case w.Exited():
			endTree(c)
			exit(uintptr(w >> 8 & 0xff))
		default:
			endTree(c)
			dieKilled(c.keeper)
		}
	}
}

// supervisorMain is the first function of the supervisor. It does not return.
//
//go:norace
//go:nosplit
func supervisorMain(c *child) {
	if _, errno := sys(syscall.SYS_PRCTL, unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0, 0); errno != 0 {
		fail(c, programFixed, fixedReaper, errno)
	}
	if _, errno := sys(syscall.SYS_PRCTL, unix.PR_SET_PDEATHSIG, sigcont, 0, 0, 0, 0); errno != 0 {
		fail(c, programFixed, fixedReaper, errno)
	}
	if orphaned(c) {
		fail(c, programFixed, fixedReaper, uintptr(syscall.ESRCH))
	}
	self, _ := sys(syscall.SYS_GETPID, 0, 0, 0, 0, 0, 0)
	c.msg = [4]uint32{msgBegun, uint32(self)}
	if _, errno := send(c); errno != 0 {
		fail(c, programFixed, fixedBegin, errno)
	}
	if step, errno := startCommand(c); errno != 0 {
		fail(c, programFixed, step, errno)
	}
	for {
		supervise(c)
	}
}

// orphaned tells whether the keeper is gone.
//
//go:norace
//go:nosplit
func orphaned(c *child) bool {
	parent, _ := sys(syscall.SYS_GETPPID, 0, 0, 0, 0, 0, 0)
	return parent != c.keeper
}

// endTree kills everything in the sandbox but the caller, and waits until all of it is gone. What is not a descendant of the
// caller is in no domain of the sandbox, or is the other of its two processes, which goes with it.
//
//go:norace
//go:nosplit
func endTree(c *child) {
	if c.scoped == 0 { // else the signal would go to every process of the user
		exit(1)
	}
	for {
		sys(syscall.SYS_KILL, ^uintptr(0), uintptr(unix.SIGKILL), 0, 0, 0, 0)
		_, errno := sys(syscall.SYS_WAIT4, ^uintptr(0), 0, syscall.WALL, 0, 0, 0)
		for errno == 0 {
			var pid uintptr
			if pid, errno = sys(syscall.SYS_WAIT4, ^uintptr(0), 0, syscall.WALL|unix.WNOHANG, 0, 0, 0); pid == 0 {
				break
			}
		}
		if errno == uintptr(syscall.ECHILD) {
			return
		}
	}
}

// dieKilled ends the process as SIGKILL does: for the host side the sandbox was killed (KilledError).
//
//go:norace
//go:nosplit
func dieKilled(self uintptr) {
	sys(syscall.SYS_KILL, self, uintptr(unix.SIGKILL), 0, 0, 0, 0)
	exit(1)
}

// leaveConfined ends the supervisor; the keeper ends the rest. The supervisor does so where there is no keeper any more.
//
//go:norace
//go:nosplit
func leaveConfined(c *child, status uintptr) {
	if orphaned(c) {
		endTree(c)
	}
	if status == hostGone {
		self, _ := sys(syscall.SYS_GETPID, 0, 0, 0, 0, 0, 0)
		dieKilled(self)
	}
	exit(status)
}

// restrictCommand enforces the command's own ruleset, and proves in a confined sandbox that no signal of the command reaches
// the supervisor: an error of whoever made the ruleset must not become a way out.
//
//go:norace
//go:nosplit
func restrictCommand(c *child) (step, errno uintptr) {
	if _, errno = sys(unix.SYS_LANDLOCK_RESTRICT_SELF, firstFree+c.held, 0, 0, 0, 0, 0); errno != 0 {
		return fixedRestrict, errno
	}
	if c.confined == 0 {
		return 0, 0
	}
	parent, _ := sys(syscall.SYS_GETPPID, 0, 0, 0, 0, 0, 0)
	if _, errno = sys(syscall.SYS_KILL, parent, 0, 0, 0, 0, 0); errno != uintptr(syscall.EPERM) {
		return fixedSeparate, uintptr(syscall.EPERM)
	}
	return 0, 0
}
