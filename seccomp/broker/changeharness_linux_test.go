package broker

import (
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/srt-sandbox/srt/fsview"
	"github.com/srt-sandbox/srt/ns"
	"github.com/srt-sandbox/srt/probe"
	"github.com/srt-sandbox/srt/probe/probetest"
	"github.com/srt-sandbox/srt/seccomp"
)

// changeJudge refuses by location.
type changeJudge struct {
	testJudge
	change func(location string, a fsview.Access) syscall.Errno
}

func (j *changeJudge) Change(location string, a fsview.Access) (string, syscall.Errno) {
	if j.change == nil {
		return "", 0
	}
	if errno := j.change(location, a); errno != 0 {
		return "test.change", errno
	}
	return "", 0
}

// handledRights are those that change something (landlock(7), ABI 6).
const handledRights = unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_REMOVE_DIR | unix.LANDLOCK_ACCESS_FS_REMOVE_FILE |
	unix.LANDLOCK_ACCESS_FS_MAKE_CHAR | unix.LANDLOCK_ACCESS_FS_MAKE_DIR | unix.LANDLOCK_ACCESS_FS_MAKE_REG |
	unix.LANDLOCK_ACCESS_FS_MAKE_SOCK | unix.LANDLOCK_ACCESS_FS_MAKE_FIFO | unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK |
	unix.LANDLOCK_ACCESS_FS_MAKE_SYM | unix.LANDLOCK_ACCESS_FS_REFER | unix.LANDLOCK_ACCESS_FS_TRUNCATE

// ruleset appends the making of a ruleset that handles rights and grants them beneath paths.
func ruleset(p *ns.Program, handled, granted, scope uint64, beneath ...string) ns.Slot {
	attr := [3]uint64{handled, 0, scope}
	set := p.Call("make the ruleset", "", unix.SYS_LANDLOCK_CREATE_RULESET, ns.Pointer(p, &attr), ns.Int(24), ns.Int(0))
	if granted == 0 {
		return set
	}
	for _, path := range beneath {
		rule := &unix.LandlockPathBeneathAttr{Allowed_access: granted}
		fd := p.Call("open", path, unix.SYS_OPENAT, ns.Int(unix.AT_FDCWD), p.Str(path), ns.Int(unix.O_PATH|unix.O_CLOEXEC), zero)
		at := ns.Pointer(p, rule)
		p.Store(at, int(unsafe.Offsetof(rule.Parent_fd)), fd)
		p.Call("add a rule", path, unix.SYS_LANDLOCK_ADD_RULE, set.Arg(), ns.Int(unix.LANDLOCK_RULE_PATH_BENEATH), at, zero)
		p.Close(fd)
	}
	return set
}

// startChanging starts a probe without namespaces.
func startChanging(t testing.TB, s setup, p *ns.Program, keep ns.Capabilities, rights *ns.Identity) *sandbox {
	t.Helper()
	probetest.NeedVersion(t, probe.Landlock, 6)
	handled := uint64(0)
	if s.walls {
		handled = handledRights
	}
	hand := ruleset(p, handled, handled, unix.LANDLOCK_SCOPE_SIGNAL, s.folder)
	p.SendFiles(1, "the hands' ruleset", hand)
	p.Close(hand)
	p.RestrictCommand(ruleset(p, handled, handled&unix.LANDLOCK_ACCESS_FS_WRITE_FILE, unix.LANDLOCK_SCOPE_SIGNAL, devices(s.walls)...))
	p.Chdir(s.folder)
	p.Undumpable()
	if err := p.ConfineCapabilities(keep); err != nil {
		t.Fatal(err)
	}
	if s.changes != nil {
		if s.filter == nil {
			s.filter = func() seccomp.Filter { return seccomp.Stack(seccomp.Confined(), seccomp.Changes())[0] }
		}
		if s.judge == nil {
			s.judge = &testJudge{}
			if j, ok := s.changes.(*changeJudge); ok {
				s.judge = j
			}
		}
		if observeAll {
			s.observe()
		}
		listener := p.FilterWithListener("changes", s.filter().Program())
		p.SendFiles(0, "the listener", listener)
		p.Close(listener)
	}
	return launchProbe(t, s, p, ns.Config{Confined: true}, keep, rights)
}

// devices are what a command may write to under walls.
func devices(walls bool) []string {
	if !walls {
		return nil
	}
	return []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/tty", "/dev/pts"}
}

// serveChanges completes what a Server of such a sandbox works with.
func (b *sandbox) serveChanges(c *Config, s setup, keep ns.Capabilities) {
	c.Changes, c.Init = s.changes, b.process.Pid()
	c.NewHand = func() (Hand, error) {
		return ns.StartHand(ns.HandConfig{Process: b.process, Ruleset: b.process.Files[1], Listener: b.process.Files[0], Keep: keep})
	}
}
