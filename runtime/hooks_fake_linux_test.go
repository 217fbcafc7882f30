package runtime

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/srt-sandbox/srt/bpf"
	"github.com/srt-sandbox/srt/runtime/config"
	"github.com/srt-sandbox/srt/runtime/violation"
)

// fakeHooks stands for a kernel that takes hooks: it keeps what it is told and refuses nothing. Its one link is the writing
// end of a pipe, so that the reading end tells when nobody holds it any more.
type fakeHooks struct {
	unsupported, loadErr, beginErr, addErr error

	mu       sync.Mutex
	loads    int
	closed   atomic.Int32
	r, w     *os.File
	sessions []*fakeHookSession
}

type fakeHookSession struct {
	namespace uint64 // its inode
	rules     []bpf.Rule
	report    func(bpf.Refusal)
	closed    atomic.Bool
	of        *fakeHooks
}

func newFakeHooks(t *testing.T) *fakeHooks {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close(); w.Close() })
	return &fakeHooks{r: r, w: w}
}

func (k *fakeHooks) supported() error { return k.unsupported }

func (k *fakeHooks) load() (hookEnforcer, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.loads++
	if k.loadErr != nil {
		return nil, k.loadErr
	}
	return k, nil
}

func (k *fakeHooks) begin(namespace *os.File, report func(bpf.Refusal)) (hookSession, error) {
	if k.beginErr != nil {
		return nil, k.beginErr
	}
	var st unix.Stat_t
	if err := unix.Fstat(int(namespace.Fd()), &st); err != nil {
		return nil, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	s := &fakeHookSession{namespace: st.Ino, report: report, of: k}
	k.sessions = append(k.sessions, s)
	return s, nil
}

func (k *fakeHooks) Links() []*os.File { return []*os.File{k.w} }

func (k *fakeHooks) Close() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.closed.Add(1)
	k.w.Close() // a test may have closed it before
	return nil
}

func (s *fakeHookSession) Add(rules []bpf.Rule) error {
	s.rules = append(s.rules, rules...)
	return s.of.addErr
}

func (s *fakeHookSession) Close() error {
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	s.closed.Store(true)
	return nil
}

// held tells whether anybody has the link.
func (k *fakeHooks) held(t *testing.T) bool {
	t.Helper()
	fds := []unix.PollFd{{Fd: int32(k.r.Fd()), Events: unix.POLLIN}}
	if _, err := unix.Poll(fds, 0); err != nil {
		t.Fatal(err)
	}
	return fds[0].Revents&unix.POLLHUP == 0
}

// hookedSandbox is a session whose commands may write dir, and must not make dir/new.
type hookedSandbox struct {
	*Sandbox
	dir string

	mu       sync.Mutex
	events   []violation.Event
	warnings []string
	log      strings.Builder // written under a lock of the handler
}

func newHookedSandbox(t *testing.T, kernel hookKernel, more ...config.PathEntry) *hookedSandbox {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	cfg := config.Default()
	cfg.Filesystem.AllowWrite = []config.PathEntry{{Path: dir}, {Path: dir + "/granted-but-absent"}}
	cfg.Filesystem.DenyWrite = append([]config.PathEntry{{Path: dir + "/new"}}, more...)
	h := &hookedSandbox{dir: dir}
	h.Sandbox, err = New(context.Background(), cfg, WithOnViolation(func(e violation.Event) {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.events = append(h.events, e)
	}), WithLogger(slog.New(slog.NewTextHandler(&h.log, &slog.HandlerOptions{Level: slog.LevelDebug}))), WithWarnings(func(line string) {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.warnings = append(h.warnings, line)
	}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	if kernel != nil {
		h.hooks.kernel = kernel
	}
	return h
}

// runningCommand is a script that waits for a line at the word "up".
type runningCommand struct {
	*Cmd
	t   *testing.T
	in  *os.File
	out *os.File
}

// start starts a script, which has the pipes as standard streams.
func (h *hookedSandbox) start(t *testing.T, script string) *runningCommand {
	t.Helper()
	inr, inw, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	outr, outw, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	c := &runningCommand{Cmd: h.Command(context.Background(), "/bin/sh", "-c", script), t: t, in: inw, out: outr}
	c.Dir, c.Stdin, c.Stdout, c.Stderr = h.dir, inr, outw, outw
	err = c.Start()
	inr.Close()
	outw.Close()
	t.Cleanup(func() { inw.Close(); outr.Close() })
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// until reads until a word comes.
func (c *runningCommand) until(word string) string {
	c.t.Helper()
	var text strings.Builder
	b := make([]byte, 1)
	for !strings.HasSuffix(text.String(), word) {
		if n, err := c.out.Read(b); n == 0 {
			c.t.Fatalf("the command has said %q, then %v", text.String(), err)
		}
		text.Write(b)
	}
	return text.String()
}

// end lets the script go on and waits for its end.
func (c *runningCommand) end() {
	c.t.Helper()
	if _, err := c.in.WriteString("\n"); err != nil {
		c.t.Error(err)
	}
	if err := c.Wait(); err != nil {
		c.t.Error(err)
	}
}
