package runtime

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/srt-sandbox/srt/bpf"
	"github.com/srt-sandbox/srt/runtime/config"
)

// TestKernelMechanism_FS30: where the kernel takes hooks they are loaded once, each command's rules are theirs before it
// runs, pid 1 holds their links, no call is put to srt, and the rules go when the command has ended.
func TestKernelMechanism_FS30(t *testing.T) {
	k := newFakeHooks(t)
	h := newHookedSandbox(t, k)
	first := h.start(t, `mkdir new && echo made; readlink /proc/self/ns/user; echo up; read x; exit 0`)
	text := first.until("up\n")
	if !strings.HasPrefix(text, "made\nuser:[") {
		t.Errorf("a name that only the hooks would refuse: %q", text)
	}
	second := h.start(t, `echo up; read x`)
	second.until("up\n")
	if k.loads != 1 || len(k.sessions) != 2 {
		t.Fatalf("%d loads and %d sessions, want 1 and 2", k.loads, len(k.sessions))
	}
	s := k.sessions[0]
	var st unix.Stat_t
	if err := unix.Lstat(h.dir, &st); err != nil {
		t.Fatal(err)
	}
	if want := (bpf.Rule{Dir: h.dir, Dev: st.Dev, Ino: st.Ino, Name: "new"}); !slices.Contains(s.rules, want) {
		t.Errorf("no %+v among %+v", want, s.rules)
	}
	if !slices.ContainsFunc(s.rules, func(r bpf.Rule) bool { return r.Dir == h.dir && r.Name == ".vscode" && r.Fold }) {
		t.Errorf("FS-35: no mandatory name among %+v", s.rules)
	}
	if !strings.Contains(text, "user:["+itoa(s.namespace)+"]") || k.sessions[1].namespace == s.namespace {
		t.Errorf("the rules are those of namespace %d and of %d, the first command says %q", s.namespace, k.sessions[1].namespace, text)
	}
	// As when srt is killed: its own copy is gone.
	k.w.Close()
	if !k.held(t) {
		t.Error("nobody holds the hooks while commands run")
	}
	first.end()
	if !s.closed.Load() || k.sessions[1].closed.Load() {
		t.Errorf("the first command has ended, and its rules: %v, those of the second: %v", s.closed.Load(), k.sessions[1].closed.Load())
	}
	if !k.held(t) {
		t.Error("nobody holds the hooks while a command runs")
	}
	second.end()
	if k.held(t) {
		t.Error("the hooks are held although all commands have ended")
	}
	if k.closed.Load() != 0 {
		t.Error("the hooks are gone before the session")
	}
}

func itoa(n uint64) string {
	var b []byte
	for ; n > 0; n /= 10 {
		b = append(b, byte('0'+n%10))
	}
	slices.Reverse(b)
	return string(b)
}

// TestKernelMechanism_ReportsRefusals_VIO10: what a hook refuses is an event like any other, with the place and the rule.
func TestKernelMechanism_ReportsRefusals_VIO10(t *testing.T) {
	k := newFakeHooks(t)
	h := newHookedSandbox(t, k)
	c := h.start(t, `echo up; read x`)
	c.until("up\n")
	s := k.sessions[0]
	index := slices.IndexFunc(s.rules, func(r bpf.Rule) bool { return r.Name == "new" })
	folded := slices.IndexFunc(s.rules, func(r bpf.Rule) bool { return r.Dir == h.dir && r.Name == ".vscode" })
	for _, r := range []bpf.Refusal{
		{Rule: index, Pid: 42, Tid: 43, Operation: bpf.OpCreate, Process: "sh", Name: "new"},
		{Rule: folded, Pid: 42, Operation: bpf.OpMkdir, Name: ".VSCode"},
		{Rule: index, Pid: 42, Operation: bpf.OpRename}, // the kernel could not read the name
		{Rule: -1, Pid: 42}, {Rule: len(s.rules), Pid: 42},
	} {
		s.report(r)
	}
	c.end()
	want := []struct{ line, rule string }{
		{"deny open " + h.dir + "/new", "filesystem.denyWrite.0"},
		{"deny mkdir " + h.dir + "/.VSCode", "protected name .vscode"},
		{"deny rename " + h.dir + "/new", "filesystem.denyWrite.0"},
	}
	if len(h.events) != len(want) {
		t.Fatalf("%+v, want %d events", h.events, len(want))
	}
	for i, e := range h.events {
		if e.Line() != want[i].line || e.Rule != want[i].rule || e.PID != 42 || e.Time.IsZero() {
			t.Errorf("%q by %q of process %d, want %+v", e.Line(), e.Rule, e.PID, want[i])
		}
	}
	if h.events[0].Process != "sh" {
		t.Errorf("process %q", h.events[0].Process)
	}
}

