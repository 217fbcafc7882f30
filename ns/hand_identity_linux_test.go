package ns

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// rootOnly skips a test of what only root's hands can do; they run as root in every pipeline (build/test.sh).
func rootOnly(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skipf("got user id %d, want 0: an ordinary user's sandbox has one identity only", os.Geteuid())
	}
}

// owner makes a file and gives who it belongs to.
func owner(t *testing.T, h *Hand, path string, as *Identity) (uid, gid uint32, r HandResult) {
	t.Helper()
	p := h.Program()
	if as != nil {
		p.ActAs(*as)
	}
	fd := openAt(p, path, unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY)
	statx, b := p.Buffer(int(unsafe.Sizeof(unix.Statx_t{})))
	p.Call("stat", path, unix.SYS_STATX, fd.Arg(), p.Str(""), Int(unix.AT_EMPTY_PATH), Int(unix.STATX_BASIC_STATS), statx)
	r = do(t, h)
	const offUID, offGID = 20, 24
	return binary.NativeEndian.Uint32(b[offUID:]), binary.NativeEndian.Uint32(b[offGID:]), r
}

func TestHandActsAsAnother(t *testing.T) {
	rootOnly(t)
	b := newBox(t, true)
	h := b.hand(t)
	another := &Identity{UID: 1000, GID: 1001, Groups: []uint32{1002}}
	for _, c := range []struct {
		name     string
		as       *Identity
		uid, gid uint32
		errno    syscall.Errno
	}{
		{"a", nil, 0, 0, 0},
		{"b", another, 1000, 1001, 0},
		{"c", nil, 0, 0, 0},
		{"d", &Identity{UID: 1000, GID: 1001, Effective: rootKeeps}, 1000, 1001, 0},
		{"absent/e", another, 0, 0, unix.ENOENT}, // fails half-way
		{"e", nil, 0, 0, 0},
		{"f", &Identity{UID: 1 << 20, GID: 1001}, 0, 0, unix.EPERM}, // no such user in the sandbox: setfsuid tells nothing
		{"f", nil, 0, 0, 0},
	} {
		uid, gid, r := owner(t, h, b.path("rw/"+c.name), c.as)
		if uid != c.uid || gid != c.gid || r.Errno != c.errno {
			t.Errorf("%s: it belongs to %d:%d, %v; want %d:%d, %v", c.name, uid, gid, r.Errno, c.uid, c.gid, c.errno)
		}
	}
	want := statusFields(t, os.Getpid())["Groups"]
	if got := statusFields(t, h.pid); got["Groups"] != want || got["Uid"] != "0\t0\t0\t0" || got["Gid"] != "0\t0\t0\t0" {
		t.Errorf("afterwards it has user %q, group %q, groups %q; want its own", got["Uid"], got["Gid"], got["Groups"])
	}
	if got, want := statusFields(t, h.pid)["CapEff"], fmt.Sprintf("%016x", uint64(rootKeeps)); got != want {
		t.Errorf("afterwards its capabilities are %s, want %s", got, want)
	}
}

// TestHandJudgedAsAnother opens a file of root's that nobody else may read, with each of the ways to a right.
func TestHandJudgedAsAnother(t *testing.T) {
	rootOnly(t)
	b := newBox(t, true)
	h := b.hand(t)
	p := h.Program()
	f := openAt(p, b.path("rw/private"), unix.O_CREAT|unix.O_WRONLY)
	p.Call("chmod", "", syscall.SYS_FCHMOD, f.Arg(), Int(0o640))
	p.Call("chown", "", syscall.SYS_FCHOWN, f.Arg(), Int(0), Int(1002))
	must(t, h)
	for name, c := range map[string]struct {
		as    Identity
		errno syscall.Errno
	}{
		"nobody":                   {Identity{UID: 1000, GID: 1001}, unix.EACCES},
		"root without rights":      {Identity{Groups: []uint32{}}, 0},
		"by its group":             {Identity{UID: 1000, GID: 1002}, 0},
		"by a supplementary group": {Identity{UID: 1000, GID: 1001, Groups: []uint32{7, 1002}}, 0},
		"by a capability":          {Identity{UID: 1000, GID: 1001, Effective: CapabilitySet(unix.CAP_DAC_OVERRIDE)}, 0},
		"by one it does not keep":  {Identity{UID: 1000, GID: 1001, Effective: CapabilitySet(unix.CAP_DAC_READ_SEARCH)}, unix.EACCES},
	} {
		p := h.Program()
		p.ActAs(c.as)
		openAt(p, b.path("rw/private"), unix.O_RDONLY)
		if r := do(t, h); r.Errno != c.errno {
			t.Errorf("%s: %v, want %v", name, r.Err(), c.errno)
		}
	}
}

// TestHandReopensAsAnother holds that the hand's own descriptors stay within reach, and are opened again with the other's
// rights.
func TestHandReopensAsAnother(t *testing.T) {
	rootOnly(t)
	b := newBox(t, true)
	h := b.hand(t)
	for path, want := range map[string]syscall.Errno{b.path("rw"): 0, b.path("ro/f"): unix.EACCES} {
		p := h.Program()
		f := openAt(p, path, unix.O_PATH)
		p.ActAs(Identity{UID: 1000, GID: 1000})
		p.ReopenFD("open again", path, f, unix.O_RDONLY)
		if r := do(t, h); r.Errno != want {
			t.Errorf("%s: %v, want %v", path, r.Err(), want)
		}
	}
}

// TestHandThatCannotBeItselfAgain gives up rights for good in a program: the hand must not live on without them.
func TestHandThatCannotBeItselfAgain(t *testing.T) {
	rootOnly(t)
	for name, call := range map[string]func(*Program){
		"setresuid": func(p *Program) { p.Call("setresuid", "", syscall.SYS_SETRESUID, Int(1000), Int(1000), Int(1000)) },
		"seteuid":   func(p *Program) { p.Call("setresuid", "", syscall.SYS_SETRESUID, Int(-1), Int(1000), Int(-1)) },
		"setegid":   func(p *Program) { p.Call("setresgid", "", syscall.SYS_SETRESGID, Int(-1), Int(1000), Int(-1)) },
		"capset":    func(p *Program) { p.capset("capset", 0, 0) },
	} {
		b := newBox(t, true)
		h := b.hand(t)
		call(h.Program())
		if r, err := h.Do(); !errors.Is(err, ErrHandGone) {
			t.Errorf("%s: %v, %v", name, r.Err(), err)
		}
	}
}

// TestHandOfAUserHasOneIdentity holds that an ordinary user's hand refuses another's rights, and lives on.
func TestHandOfAUserHasOneIdentity(t *testing.T) {
	if os.Geteuid() == 0 {
		return // TestHandsAsAnotherUser runs it
	}
	b := newBox(t, true)
	h := b.hand(t)
	h.Program().ActAs(Identity{UID: 0})
	if r := do(t, h); r.Errno != unix.EPERM {
		t.Errorf("%v, want EPERM", r.Err())
	}
	h.Program()
	must(t, h)
}
