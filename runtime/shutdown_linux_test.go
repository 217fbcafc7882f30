package runtime

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/srt-sandbox/srt/runtime/config"
)

// dialogue is a script that answers each line it is sent with one of its own.
type dialogue struct {
	*Cmd
	t   *testing.T
	in  io.WriteCloser
	out *bufio.Reader
}

// converse starts a script that handles a line in $q.
func converse(t *testing.T, s *Sandbox, handle string) *dialogue {
	t.Helper()
	c := plain(t, s.Shell(context.Background(), `while read -r q; do `+handle+`; done`))
	in, err := c.StdinPipe()
	succeed(t, err)
	out, err := c.StdoutPipe()
	succeed(t, err)
	succeed(t, c.Start())
	return &dialogue{c, t, in, bufio.NewReader(out)}
}

// ask sends a line and returns the answer.
func (d *dialogue) ask(q string) string {
	d.t.Helper()
	_, err := io.WriteString(d.in, q+"\n")
	succeed(d.t, err)
	line, err := d.out.ReadString('\n')
	succeed(d.t, err)
	return strings.TrimSpace(line)
}

// greeter is a server on the host's loopback that greets, and its port.
func greeter(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	succeed(t, err)
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(c, "hello\n") // a client that has left is no matter
			go func() {
				defer c.Close()
				_, _ = io.Copy(io.Discard, c) // until the client leaves
			}()
		}
	}()
	_, port, err := net.SplitHostPort(l.Addr().String())
	succeed(t, err)
	return port
}

// TestLIB35_case23_CloseLeavesCommandsConfined: a command that runs when its session is closed goes on, without a network and
// under the same rules.
func TestLIB35_case23_CloseLeavesCommandsConfined(t *testing.T) {
	port := greeter(t)
	w := newWorld(t, 2)
	cfg := w.config(0)
	cfg.Network.AllowedDomains = []string{"127.0.0.1:" + port}
	s := newSession(t, func(c *config.Config) { *c = *cfg })
	d := converse(t, s, `case $q in
		connect) (exec 3<>/dev/tcp/127.0.0.1/`+port+` && head -n 1 <&3) 2>/dev/null || echo refused;;
		open) exec 4<>/dev/tcp/127.0.0.1/`+port+` && head -n 1 <&4;;
		read) { read -r x <&4; } 2>/dev/null && echo more || echo ended;;
		*) eval "$q";;
		esac`)
	if got := d.ask("connect"); got != "hello" {
		t.Errorf("before: %q", got)
	}
	if got := d.ask("open"); got != "hello" {
		t.Errorf("before: %q", got)
	}
	succeed(t, s.Close())
	if got := d.ask("read"); got != "ended" {
		t.Errorf("a tunnel of before: %q", got)
	}
	if got := d.ask("connect"); got != "refused" {
		t.Errorf("a connection: %q", got)
	}
	if got := d.ask("{ " + w.script() + "; }; echo"); got != "w0 h0" {
		t.Errorf("the rules about files: %q", got)
	}
	if got := d.ask("mkdir -p " + w.dir + "/w0/d && echo made"); got != "made" { // by way of the broker
		t.Errorf("a name: %q", got)
	}
	if got := d.ask("mkdir " + w.dir + "/d 2>/dev/null || echo refused"); got != "refused" {
		t.Errorf("a name that is not allowed: %q", got)
	}
	d.in.Close()
	succeed(t, d.Wait())
}

// TestLIB51_AfterClose: launches and updates give ErrClosed, getters answer, and what is secret is forgotten.
func TestLIB51_AfterClose(t *testing.T) {
	s := newSession(t, func(c *config.Config) { c.Network.AllowedDomains = []string{"a.example"} })
	select {
	case <-s.Done():
		t.Fatal("done before it is closed")
	default:
	}
	if p := s.Proxy(); len(p.Token) != 32 || p.HTTPPort == 0 || p.SOCKSPort == 0 {
		t.Errorf("LIB-5: %+v", p)
	}
	want := s.Config()
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
			<-s.Done()
		})
	}
	all.Wait()
	if err := sh(t, s, "true").Run(); err != ErrClosed { //nolint:errorlint // ErrClosed itself
		t.Errorf("case 22: a launch: %v", err)
	}
	if _, err := s.Update(t.Context(), config.Default()); !errors.Is(err, ErrClosed) {
		t.Errorf("an update: %v", err)
	}
	if d := cmp.Diff(want, s.Config(), plainConfig); d != "" {
		t.Error(d)
	}
	if got := s.NetworkPolicy(); !cmp.Equal(got, NetworkPolicy{AllowedDomains: []string{"a.example"}}) {
		t.Errorf("%+v", got)
	}
	if _, err := s.ReadPolicy(); err != nil {
		t.Error(err)
	}
	if s.Proxy().Token != "" {
		t.Error("the token is known still")
	}
	if s.current().network().Decide("a.example", 443).Allowed {
		t.Error("a closed session allows a host")
	}
	succeed(t, s.Shutdown(t.Context()))
}