// TestKernelMechanism_RefusesWhatNoHookSees_FS30: requests of ioctl that make a name, and nothing that needs a listener.
func TestKernelMechanism_RefusesWhatNoHookSees_FS30(t *testing.T) {
	h := newHookedSandbox(t, newFakeHooks(t))
	c := h.start(t, `/usr/bin/python3 -c '
import fcntl, os
d = os.open(".", os.O_RDONLY)
for request in (0x5000940e, 0x5000940f):
    try:
        fcntl.ioctl(d, request, 0)
    except OSError as e:
        print(e.errno)
'; grep Seccomp_filters /proc/self/status; echo up; read x`)
	if got := c.until("up\n"); !strings.HasPrefix(got, "1\n25\n") { // EPERM; ENOTTY, which is the file system's own
		t.Errorf("%q", got)
	}
	c.end()
}

// TestKernelMechanism_FallsBack_FS30: whatever fails in it, the command runs under the broker and nothing is left of it.
func TestKernelMechanism_FallsBack_FS30(t *testing.T) {
	broken := errors.New("broken")
	for name, set := range map[string]func(*fakeHooks){
		"asked": func(k *fakeHooks) { k.unsupported = broken },
		"load":  func(k *fakeHooks) { k.loadErr = broken },
		"begin": func(k *fakeHooks) { k.beginErr = broken },
		"add":   func(k *fakeHooks) { k.addErr = broken },
	} {
		t.Run(name, func(t *testing.T) {
			k := newFakeHooks(t)
			set(k)
			h := newHookedSandbox(t, k)
			for range 2 {
				c := h.start(t, `mkdir new .vscode; mkdir free && rmdir free && echo free; echo up; read x`)
				got := c.until("up\n")
				if strings.Count(got, "Read-only file system") != 2 || !strings.Contains(got, "\nfree\n") {
					t.Errorf("%q, want the two denied names refused and the third made", got)
				}
				c.end()
			}
			for _, s := range k.sessions {
				if !s.closed.Load() {
					t.Error("rules of an attempt that failed are still in force")
				}
			}
			if want := map[bool]int{true: 0, false: 1}[name == "asked"]; k.loads != want {
				t.Errorf("%d loads, want %d", k.loads, want)
			}
			if text := h.log.String(); !strings.Contains(text, "held by the broker") || !strings.Contains(text, "broken") {
				t.Errorf("the log does not say why: %s", text)
			}
			if len(h.events) != 4 {
				t.Errorf("%+v, want what the broker refused", h.events)
			}
			told := 0
			for _, w := range h.warnings {
				if strings.Contains(w, "granted-but-absent") {
					told++
				}
			}
			if told != 2 {
				t.Errorf("%q, want each command's warning once", h.warnings)
			}
			k.w.Close()
			if k.held(t) {
				t.Error("an attempt that failed still holds the hooks")
			}
			if _, err := os.Lstat(h.dir + "/new"); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("the denied name: %v", err)
			}
		})
	}
}

