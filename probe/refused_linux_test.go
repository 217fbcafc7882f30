package probe

import (
	"encoding/binary"
	"encoding/json"
	"io"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/srt-sandbox/srt/ns"
	"github.com/srt-sandbox/srt/seccomp/notify"
)

// What a feature's question finds where something refuses it, told by a process that stands under just that.

const roleVariable = "SRT_PROBE_TEST"

// answer is one Result on its way out of a child.
type answer struct {
	Value   int
	Present bool
	Reason  Reason
	Found   string
	Unasked bool
}

func TestMain(m *testing.M) {
	if os.Getenv(roleVariable) == "" {
		os.Exit(m.Run())
	}
	answers := map[string]answer{}
	for _, f := range All() {
		r := f.Probe()
		a := answer{Value: r.Value, Present: r.Present(), Found: r.Found, Unasked: Unasked(r.Err)}
		if absent, ok := r.Err.(*AbsentError); ok { //nolint:errorlint // what Probe itself says
			a.Reason = absent.Reason
		}
		answers[f.Key] = a
	}
	if err := json.NewEncoder(os.Stdout).Encode(answers); err != nil {
		os.Exit(1)
	}
	os.Exit(0)
}

// refuse is a filter that answers one system call, if its first argument has one of the flags (0: in any case), with an error. An instruction has 8
// bytes: load the number, compare, load the argument (its low half, little-endian), compare, return.
func refuse(nr int, flags uint32, errno syscall.Errno) []byte {
	var code []byte
	add := func(op uint16, jt, jf byte, k uint32) {
		code = binary.NativeEndian.AppendUint16(code, op)
		code = append(code, jt, jf)
		code = binary.NativeEndian.AppendUint32(code, k)
	}
	const load = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS
	add(load, 0, 0, 0)
	add(unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K, 0, 3, uint32(nr))
	if flags == 0 { // whatever the argument
		add(unix.BPF_JMP|unix.BPF_JA, 0, 0, 1)
	} else {
		add(load, 0, 0, 16)
	}
	add(unix.BPF_JMP|unix.BPF_JSET|unix.BPF_K, 0, 1, flags)
	add(unix.BPF_RET|unix.BPF_K, 0, 0, unix.SECCOMP_RET_ERRNO|uint32(errno))
	add(unix.BPF_RET|unix.BPF_K, 0, 0, unix.SECCOMP_RET_ALLOW)
	return code
}

