package ns

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/srt-sandbox/srt/ns/internal/rlimit"
)

// Prepared is a process in its namespaces that waits for its program. One of Start and Close must be called.
type Prepared struct {
	process    *Process
	child      *child
	namespaces Namespaces
}

// Prepare makes the namespaces and maps the identities. The new process then waits, while the caller writes the program:
// the two take about as long as one another. Appending to the program meanwhile, from one other goroutine, is safe; it
// must not be released before Start or Close.
//
// It fails closed: on an error no process is left. It is safe for concurrent use with different programs.
func Prepare(c *Config, program *Program) (*Prepared, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, &StepError{Op: "make a socket pair", Err: err}
	}
	ctl := os.NewFile(uintptr(pair[0]), "sandbox control socket")
	ch := program.child
	if err := ch.prepare(c, pair[1]); err != nil {
		unix.Close(pair[1])
		ctl.Close()
		return nil, err
	}
	cores.mu.RLock()
	if ch.core = cores.original; cores.limited {
		ch.cored = 1
	}
	pid, errno := fork(c.Namespaces, program.pad, program.mem)
	cores.mu.RUnlock()
	runtime.KeepAlive(c)
	unix.Close(pair[1])
	if errno != 0 {
		ctl.Close()
		return nil, cloneError(c, errno)
	}
	p := &Prepared{child: ch, namespaces: c.Namespaces, process: &Process{pid: int(pid), ctl: ctl, program: program, tty: c.Session == SessionForeground, confined: c.Confined,
		ungrouped: c.DenySetgroups}}
	if c.Confined {
		return p, nil
	}
	if err := writeMaps(int(pid), c); err != nil {
		return nil, p.process.abandon(err)
	}
	return p, nil
}

// Start lets the process run its program and become the command. When it returns without an error the program is
// complete and what it sent is in Process.Files, owned by the caller; whether the command could be executed is known
// from Process.Wait. On an error, a *StepError for a step that failed, the process is gone and the command never
// existed. Either way the program is released.
func (p *Prepared) Start(cmd *Command) (*Process, error) {
	proc := p.process
	defer func() { _ = proc.program.Release() }() // a failure leaks address space, which is no reason to end the command
	err := p.child.become(cmd, proc.program)
	if err == nil {
		proc.name = cmd.Args[0]
		err = proc.hand(cmd)
	}
	if err == nil {
		err = proc.awaitReady()
	}
	if err == nil && proc.confined {
		err = proc.begin()
	}
	if err != nil {
		return nil, proc.abandon(err)
	}
	return proc, nil
}

// hand sends the word to go on with what pid 1 holds: cmd.Hold, and after these what the command finds at cmd.Null. That is opened
// here, because an opening in the sandbox may be put to the host side, which cannot read of it in memory that pid 1 still shares.
func (p *Process) hand(cmd *Command) error {
	files := cmd.Hold
	if cmd.Null != 0 {
		null, err := os.Open(os.DevNull)
		if err != nil {
			return err
		}
		defer null.Close()
		files = append(slices.Clip(files), null)
	}
	return p.sendFiles(message{msgGo, uint32(len(files))}, files)
}

// cloneError says why there is no new process.
func cloneError(c *Config, errno syscall.Errno) error {
	if c.Confined {
		return &StepError{Op: "make the supervisor (clone)", Err: errno}
	}
	return &StepError{Op: "make the namespaces (clone)", Err: errno, Cause: cloneCause(errno)}
}

// Close ends a process that is not to be started.
func (p *Prepared) Close() error {
	_ = p.process.abandon(nil) // why it could not have started is of no interest any more
	return p.process.program.Release()
}

// prepare fills in what the new process needs until its program starts. It takes no memory of the program, which another
// goroutine may be writing.
func (ch *child) prepare(c *Config, ctl int) error {
	noFile, ok := rlimit.NoFile()
	if !ok {
		return &StepError{Op: "read the limit of open files", Err: unix.EINVAL}
	}
	*ch = child{
		ahead: ch.ahead, session: c.Session, noFile: noFile, reply: ctlFD,
		streams: [4]uintptr{c.Stdin.Fd(), c.Stdout.Fd(), c.Stderr.Fd(), uintptr(ctl)},
		capHead: capHeader{version: unix.LINUX_CAPABILITY_VERSION_3},
	}
	if c.Confined {
		ch.confined = 1
		copy(ch.keeperName[:], "srt-keeper")
	}
	ch.parcel.prepare(&ch.msg)
	return nil
}

// become adds the program and the command.
func (ch *child) become(cmd *Command, p *Program) error {
	if len(cmd.Args) == 0 {
		return errors.New("ns: a command needs at least its name")
	}
	held := len(cmd.Hold)
	if cmd.Null != 0 {
		held++
	}
	if held > maxFiles {
		return fmt.Errorf("ns: a sandbox cannot hold %d descriptors; %d is the most", held, maxFiles)
	}
	if cmd.Null != 0 && cmd.Null < ctlFD {
		return fmt.Errorf("ns: descriptor %d is a standard stream and cannot be the null device beside them", cmd.Null)
	}
	for _, list := range [][]string{cmd.Args, cmd.Env, cmd.Candidates} {
		for i, s := range list {
			if strings.IndexByte(s, 0) >= 0 { // which one is not said by its text, which may be secret
				return fmt.Errorf("ns: an argument or environment variable (number %d of its list) holds a NUL byte", i)
			}
		}
	}
	ch.argv, ch.envp = vector(p, cmd.Args), vector(p, cmd.Env)
	ch.execs, ch.nexecs = vector(p, cmd.Candidates), len(cmd.Candidates)
	ch.shArgv = vector(p, append([]string{"sh", ""}, cmd.Args[1:]...))
	ch.sh = p.Str("/bin/sh").value
	if cmd.Null != 0 {
		ch.null = uintptr(cmd.Null)
	}
	if ch.confined != 0 {
		if err := ch.becomeConfined(p); err != nil {
			return err
		}
	}
	ch.script, _ = p.seal()
	ch.restrict = uint32(p.restrict)
	ch.bare = 0
	if p.bare {
		ch.bare = 1
	}
	return p.err
}

// vector is a NULL-terminated array of C strings in the program's memory.
func vector(p *Program, words []string) *uintptr {
	list, b := p.Buffer(8 * (len(words) + 1))
	for i, w := range words {
		binary.NativeEndian.PutUint64(b[8*i:], uint64(p.Str(w).value))
	}
	return (*uintptr)(pointer(list.value))
}

// writeMaps gives the new user namespace its identities (user_namespaces(7)). Only the host side can map more than its
// own id.
func writeMaps(pid int, c *Config) error {
	dir := procDir(pid)
	if c.DenySetgroups {
		if err := writeFile(dir+"setgroups", "deny"); err != nil {
			return err
		}
	}
	if err := writeFile(dir+"gid_map", mapText(c.GIDs)); err != nil {
		return err
	}
	return writeFile(dir+"uid_map", mapText(c.UIDs))
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
