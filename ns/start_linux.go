package ns

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/srt-sandbox/srt/ns/internal/rlimit"
)

// Start makes the namespaces, runs the set-up program in them and starts the command. When it returns without an error
// the set-up is complete and what it sent is in Process.Files, owned by the caller; whether the command could be executed
// is known from Process.Wait.
//
// It fails closed: any step that fails ends the new process before the command exists, and Start returns a *StepError
// after the process is gone. It is safe for concurrent use with different configurations.
func Start(c *Config) (*Process, error) {
	if c.Namespaces&unix.CLONE_NEWPID == 0 || c.Namespaces&unix.CLONE_NEWUSER == 0 {
		return nil, errors.New("ns: a sandbox needs a pid and a user namespace of its own")
	}
	for _, s := range append(append([]string{}, c.Args...), c.Env...) {
		if strings.IndexByte(s, 0) >= 0 {
			return nil, fmt.Errorf("ns: an argument or environment variable holds a NUL byte: %q", s)
		}
	}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, &StepError{Op: "make a socket pair", Err: err}
	}
	ctl := os.NewFile(uintptr(pair[0]), "sandbox control socket")
	ch, keep, err := newChild(c, pair[1])
	if err != nil {
		unix.Close(pair[1])
		ctl.Close()
		return nil, err
	}
	pid, errno := fork(c.Namespaces, ch)
	runtime.KeepAlive(keep)
	runtime.KeepAlive(c)
	unix.Close(pair[1])
	if errno != 0 {
		ctl.Close()
		return nil, &StepError{Op: "make the namespaces (clone)", Err: errno, Cause: cloneCause(errno)}
	}
	p := &Process{pid: int(pid), ctl: ctl, config: c, tty: c.Session == SessionForeground}
	if err := p.awaitReady(); err != nil {
		p.abandon()
		return nil, err
	}
	return p, nil
}

// fork is the clone itself. Between beforeFork and afterFork nothing in this process may grow the stack, hence one
// small function.
//
//go:norace
func fork(flags Namespaces, c *child) (uintptr, syscall.Errno) {
	beforeFork()
	pid, errno := sys(syscall.SYS_CLONE, uintptr(flags)|uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
	if errno == 0 && pid == 0 {
		childMain(c)
	}
	afterFork()
	return pid, syscall.Errno(errno)
}

// newChild prepares everything that the new process needs. keep must stay alive until after fork.
func newChild(c *Config, ctl int) (ch *child, keep []any, err error) {
	noFile, ok := rlimit.NoFile()
	if !ok {
		return nil, nil, &StepError{Op: "read the limit of open files", Err: unix.EINVAL}
	}
	slots := make([]uintptr, int(c.Setup.slots)+1)
	for i := range slots {
		slots[i] = none
	}
	ch = &child{
		nsteps: len(c.Setup.steps), slots: &slots[0], session: c.Session, noFile: noFile,
		streams: [4]uintptr{c.Stdin.Fd(), c.Stdout.Fd(), c.Stderr.Fd(), uintptr(ctl)},
		capHead: capHeader{version: unix.LINUX_CAPABILITY_VERSION_3},
	}
	if ch.nsteps > 0 {
		ch.steps = &c.Setup.steps[0]
	}
	argv, env, execs := &vector{}, &vector{}, &vector{}
	argv.add(c.Args...)
	env.add(c.Env...)
	execs.add(c.Candidates...)
	sh := &vector{}
	sh.add("sh", "")
	if len(c.Args) > 1 {
		sh.add(c.Args[1:]...)
	}
	shell := &vector{}
	shell.add("/bin/sh")
	ch.argv, ch.envp, ch.shArgv = argv.pointers(), env.pointers(), sh.pointers()
	ch.execs, ch.nexecs = execs.pointers(), len(c.Candidates)
	ch.sh = *shell.pointers()
	return ch, []any{slots, argv, env, execs, sh, shell, ch}, nil
}

// vector is a NULL-terminated array of C strings.
type vector struct {
	text  [][]byte
	array []uintptr
}

func (v *vector) add(words ...string) {
	for _, w := range words {
		v.text = append(v.text, append([]byte(w), 0))
	}
}

func (v *vector) pointers() *uintptr {
	v.array = make([]uintptr, len(v.text)+1)
	for i, t := range v.text {
		v.array[i] = uintptr(unsafe.Pointer(&t[0]))
	}
	return &v.array[0]
}

// writeMaps gives the new user namespace its identities (user_namespaces(7)). Only the host side can map more than its
// own id.
func (p *Process) writeMaps() error {
	dir := "/proc/" + strconv.Itoa(p.pid) + "/"
	if p.config.DenySetgroups {
		if err := writeFile(dir+"setgroups", "deny"); err != nil {
			return err
		}
	}
	if err := writeFile(dir+"gid_map", mapText(p.config.GIDs)); err != nil {
		return err
	}
	return writeFile(dir+"uid_map", mapText(p.config.UIDs))
}

func mapText(maps []IDMap) string {
	var b strings.Builder
	for _, m := range maps {
		fmt.Fprintf(&b, "%d %d %d\n", m.Inside, m.Outside, m.Count)
	}
	return b.String()
}

func writeFile(path, text string) error {
	fd, err := unix.Open(path, unix.O_WRONLY|unix.O_CLOEXEC, 0)
	if err == nil {
		_, err = unix.Write(fd, []byte(text))
		unix.Close(fd)
	}
	if err != nil {
		return &StepError{Op: "write", Subject: path, Err: err, Cause: mapCause(err)}
	}
	return nil
}