// inside runs this test program as the first process of a sandbox with a /proc of its own, after a program, and gives its answers.
func inside(t *testing.T, write func(*ns.Program), env ...string) map[string]answer {
	t.Helper()
	if r := FreshProc.Probe(); !r.Present() {
		t.Skipf("such a process needs a /proc of its own: %v", r.Err)
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	out, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	program, err := ns.NewProgram()
	if err != nil {
		t.Fatal(err)
	}
	uid, gid := uint32(os.Getuid()), uint32(os.Getgid())
	p, err := ns.Prepare(&ns.Config{Namespaces: least | cloneMount, DenySetgroups: true, Stdin: null, Stdout: in, Stderr: os.Stderr,
		UIDs: []ns.IDMap{{Inside: uid, Outside: uid, Count: 1}}, GIDs: []ns.IDMap{{Inside: gid, Outside: gid, Count: 1}}}, program)
	if err != nil {
		t.Fatal(err)
	}
	program.Call("cut the propagation of mounts", "", unix.SYS_MOUNT, ns.Int(0), program.Str("/"), ns.Int(0), ns.Int(unix.MS_REC|unix.MS_PRIVATE), ns.Int(0))
	program.Call("mount", "/proc", unix.SYS_MOUNT, program.Str("proc"), program.Str("/proc"), program.Str("proc"), ns.Int(0), ns.Int(0))
	write(program)
	process, err := p.Start(&ns.Command{Args: []string{exe}, Candidates: []string{exe}, Env: append(env, roleVariable+"=1", "PATH=/usr/bin:/bin")})
	in.Close()
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(out)
	if st, waitErr := process.Wait(); err != nil || waitErr != nil || st.Code != 0 {
		t.Fatalf("%v, %v, status %d: %s", err, waitErr, st.Code, text)
	}
	answers := map[string]answer{}
	if err := json.Unmarshal(text, &answers); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return answers
}

// TestRefused: each refusal takes its feature, and what builds on that, and nothing else that is here.
func TestRefused(t *testing.T) {
	flagged := func(nr int, flags uint32, errno syscall.Errno) func(*ns.Program) {
		return func(p *ns.Program) {
			p.NoNewPrivs()
			p.Filter("refuse", refuse(nr, flags, errno))
		}
	}
	filter := func(nr int, errno syscall.Errno) func(*ns.Program) { return flagged(nr, 0, errno) }
	dependents := "pid mount net ipc uts cgroup procfs"
	for name, c := range map[string]struct {
		write   func(*ns.Program)
		key     string
		reason  Reason
		found   string // in what was found
		unasked string // what is missing with it
	}{
		"limit of user namespaces":  {func(p *ns.Program) { p.ForbidUserNamespaces(false) }, "userns", ReasonRefused, "clone is refused", dependents},
		"clone":                     {flagged(unix.SYS_CLONE, unix.CLONE_NEWUSER, unix.EPERM), "userns", ReasonRefused, "EPERM", dependents},
		"clone of a network":        {flagged(unix.SYS_CLONE, unix.CLONE_NEWNET, unix.EPERM), "net", ReasonRefused, "clone is refused", ""},
		"mount":                     {filter(unix.SYS_MOUNT, unix.EACCES), "mount", ReasonRefused, "in it the kernel refuses to change a mount", "procfs"},
		"fsmount":                   {filter(unix.SYS_FSMOUNT, unix.EPERM), "procfs", ReasonRefused, "mount a procfs", ""},
		"pidfd_getfd":               {filter(unix.SYS_PIDFD_GETFD, unix.EPERM), "pidfd_getfd", ReasonRefused, "EPERM", ""},
		"pidfd_getfd, old kernel":   {filter(unix.SYS_PIDFD_GETFD, unix.ENOSYS), "pidfd_getfd", ReasonKernel, "ENOSYS", ""},
		"mount_setattr":             {filter(unix.SYS_MOUNT_SETATTR, unix.EPERM), "mount_setattr", ReasonRefused, "EPERM", ""},
		"openat2":                   {filter(unix.SYS_OPENAT2, unix.ENOSYS), "openat2", ReasonKernel, "ENOSYS", ""},
		"Landlock, a filter":        {filter(unix.SYS_LANDLOCK_CREATE_RULESET, unix.EPERM), "landlock", ReasonRefused, "filter", ""},
		"Landlock, not built":       {filter(unix.SYS_LANDLOCK_CREATE_RULESET, unix.ENOSYS), "landlock", ReasonKernel, "not built", ""},
		"Landlock, not switched on": {filter(unix.SYS_LANDLOCK_CREATE_RULESET, unix.EOPNOTSUPP), "landlock", ReasonKernel, "at boot", ""},
		"process_vm_readv":          {filter(unix.SYS_PROCESS_VM_READV, unix.EPERM), "process_vm", ReasonRefused, "EPERM", "notify"},
		"seccomp":                   {filter(unix.SYS_SECCOMP, unix.EPERM), "seccomp", ReasonRefused, "EPERM", "notify"},
	} {
		t.Run(name, func(t *testing.T) {
			got := inside(t, c.write)
			a := got[c.key]
			if a.Present || a.Value != 0 || a.Reason != c.reason || !strings.Contains(a.Found, c.found) || a.Unasked {
				t.Errorf("%s: %+v, want reason %d, %q", c.key, a, c.reason, c.found)
			}
			compare(t, got, append(strings.Fields(c.unasked), c.key))
		})
	}
}

// compare holds that a process inside finds what is found here, but for those named, which are missing.
func compare(t *testing.T, got map[string]answer, missing []string) {
	t.Helper()
	for _, f := range All() {
		expect := f.Probe().Present() && !slices.Contains(missing, f.Key)
		if f == BPF { // never in a user namespace
			expect = false
		}
		if got[f.Key].Present != expect {
			t.Errorf("%s: %+v, want it to be there: %v", f.Key, got[f.Key], expect)
		}
		if strings.Contains(got[f.Key].Found, "\n") {
			t.Errorf("%s: what was found takes more than its line: %q", f.Key, got[f.Key].Found)
		}
	}
}

// TestNoRightToMap: user id 0 that has no capabilities can make a user namespace, and map nothing in it.
func TestNoRightToMap(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("the map of user id 0 takes a right; this is another one")
	}
	got := inside(t, func(p *ns.Program) { p.KeepCapabilities(0) })["userns"]
	if got.Present || got.Reason != ReasonRefused || !strings.Contains(got.Found, "no id can be mapped") {
		t.Errorf("%+v", got)
	}
}

// TestForcedOff: SRT_WITHOUT takes away what it names and what builds on that, and nothing else.
func TestForcedOff(t *testing.T) {
	for _, f := range All() {
		t.Run(f.Key, func(t *testing.T) {
			got := inside(t, func(*ns.Program) {}, Variable+"="+f.Key)
			a := got[f.Key]
			if a.Present || a.Value != 0 || a.Reason != ReasonForced {
				t.Errorf("%+v", a)
			}
			missing := []string{f.Key}
			for _, other := range All() {
				if reaches(other, f) {
					missing = append(missing, other.Key)
				}
			}
			compare(t, got, missing)
		})
	}
	if got := inside(t, func(*ns.Program) {}, Variable+"=landlock=1")["landlock"]; got.Value != 1 || !got.Present { // that every Landlock has
		t.Errorf("limited to 1: %+v", got)
	}
	for key, a := range inside(t, func(*ns.Program) {}, Variable+"=bogus") {
		if a.Present {
			t.Errorf("%s is there under a variable that cannot be read", key)
		}
	}
}

func reaches(f, to *Feature) bool {
	for _, a := range f.after {
		if a == to || reaches(a, to) {
			return true
		}
	}
	return false
}

// TestNoListener: each reason that package notify has is told in a few words.
func TestNoListener(t *testing.T) {
	for r := notify.ReasonKernel; r <= notify.ReasonRefused; r++ {
		if noListener[r] == "" {
			t.Errorf("reason %d has no words", r)
		}
	}
}

// TestTable holds what the table must have.
func TestTable(t *testing.T) {
	seen := map[string]bool{}
	for _, f := range All() {
		if _, ok := known[f.Key]; !ok || seen[f.Key] {
			t.Errorf("SRT_WITHOUT does not know %s, or it is there twice", f.Key)
		}
		seen[f.Key] = true
		if f.Name == "" || f.Needs == "" || f.Why == "" || f.Since == [2]int{} || f.ask == nil {
			t.Errorf("%s is not complete", f.Key)
		}
	}
	for key := range known {
		if !seen[key] {
			t.Errorf("SRT_WITHOUT knows %s, which is no feature", key)
		}
	}
}