// TestKernelMechanism_IsNotForPatternsAndReads_FS55_FS10: these need the broker, and no hook is loaded for them.
func TestKernelMechanism_IsNotForPatternsAndReads_FS55_FS10(t *testing.T) {
	for name, pattern := range map[string]bool{"FS-55": true, "FS-10": false} {
		k := newFakeHooks(t)
		h := newHookedSandbox(t, k)
		cfg := h.Config()
		if pattern {
			cfg.Filesystem.DenyWrite = append(cfg.Filesystem.DenyWrite, config.PathEntry{Path: h.dir + "/**/*.pem"})
		} else {
			cfg.Filesystem.DenyRead = append(cfg.Filesystem.DenyRead, config.PathEntry{Path: h.dir + "/later"})
		}
		if _, err := h.Update(t.Context(), cfg); err != nil {
			t.Fatal(err)
		}
		c := h.start(t, `mkdir new; echo up; read x`)
		if got := c.until("up\n"); !strings.Contains(got, "Read-only file system") {
			t.Errorf("%s: %q", name, got)
		}
		c.end()
		if k.loads != 0 {
			t.Errorf("%s: hooks were loaded for nothing", name)
		}
		if e := explained(t, h); e.LaterBy == nil || e.LaterBy.Name != byBroker || !strings.Contains(e.LaterBy.Why, "whole paths") {
			t.Errorf("%s: %+v", name, e.LaterBy)
		}
	}
}

// TestKernelMechanism_LeavesNothingOfAFailedStart: a command that cannot be started has no rules.
func TestKernelMechanism_LeavesNothingOfAFailedStart(t *testing.T) {
	k := newFakeHooks(t)
	h := newHookedSandbox(t, k)
	cmd := h.Command(context.Background(), "/bin/true")
	cmd.Dir, cmd.Args = h.dir, nil // which is found out when the rest is made
	if err := cmd.Start(); err == nil {
		t.Fatal("a command without its name was started")
	}
	if len(k.sessions) != 1 || !k.sessions[0].closed.Load() {
		t.Errorf("%d sessions, want one that is closed", len(k.sessions))
	}
	k.w.Close()
	if k.held(t) {
		t.Error("a start that failed still holds the hooks")
	}
}

