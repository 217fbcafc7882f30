package probe

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/srt-sandbox/srt/ns"
	"github.com/srt-sandbox/srt/probe/hostfacts"
)

// The questions that a child answers, since a process of several threads can make no user namespace and nobody can leave one.
// The child is a sandbox's first process, with a program of a few steps, and a command that is not there.

const (
	cloneIPC    = ns.Namespaces(unix.CLONE_NEWIPC)
	cloneUTS    = ns.Namespaces(unix.CLONE_NEWUTS)
	cloneCgroup = ns.Namespaces(unix.CLONE_NEWCGROUP)
	cloneMount  = ns.Namespaces(unix.CLONE_NEWNS)
	cloneNet    = ns.Namespaces(unix.CLONE_NEWNET)
	// least is what package ns makes no sandbox without.
	least = ns.Namespaces(unix.CLONE_NEWUSER | unix.CLONE_NEWPID)
)

// child makes a process in new namespaces that runs a program, and waits for its end. A step that failed is a *ns.StepError.
func child(kinds ns.Namespaces, write func(*ns.Program)) error {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer null.Close()
	program, err := ns.NewProgram()
	if err != nil {
		return err
	}
	uid, gid := uint32(os.Geteuid()), uint32(os.Getegid())
	prepared, err := ns.Prepare(&ns.Config{Namespaces: least | kinds, DenySetgroups: true, Stdin: null, Stdout: null, Stderr: null,
		UIDs: []ns.IDMap{{Inside: uid, Outside: uid, Count: 1}}, GIDs: []ns.IDMap{{Inside: gid, Outside: gid, Count: 1}}}, program)
	if err != nil {
		return errors.Join(err, program.Release())
	}
	if write == nil {
		return prepared.Close()
	}
	write(program)
	process, err := prepared.Start(&ns.Command{Args: []string{"probe"}, Candidates: []string{""}})
	if err != nil {
		return err
	}
	_, err = process.Wait()
	if _, ok := errors.AsType[*ns.ExecError](err); ok { // the program is done, and there is no command
		return nil
	}
	return err
}

// Where a child can fail.
const (
	cloneStep = "clone"
	mapStep   = "_map"
)

// stepOf parts the ways in which a child fails: at clone(2), at the identity maps, or at its program.
func stepOf(err error) (*ns.StepError, string) {
	step, ok := errors.AsType[*ns.StepError](err)
	switch {
	case !ok:
		return nil, ""
	case strings.Contains(step.Op, cloneStep):
		return step, cloneStep
	case strings.HasSuffix(step.Subject, mapStep) || strings.HasSuffix(step.Subject, "/setgroups"):
		return step, mapStep
	}
	return step, step.Op
}

// told turns a child's failure into what was found.
func told(err error) (int, string, error) {
	if err == nil {
		return 1, works, nil
	}
	step, at := stepOf(err)
	switch {
	case step == nil:
		return 0, "", err
	case at == cloneStep:
		return 0, "clone is refused (" + errnoText(step.Err) + ")", step.Err
	case at == mapStep:
		return 0, "a user namespace can be made, but no id can be mapped in it (" + errnoText(step.Err) + ")", step.Err
	}
	what := strings.TrimSpace(step.Op + " " + step.Subject)
	return 0, "the namespace can be made, but in it the kernel refuses to " + what + " (" + errnoText(step.Err) + ")", step.Err
}

func askUserns() (int, string, error) { return told(child(0, nil)) }

// askNamespace asks for one more kind of namespace. proc names it in /proc/self/ns, which the kernel has it listed in.
func askNamespace(proc string, kind ns.Namespaces) func() (int, string, error) {
	return func() (int, string, error) {
		if _, err := os.Lstat("/proc/self/ns/" + proc); err != nil {
			return 0, "the kernel was built without", lack{err}
		}
		if slices.Contains(hostfacts.Look(hostfacts.Here).NoneAllowed, proc) {
			found := fmt.Sprintf("user.max_%s_namespaces is 0", proc)
			return 0, found, refusal{errors.New(found)}
		}
		return told(child(kind, nil))
	}
}

// askMount cuts the propagation of mounts, as every start does first. Where AppArmor gives new user namespaces no
// capabilities, that is what is refused.
func askMount() (int, string, error) {
	return told(child(cloneMount, func(p *ns.Program) {
		p.Call("change a mount", "", unix.SYS_MOUNT, ns.Int(0), p.Str("/"), ns.Int(0), ns.Int(unix.MS_REC|unix.MS_PRIVATE), ns.Int(0))
	}))
}

// askNet brings up loopback, for which the namespace must have an owner with capabilities.
func askNet() (int, string, error) {
	return told(child(cloneNet, func(p *ns.Program) { p.LoopbackUp() }))
}

// askProc makes a detached procfs of a new pid namespace. The kernel refuses one that would show what is masked in the
// surrounding one (mount_too_revealing in fs/namespace.c).
func askProc() (int, string, error) {
	return told(child(cloneMount, func(p *ns.Program) {
		fs := p.Call("open a procfs", "", unix.SYS_FSOPEN, p.Str("proc"), ns.Int(unix.FSOPEN_CLOEXEC))
		p.Call("make a procfs", "", unix.SYS_FSCONFIG, fs.Arg(), ns.Int(unix.FSCONFIG_CMD_CREATE), ns.Int(0), ns.Int(0), ns.Int(0))
		mount := p.Call("mount a procfs", "", unix.SYS_FSMOUNT, fs.Arg(), ns.Int(unix.FSMOUNT_CLOEXEC),
			ns.Int(unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV|unix.MOUNT_ATTR_NOEXEC))
		p.Close(mount)
		p.Close(fs)
	}))
}
