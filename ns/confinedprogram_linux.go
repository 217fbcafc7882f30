package ns

import (
	"errors"
	"unsafe"

	"golang.org/x/sys/unix"
)

// RestrictCommand has the command, and all that it starts, held by a further Landlock ruleset (landlock_restrict_self(2)): set is
// the descriptor, open when the program ends and made by it, not by the part before Ahead. Pid 1 is not held by it. It is
// enforced between vfork and exec, after all filters, which must let landlock_restrict_self(2) pass. no_new_privs comes before
// it. For a confined sandbox (Config.Confined) it is required and must scope signals (LANDLOCK_SCOPE_SIGNAL), which is proven
// before the command is executed. The last call counts.
func (p *Program) RestrictCommand(set Slot) { p.restrict = set }

// ConfineCapabilities is KeepCapabilities for a program that runs in the caller's own user namespace (Config.Confined, which
// requires it): it appends no_new_privs, and leaves the process and all its descendants no capability but those in keep that the
// caller has. The bounding set is limited where the caller may do that; under no_new_privs executing a file gives no capability
// in any case (capabilities(7)).
//
// A set with CAP_SETUID needs CAP_KILL too: a command must not become what its supervisor cannot end. Else Start fails.
func (p *Program) ConfineCapabilities(keep Capabilities) error {
	own, err := ownCapabilities()
	if err != nil {
		return err
	}
	keep &= own
	if keep&CapabilitySet(unix.CAP_SETUID) != 0 && keep&CapabilitySet(unix.CAP_KILL) == 0 {
		return errors.New("ns: a confined command with CAP_SETUID could become another user, whom its supervisor cannot kill without CAP_KILL: keep both or none")
	}
	p.NoNewPrivs()
	p.limitCapabilities(keep, unix.EINVAL, unix.EPERM)
	p.confines, p.kept = true, keep
	return nil
}

// ownCapabilities are the permitted ones of this thread, which a forked process has as well (capget(2)).
func ownCapabilities() (Capabilities, error) {
	head := capHeader{version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]capData
	if _, errno := sys(unix.SYS_CAPGET, uintptr(unsafe.Pointer(&head)), uintptr(unsafe.Pointer(&data)), 0, 0, 0, 0); errno != 0 {
		return 0, &StepError{Op: "ask for the capabilities (capget)", Err: unix.Errno(errno)}
	}
	return Capabilities(data[0].permitted) | Capabilities(data[1].permitted)<<32, nil
}

// check refuses what no sandbox can be made with.
func (c *Config) check() error {
	switch {
	case !c.Confined && (c.Namespaces&unix.CLONE_NEWPID == 0 || c.Namespaces&unix.CLONE_NEWUSER == 0):
		return errors.New("ns: a sandbox needs a pid and a user namespace of its own")
	case c.Confined && (c.Namespaces != 0 || c.UIDs != nil || c.GIDs != nil || c.DenySetgroups):
		return errors.New("ns: a confined sandbox has no namespaces, and no identity maps")
	}
	return nil
}

// becomeConfined adds what the two processes of a confined sandbox need.
func (ch *child) becomeConfined(p *Program) error {
	switch {
	case !p.confines:
		return errors.New("ns: the program of a confined sandbox must limit its capabilities (Program.ConfineCapabilities)")
	case p.restrict == 0:
		return errors.New("ns: a confined command needs a Landlock ruleset of its own (Program.RestrictCommand): else it could signal its supervisor")
	}
	pad := (*launchpad)(unsafe.Pointer(unsafe.SliceData(p.alloc(int(unsafe.Sizeof(launchpad{})), 16))))
	pad.own.supervisor = ch
	ch.second, ch.secondTLS = pad.entry()
	keep := p.kept & CapabilitySet(unix.CAP_KILL)
	ch.capData = newCapData(keep, keep)
	return nil
}