// TestKernelMechanism_ManyAtOnce: the first commands of a session load the hooks once, and each has rules of its own.
func TestKernelMechanism_ManyAtOnce(t *testing.T) {
	k := newFakeHooks(t)
	h := newHookedSandbox(t, k)
	const n = 12
	errs := make(chan error)
	for range n {
		go func() {
			cmd := h.Command(context.Background(), "/bin/true")
			cmd.Dir = h.dir
			errs <- cmd.Run()
		}()
	}
	for range n {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	for _, s := range k.sessions {
		if !s.closed.Load() || len(s.rules) == 0 {
			t.Errorf("closed: %v, %d rules", s.closed.Load(), len(s.rules))
		}
	}
	if k.loads != 1 || len(k.sessions) != n || h.hooks.used != 0 {
		t.Errorf("%d loads, %d sessions, %d in use, want 1, %d and 0", k.loads, len(k.sessions), h.hooks.used, n)
	}
}

// TestKernelMechanism_EndsWithTheSession: Close takes the hooks away when the last command is gone, not before, and leaves the
// command alone.
func TestKernelMechanism_EndsWithTheSession_LIB35(t *testing.T) {
	k := newFakeHooks(t)
	h := newHookedSandbox(t, k)
	c := h.start(t, `echo up; read x`)
	c.until("up\n")
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	if k.closed.Load() != 0 || k.sessions[0].closed.Load() {
		t.Errorf("the command runs, and its rules are gone: %d, %v", k.closed.Load(), k.sessions[0].closed.Load())
	}
	c.in.WriteString("\n")
	if err := c.Wait(); err != nil {
		t.Errorf("a command that outlives its session: %v", err)
	}
	if k.closed.Load() != 1 || !k.sessions[0].closed.Load() || k.held(t) {
		t.Errorf("closed %d times, its rules %v, held %v", k.closed.Load(), k.sessions[0].closed.Load(), k.held(t))
	}
	if err := h.hooks.load(); !errors.Is(err, ErrClosed) {
		t.Errorf("a launch after Close: %v", err)
	}
	if _, err := h.hooks.arm(nil, nil, nil); !errors.Is(err, ErrClosed) {
		t.Errorf("rules after Close: %v", err)
	}
}

// TestThisKernel_FS30_FS54: on the kernel of this machine, whatever it takes, the denied name is refused, and what refuses it
// is what explain says.
func TestThisKernel_FS30_FS54(t *testing.T) {
	h := newHookedSandbox(t, nil)
	e := explained(t, h)
	if e.LaterBy == nil || len(e.Later) == 0 {
		t.Fatalf("nothing is said of what does not exist: %+v", e)
	}
	if supported := bpf.Supported(); supported == nil {
		if *e.LaterBy != (PlannedMechanism{Name: byKernel}) {
			t.Errorf("%+v, want the kernel", e.LaterBy)
		}
	} else {
		var typed *bpf.Unsupported
		if !errors.As(supported, &typed) || *e.LaterBy != (PlannedMechanism{Name: byBroker, Why: supported.Error()}) {
			t.Errorf("%+v, want the broker, since %v", e.LaterBy, supported)
		}
	}
	c := h.start(t, `mkdir new; echo x >.BASHRC; mkdir free && echo made; echo up; read x`)
	if got := c.until("up\n"); strings.Count(got, "Read-only file system") != 2 || !strings.Contains(got, "made") {
		t.Errorf("%q", got)
	}
	c.end()
	if len(h.events) != 2 || h.events[0].Target != filepath.Join(h.dir, "new") {
		t.Errorf("%+v", h.events)
	}
}

// explained is what srt explain says for the session's directory.
func explained(t *testing.T, h *hookedSandbox) *Explanation {
	t.Helper()
	cmd := h.Command(context.Background(), "true")
	cmd.Dir = h.dir
	e, err := cmd.explain()
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// TestExplain_NamesTheMechanism_FS54: one line says what holds the rules about what does not exist, and why; no hook is
// loaded and nothing made for it.
func TestExplain_NamesTheMechanism_FS54(t *testing.T) {
	for _, c := range []struct {
		name                string
		hooks, broker       error
		want                PlannedMechanism
		text, filter, lacks string
	}{
		{"kernel", nil, nil, PlannedMechanism{Name: byKernel}, "held by hooks in the kernel (BPF)\n", "ioctl-names", "names"},
		{"broker", errors.New("no hooks"), nil, PlannedMechanism{byBroker, "no hooks"},
			"held by srt itself, which performs such system calls (broker), because no hooks\n", "names", "ioctl-names"},
		{"placeholders", errors.New("no hooks"), errors.New("no listener"), PlannedMechanism{byPlaceholders, "no listener"},
			"while the command runs (placeholders), because no listener\n", "base", "names"},
	} {
		k := newFakeHooks(t)
		k.unsupported = c.hooks
		h := newHookedSandbox(t, k)
		setBroker(t, c.broker)
		e := explained(t, h)
		var text strings.Builder
		if err := e.WriteText(&text); err != nil {
			t.Fatal(err)
		}
		if e.LaterBy == nil || *e.LaterBy != c.want || !strings.Contains(text.String(), c.text) {
			t.Errorf("%s: %+v in\n%s", c.name, e.LaterBy, text.String())
		}
		has := func(filter string) bool {
			return slices.ContainsFunc(e.Filters, func(p PlannedCall) bool { return p.Filter == filter })
		}
		if !has(c.filter) || has(c.lacks) {
			t.Errorf("%s: filter %s is there: %v; filter %s: %v", c.name, c.filter, has(c.filter), c.lacks, has(c.lacks))
		}
		if k.loads != 0 {
			t.Errorf("%s: explain has loaded hooks", c.name)
		}
		if list, err := os.ReadDir(h.dir); err != nil || len(list) != 0 {
			t.Errorf("%s: explain has made %v, %v", c.name, list, err)
		}
	}
}

// setBroker has the broker be available or not.
func setBroker(t *testing.T, err error) {
	t.Helper()
	before := brokerAvailable
	brokerAvailable = func() error { return err }
	t.Cleanup(func() { brokerAvailable = before })
}
