package runtime

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/srt-sandbox/srt/fsview"
	"github.com/srt-sandbox/srt/probe"
	"github.com/srt-sandbox/srt/probe/probetest"
	"github.com/srt-sandbox/srt/runtime/config"
	"github.com/srt-sandbox/srt/runtime/violation"
)

// confinedChild says that this process is a test that runs again without namespaces: what is asked of the kernel is asked once in a
// process, so that mode confined takes one of its own.
const confinedChild = "SRT_TEST_CONFINED_CHILD"

// inConfined runs a test again, in a process that has no namespaces, and tells whether this is that process.
func inConfined(t *testing.T) bool {
	t.Helper()
	if os.Getenv(confinedChild) != "" {
		return true
	}
	probetest.NeedVersion(t, probe.Landlock, 6)
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.count=1", "-test.v")
	cmd.Env = append(os.Environ(), confinedChild+"=1", "SRT_WITHOUT=userns")
	out, err := cmd.CombinedOutput()
	if err != nil || !bytes.Contains(out, []byte("--- PASS: "+t.Name())) {
		t.Errorf("without namespaces: %v\n%s", err, out)
	}
	return false
}

// confinedConfig is a configuration for a work directory with a hidden one beside it.
func confinedConfig(t *testing.T) (cfg *config.Config, work, secret string) {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	work, secret = filepath.Join(dir, "work"), filepath.Join(dir, "secret")
	for _, d := range []string{work, secret} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(secret, "key"), []byte("host secret"), 0o644); err != nil {
		t.Fatal(err)
	}
	cfg = &config.Config{EnableWeakerNestedSandbox: true}
	cfg.Filesystem.AllowWrite, cfg.Filesystem.DenyRead = []config.PathEntry{{Path: work}}, []config.PathEntry{{Path: secret}}
	return cfg, work, secret
}

// What a session in mode confined tells of what it refuses, once each.
func TestConfined_RefusalsAreReported_VIO10(t *testing.T) {
	if !inConfined(t) {
		return
	}
	cfg, work, secret := confinedConfig(t)
	var warnings []string
	var logged bytes.Buffer
	var mu sync.Mutex
	var events []violation.Event
	s, err := New(context.Background(), cfg, WithMonitor(MonitorAll), WithOnViolation(func(e violation.Event) {
		mu.Lock()
		defer mu.Unlock()
		events = append(events, e)
	}), WithWarnings(func(w string) { warnings = append(warnings, w) }), WithLogger(slog.New(slog.NewTextHandler(&logged, nil))))
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		c := s.Command(t.Context(), "sh", "-c", `cat "$0/key"; cd "$0"; echo x > "$1/free"; echo x > "$0/new"; exec 3<>/dev/tcp/192.0.2.1/80; true`, secret, work)
		c.Path, c.Args[0] = "bash", "bash"
		c.Dir = work
		var out bytes.Buffer
		c.Stdout = &out
		if err := c.Run(); err != nil {
			t.Errorf("%v: %s", err, &out)
		}
		if out.Len() > 0 {
			t.Errorf("read %q", &out)
		}
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	mu.Lock()
	defer mu.Unlock()
	for _, want := range []string{"deny openat " + secret + "/key", "deny openat " + secret + "/new", "deny network-outbound 192.0.2.1:80"} {
		if n := count(events, want); n != 2 {
			t.Errorf("%q was reported %d times, want once for each command: %v", want, n, events)
		}
	}
	if n := count(events, "free"); n != 0 {
		t.Errorf("an allowed change was reported: %v", events)
	}
	if n := bytes.Count(logged.Bytes(), []byte("docs/modes.md")); n != 1 {
		t.Errorf("the log said %d times what the mode does not hide, want once", n)
	}
	if len(warnings) > 0 {
		t.Errorf("a mode that the settings allow was warned of, which srt exec would print: %q", warnings)
	}
}

func count(events []violation.Event, line string) (n int) {
	for _, e := range events {
		if strings.Contains(e.Line(), line) {
			n++
		}
	}
	return n
}