func TestLIB51_ShutdownAwaitsCommands(t *testing.T) {
	s := newSession(t, nil)
	d := converse(t, s, `echo "$q"`)
	down := make(chan error)
	go func() { down <- s.Shutdown(context.Background()) }()
	for s.register(d.Cmd) == nil { // until it refuses; the command is registered as it is
	}
	if err := sh(t, s, "true").Run(); err != ErrClosed { //nolint:errorlint // ErrClosed itself
		t.Errorf("a launch meanwhile: %v", err)
	}
	if _, err := s.Update(t.Context(), config.Default()); err != nil {
		t.Errorf("an update for what still runs: %v", err)
	}
	if got := d.ask("here"); got != "here" {
		t.Errorf("%q", got)
	}
	d.in.Close()
	succeed(t, <-down)
	<-s.Done()
	succeed(t, d.Wait())
}

// TestLIB51_ShutdownKillsTheRestWhenItsContextEnds, and nobody need wait for the commands.
func TestLIB51_ShutdownKillsTheRestWhenItsContextEnds(t *testing.T) {
	s := newSession(t, nil)
	ctx, cancel := context.WithCancelCause(context.Background())
	var commands []*dialogue
	for range 3 {
		commands = append(commands, converse(t, s, `trap "" TERM; sleep 300`))
	}
	cancel(errCause)
	if err := s.Shutdown(ctx); err != errCause { //nolint:errorlint // the cause itself
		t.Errorf("%v", err)
	}
	noChildren(t)
	for _, d := range commands {
		if err := d.Wait(); err == nil {
			t.Error("a command that was killed ended well")
		}
	}
}

// TestLIB35_CloseAmidLaunches: each launch that is under way either fails with ErrClosed or becomes a command that is left
// alone; none is half there.
func TestLIB35_CloseAmidLaunches(t *testing.T) {
	for _, phase := range []string{"identities read", "files planned", "namespaces made", "program done"} {
		started := make(chan struct{}, 64)
		s := newSession(t, nil, WithTiming(func(p string) {
			if p == phase {
				select {
				case started <- struct{}{}:
				default:
				}
			}
		}))
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				c := plain(t, s.Command(context.Background(), "/bin/true"))
				switch err := c.Start(); {
				case err == nil:
					if err := c.Wait(); err != nil {
						t.Error(err)
					}
				case !errors.Is(err, ErrClosed):
					t.Errorf("%s: %v", phase, err)
				}
			})
		}
		<-started
		succeed(t, s.Close())
		all.Wait()
		noChildren(t)
		if len(s.commands) != 0 {
			t.Errorf("%s: %d commands are counted still", phase, len(s.commands))
		}
	}
}

// TestLIB6_case22_NothingIsLeftOfAStartThatFails, and LIB-7: sessions share nothing.
func TestLIB6_case22_LIB7_Sessions(t *testing.T) {
	before := leftovers{files: openFiles()}
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(errCause)
	if s, err := New(ctx, config.Default()); err != errCause || s != nil { //nolint:errorlint // the cause itself
		t.Errorf("%v, %v", s, err)
	}
	a, b := newSession(t, nil), newSession(t, nil)
	if a.Proxy().Token == b.Proxy().Token {
		t.Error("LIB-5: two sessions have one token")
	}
	external := newSession(t, func(c *config.Config) { c.Network.HTTPProxyPort = 9 })
	if external.Proxy().Token != "" {
		t.Error("LIB-5: a token beside an external proxy")
	}
	succeed(t, a.Close())
	if out, err := sh(t, b, "echo ran").Output(); err != nil || string(out) != "ran\n" {
		t.Errorf("the other session: %q, %v", out, err)
	}
	if extra := before.extraFiles(); len(extra) > 0 {
		t.Errorf("sessions without commands hold descriptors: %v", extra)
	}
}

// TestLIB8_TheProcessIsLeftAlone: environment, directory and umask are the embedder's.
func TestLIB8_TheProcessIsLeftAlone(t *testing.T) {
	state := func() string {
		cwd, err := os.Getwd()
		succeed(t, err)
		status, err := os.ReadFile("/proc/self/status")
		succeed(t, err)
		_, umask, _ := strings.Cut(string(status), "Umask:")
		umask, _, _ = strings.Cut(umask, "\n")
		return strings.Join(os.Environ(), "\n") + cwd + umask
	}
	before := state()
	s := newSession(t, nil)
	succeed(t, sh(t, s, "umask 0; cd /").Run())
	succeed(t, s.Close())
	if after := state(); after != before {
		t.Errorf("before:\n%s\nafter:\n%s", before, after)
	}
}
