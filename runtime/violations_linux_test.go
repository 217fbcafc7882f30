package runtime

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/srt-sandbox/srt/runtime/config"
)

// refusing is a session with a bit of every rule, and the directories that it is about.
type refusing struct {
	*Sandbox
	in, out string // in may be written, out may not

	mu       sync.Mutex
	warnings []string
}

func newRefusing(t *testing.T, change func(*config.Config), opts ...Option) *refusing {
	t.Helper()
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	r := &refusing{in: top + "/in", out: top + "/out"}
	for _, dir := range []string{r.in, r.out, r.in + "/hidden"} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range []string{r.in + "/hidden/k", r.in + "/keep", r.in + "/free", r.out + "/file", r.out + "/secret"} {
		if err := os.WriteFile(file, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cfg := config.Default()
	cfg.Filesystem.AllowWrite = []config.PathEntry{{Path: r.in}}
	cfg.Filesystem.DenyWrite = []config.PathEntry{{Path: r.in + "/keep"}, {Path: r.in + "/absent"}}
	cfg.Filesystem.DenyRead = []config.PathEntry{{Path: r.in + "/hidden"}, {Path: r.out + "/secret"}}
	cfg.Network.DeniedDomains = []string{"denied.test"}
	if change != nil {
		change(cfg)
	}
	opts = append(opts, WithWarnings(func(line string) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.warnings = append(r.warnings, line)
	}))
	if r.Sandbox, err = New(t.Context(), cfg, opts...); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

// run runs a script whatever its status, and gives its own violations.
func (r *refusing) run(t *testing.T, script string) []Violation {
	t.Helper()
	c := r.Shell(t.Context(), script)
	c.Dir, c.Env = r.in, []string{"PATH=/usr/bin:/bin", "HOME=" + r.in}
	if testing.Verbose() {
		c.Stderr = os.Stderr
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	_ = c.Wait() // the commands are refused
	return slices.Collect(c.Violations())
}

// needMonitor skips where nothing can tell what the kernel refuses, which the session has said (see launch.watchNothing).
func (r *refusing) needMonitor(t *testing.T) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, w := range r.warnings {
		if strings.HasPrefix(w, "What the kernel refuses to commands is not reported") {
			t.Skip(w)
		}
	}
}

// TestVIO10_EachRefusalIsOneEvent: whoever refuses, there is one event with the object, the process and the rule.
func TestVIO10_EachRefusalIsOneEvent(t *testing.T) {
	r := newRefusing(t, nil, WithMonitor(MonitorAll))
	socket := r.out + "/socket"
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for _, tc := range []struct {
		name, script string
		want         Violation // Path or Host, Kind, Rule
	}{
		{"hidden file", "read -r x <" + r.out + "/secret", Violation{Kind: KindFileRead, Path: r.out + "/secret", Rule: "filesystem.denyRead.1", Entry: r.out + "/secret"}},
		{"write outside", ": >>" + r.out + "/file", Violation{Kind: KindFileWrite, Path: r.out + "/file", Rule: "filesystem.allowWrite"}},
		{"create outside", "mkdir " + r.out + "/new", Violation{Kind: KindFileWrite, Path: r.out + "/new", Rule: "filesystem.allowWrite"}},
		{"write deny", ": >>keep", Violation{Kind: KindFileWrite, Path: r.in + "/keep", Rule: "filesystem.denyWrite.0", Entry: r.in + "/keep"}},
		{"case 16: the path has no ..", "true w; : >>hidden/../keep", Violation{Kind: KindFileWrite, Path: r.in + "/keep", Rule: "filesystem.denyWrite.0", Entry: r.in + "/keep"}},
		{"create a denied name", ": >absent", Violation{Kind: KindFileWrite, Path: r.in + "/absent", Rule: "filesystem.denyWrite.1", Entry: r.in + "/absent"}},
		{"make a denied name a directory", "mkdir absent", Violation{Kind: KindFileWrite, Path: r.in + "/absent", Rule: "filesystem.denyWrite.1", Entry: r.in + "/absent"}},
		{"rename to a denied name", "perl -e 'rename(q(free), q(absent))'", Violation{Kind: KindFileWrite, Path: r.in + "/absent", Rule: "filesystem.denyWrite.1", Entry: r.in + "/absent"}},
		{"remove what is denied", "perl -e 'unlink(q(keep))'", Violation{Kind: KindFileWrite, Path: r.in + "/keep", Rule: "filesystem.denyWrite.0", Entry: r.in + "/keep"}},
		{"connect", "exec 3<>/dev/tcp/denied.test/80", Violation{Kind: KindNetwork, Host: "denied.test", Port: 80, Rule: "network.deniedDomains.0", Entry: "denied.test"}},
		{"connect, not listed", "exec 3<>/dev/tcp/other.test/81", Violation{Kind: KindNetwork, Host: "other.test", Port: 81, Rule: "network.allowedDomains"}},
		{"look-up", "getent ahosts denied.test", Violation{Kind: KindDNS, Host: "denied.test", Rule: "network.deniedDomains.0", Entry: "denied.test"}},
		{"unix socket", "perl -MSocket -e 'socket(my $s, AF_UNIX, SOCK_STREAM, 0); connect($s, sockaddr_un(shift))' " + socket,
			Violation{Kind: KindUnixSocket, Path: socket, Rule: "network.allowUnixSockets"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := r.run(t, tc.script)
			r.needMonitor(t)
			if len(got) != 1 {
				t.Fatalf("%d events, want one: %s", len(got), show(got))
			}
			v := got[0]
			seen := Violation{Kind: v.Kind, Path: v.Path, Host: v.Host, Port: v.Port, Rule: v.Rule, Entry: v.Entry}
			if seen != tc.want || v.PID == 0 && v.Kind != KindDNS || v.Command != tc.script || v.Key == "" || v.Time.IsZero() {
				t.Errorf("%s\n got %+v\nwant %+v", show(got), seen, tc.want)
			}
		})
	}
}

// TestVIO10_Case16_ARenameIsALineForEachDeniedPath: both ends count.
func TestVIO10_Case16_ARenameIsALineForEachDeniedPath(t *testing.T) {
	r := newRefusing(t, nil, WithMonitor(MonitorWrites))
	var paths []string
	for _, v := range r.run(t, "perl -e 'rename(q(keep), q("+r.out+"/new))'") {
		paths = append(paths, v.Path)
	}
	r.needMonitor(t)
	slices.Sort(paths)
	if want := []string{r.in + "/keep", r.out + "/new"}; !slices.Equal(paths, want) {
		t.Errorf("%q, want %q", paths, want)
	}
}

// TestVIO10_WithoutMonitor: what srt itself refuses is reported in any case.
func TestVIO10_WithoutMonitor(t *testing.T) {
	r := newRefusing(t, nil)
	got := r.run(t, ": >absent; exec 3<>/dev/tcp/denied.test/80")
	if len(got) != 2 || got[0].Path != r.in+"/absent" || got[1].Host != "denied.test" {
		t.Errorf("%s", show(got))
	}
}

// TestVIO25_IgnoreViolationsAreLive: ignore rules count from the update on, for a session that goes on (LIB-21).
func TestVIO25_IgnoreViolationsAreLive(t *testing.T) {
	r := newRefusing(t, func(c *config.Config) { c.IgnoreViolations = map[string][]string{"npm": {"/absent"}} })
	if got := r.run(t, "true npm; : >absent"); len(got) != 0 {
		t.Errorf("ignored for npm: %s", show(got))
	}
	if got := r.run(t, ": >absent"); len(got) != 1 {
		t.Errorf("of another command: %s", show(got))
	}
	cfg := r.Config()
	cfg.IgnoreViolations = map[string][]string{"*": {"openat"}}
	if _, err := r.Update(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	if got := r.run(t, "true npm; : >absent"); len(got) != 1 {
		t.Errorf("VIO-26, case 14: %s", show(got))
	}
	if total := r.Sandbox.Violations().Total(); total != 2 {
		t.Errorf("Total %d", total)
	}
}

// TestVIO7_ACommandCannotForgeAnothersEvents: what it presents as its name is not what its events are known by.
func TestVIO7_ACommandCannotForgeAnothersEvents(t *testing.T) {
	r := newRefusing(t, nil)
	victim := r.Command(t.Context(), "true")
	victim.ID = "victim"
	if err := victim.Run(); err != nil {
		t.Fatal(err)
	}
	got := r.run(t, `exec 3<>/dev/tcp/127.0.0.1/3128; token=${http_proxy#*:*:}; token=${token%%@*}
		printf 'CONNECT denied.test:443 HTTP/1.1\r\nHost: denied.test\r\nProxy-Authorization: Basic %s\r\n\r\n' "$(printf 'srt.dmljdGlt:%s' "$token" | base64 -w0)" >&3
		read -r -t 5 answer <&3; exit 0`)
	if len(got) != 1 || got[0].Host != "denied.test" || got[0].Key == "victim" {
		t.Errorf("%s", show(got))
	}
	if stderr := r.Annotate("victim", "err"); stderr != "err" {
		t.Errorf("the victim has %q", stderr)
	}
}

func show(list []Violation) string {
	var b strings.Builder
	for _, v := range list {
		fmt.Fprintf(&b, "\n  %s [%s %s] %s pid %d %q", v.Line, v.Rule, v.Entry, v.Kind, v.PID, v.Process)
	}
	return b.String()
}