// What the mode cannot hold is an error of the start, with all there is; and without the setting nothing starts.
func TestConfined_RefusesWhatItCannotHold(t *testing.T) {
	if !inConfined(t) {
		return
	}
	cfg, work, _ := confinedConfig(t)
	for _, name := range []string{"a", "b"} {
		if err := os.WriteFile(filepath.Join(work, name), nil, 0o644); err != nil {
			t.Fatal(err)
		}
		cfg.Filesystem.DenyRead = append(cfg.Filesystem.DenyRead, config.PathEntry{Path: filepath.Join(work, name)})
	}
	s, err := New(context.Background(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	err = s.Command(t.Context(), "touch", filepath.Join(work, "ran")).Run()
	refused, ok := errors.AsType[*fsview.ConfineError](err)
	if !ok || len(refused.Refusals) != 2 {
		t.Errorf("got %v, want both entries refused", err)
	}
	cfg.EnableWeakerNestedSandbox, cfg.Filesystem.DenyRead = false, nil
	strict, err := New(context.Background(), cfg)
	if err == nil {
		err = strict.Command(t.Context(), "touch", filepath.Join(work, "ran")).Run()
		strict.Close()
	}
	if none, ok := errors.AsType[*ModeError](err); !ok || none.Possible != ModeConfined {
		t.Errorf("without the setting: %v", err)
	}
	if _, err := os.Lstat(filepath.Join(work, "ran")); err == nil {
		t.Error("a command ran")
	}
}

// TestConfined_OneCommandIsAllowedIt: the override decides for its command, either way, and the next one is the session's again.
func TestConfined_OneCommandIsAllowedIt(t *testing.T) {
	if !inConfined(t) {
		return
	}
	for _, session := range []bool{false, true} {
		cfg, _, _ := confinedConfig(t)
		cfg.EnableWeakerNestedSandbox = session
		s, err := New(context.Background(), cfg)
		if err != nil {
			t.Fatalf("session %v: %v", session, err)
		}
		for _, o := range []*config.Override{nil, {EnableWeakerNestedSandbox: new(!session)}, {}} {
			c := s.Command(t.Context(), "true")
			c.Override = o
			allowed := session
			if o != nil && o.EnableWeakerNestedSandbox != nil {
				allowed = *o.EnableWeakerNestedSandbox
			}
			err := c.Run()
			if _, refused := errors.AsType[*ModeError](err); allowed && err != nil || !allowed && !refused {
				t.Errorf("session %v, override %+v: %v", session, o, err)
			}
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// The proxies of two commands at once are apart, and each command reaches its own alone.
func TestConfined_CommandsReachTheirOwnProxy(t *testing.T) {
	if !inConfined(t) {
		return
	}
	cfg, work, _ := confinedConfig(t)
	s, err := New(context.Background(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	first := s.Command(t.Context(), "sh", "-c", `echo "${HTTP_PROXY##*:}" > port; read -r _; true`)
	first.Dir = work
	in, err := first.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Start(); err != nil {
		t.Fatal(err)
	}
	var port []byte
	for !bytes.HasSuffix(port, []byte("\n")) {
		port, _ = os.ReadFile(filepath.Join(work, "port"))
	}
	if _, err := netip.ParseAddrPort("127.0.0.1:" + strings.TrimSpace(string(port))); err != nil {
		t.Error(err)
	}
	text := fmt.Sprintf("exec 3<>/dev/tcp/127.0.0.1/${HTTP_PROXY##*:} || exit 8; exec 3<>/dev/tcp/127.0.0.1/%s && exit 9; exit 0", strings.TrimSpace(string(port)))
	if err := s.Command(t.Context(), "bash", "-c", text).Run(); err != nil {
		t.Errorf("8: not its own, 9: the other's: %v", err)
	}
	in.Close()
	if err := first.Wait(); err != nil {
		t.Error(err)
	}
}
