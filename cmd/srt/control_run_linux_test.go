package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/srt-sandbox/srt/runtime/config"
)

// allowing is the smallest configuration that allows hosts.
func allowing(hosts ...string) string {
	list := ""
	if len(hosts) > 0 {
		list = `"` + strings.Join(hosts, `","`) + `"`
	}
	return `{"network":{"allowedDomains":[` + list + `],"deniedDomains":[]},"filesystem":{"denyRead":[],"allowWrite":[],"denyWrite":[]}}`
}

// updates is a fake session whose command runs until the test is content with the updates that have arrived.
type updates struct {
	*fake
	mu   sync.Mutex
	got  []string // allowed hosts of each update
	want int      // the command ends with this many
	code int      // its status
}

func newUpdates(want, code int) *updates {
	u := &updates{fake: newFake(), want: want, code: code}
	u.onUpdate = func(cfg *config.Config) ([]string, error) {
		u.mu.Lock()
		defer u.mu.Unlock()
		u.note("update")
		u.got = append(u.got, strings.Join(cfg.Network.AllowedDomains, " "))
		if len(u.got) == u.want {
			u.end()
		}
		return nil, nil
	}
	return u
}

func (u *updates) end() {
	if u.code == 0 {
		u.ended <- nil
		return
	}
	u.ended <- &exitError{code: u.code}
}

func (u *updates) run(t *testing.T, fd int, args ...string) (status int, stderr string) {
	t.Helper()
	status, _, stderr = cli(t, u.fake, append([]string{"--control-fd", strconv.Itoa(fd)}, args...)...)
	return status, stderr
}

func send(t *testing.T, e channelEnds, text string) {
	t.Helper()
	if _, err := io.WriteString(e.peer, text); err != nil {
		t.Fatal(err)
	}
}

// Every kind of descriptor delivers, before the command's start and while it runs, and keeps its blocking mode (CLI-21,
// CLI-26, CLI-30). The writer keeps its end open: srt ends with the command all the same (CLI-27).
func TestKindsOfChannels_CLI21_CLI26_CLI27_CLI30(t *testing.T) {
	kinds := []struct {
		name string
		ends func(*testing.T) channelEnds
	}{
		{"pipe", pipeEnds},
		{"FIFO for reading", fifoEnds(unix.O_RDONLY)},
		{"FIFO for both", fifoEnds(unix.O_RDWR)},
		{"terminal", terminalEnds},
		{"stream socket", socketEnds(unix.SOCK_STREAM)},
		{"datagram socket", socketEnds(unix.SOCK_DGRAM)},
		{"seqpacket socket", socketEnds(unix.SOCK_SEQPACKET)},
		{"TCP", resetEnds},
	}
	for _, kind := range kinds {
		for _, mode := range []int{0, unix.O_NONBLOCK} {
			t.Run(fmt.Sprintf("%s, O_NONBLOCK %v", kind.name, mode != 0), func(t *testing.T) {
				e := kind.ends(t)
				if err := unix.SetNonblock(e.fd, mode != 0); err != nil {
					t.Fatal(err)
				}
				flags := func() int {
					f, err := unix.FcntlInt(uintptr(e.fd), unix.F_GETFL, 0)
					if err != nil {
						t.Fatal(err)
					}
					return f
				}
				before := flags()
				send(t, e, allowing("early.example")+"\n"+allowing("second.example")+"\n")
				u := newUpdates(3, 4)
				u.onWait = func() {
					if flags() != before {
						t.Errorf("CLI-30: the flags of the open file description are %#o, were %#o", flags(), before)
					}
					send(t, e, allowing("late.example")+"\n")
				}
				status, stderr := u.run(t, e.fd, "true")
				if status != 4 || stderr != "" || flags() != before {
					t.Errorf("got %d, %q, flags %#o; want 4, silence, %#o", status, stderr, flags(), before)
				}
				if diff := cmp.Diff([]string{"early.example", "second.example", "late.example"}, u.got); diff != "" {
					t.Errorf("updates (-want +got):\n%s", diff)
				}
				if calls := strings.Join(u.calls, ","); calls != "open,update,update,start,update,close" {
					t.Errorf("CLI-26: calls %s", calls)
				}
			})
		}
	}
}

func TestRegularFile_CLI21(t *testing.T) {
	path := writeFile(t, filepath.Join(t.TempDir(), "file"), "skipped\n"+allowing("a.example")+"\n\n"+allowing("b.example"))
	fd := openFlags(t, path, unix.O_RDONLY)
	if _, err := unix.Seek(fd, int64(len("skipped\n")), io.SeekStart); err != nil {
		t.Fatal(err)
	}
	u := newUpdates(2, 0)
	status, stderr := u.run(t, fd, "true")
	if status != 0 || stderr != "" || strings.Join(u.got, ",") != "a.example,b.example" {
		t.Errorf("got %d, %q, %q", status, stderr, u.got)
	}
	if u.opts.privateFiles == nil || u.opts.privateFiles[0] != path || u.opts.nullDescriptor != fd {
		t.Errorf("CLI-30: hidden %q, null device at %d; want %s, %d", u.opts.privateFiles, u.opts.nullDescriptor, path, fd)
	}
}

// The check consumes nothing: what follows on a refusal of the settings finds all that was sent (CLI-7, CLI-21).
func TestNothingIsConsumed_CLI21(t *testing.T) {
	e := pipeEnds(t)
	send(t, e, "line\n")
	if _, name, err := openDescriptor(e.fd); err != nil || name != "" {
		t.Fatal(name, err)
	}
	f := newFake()
	f.openErr = errors.New("no namespaces here")
	if status, _, _ := cli(t, f, "--control-fd", strconv.Itoa(e.fd), "true"); status != 1 {
		t.Errorf("status %d", status)
	}
	buf := make([]byte, 10)
	if n, err := unix.Read(e.fd, buf); err != nil || string(buf[:n]) != "line\n" {
		t.Errorf("%q, %v", buf[:n], err)
	}
}

// Numbered cases 30 to 35 that need no sandbox, and CLI-23 to CLI-25, CLI-32.
func TestLinesOfTheChannel(t *testing.T) {
	const invalid = "Invalid config on control fd N: ignored, previous config still in force\n"
	long := strings.Repeat(" ", maxControlLine-len(allowing()))
	tests := []struct {
		name, input string
		updates     []string
		stderr      string
	}{
		{"case 31", "{\"bad\":1}\n\n" + allowing("b.example") + "\r\n", []string{"b.example"}, invalid},
		{"CLI-23 a last line without an end", allowing("b.example"), []string{"b.example"}, ""},
		{"CLI-23 blank lines are silent", "\n\r\n  \t\n" + allowing("b.example") + "\n", []string{"b.example"}, ""},
		{"CLI-23 16 MiB work", long + allowing() + "\n" + allowing("b.example") + "\n", []string{"", "b.example"}, ""},
		{"CLI-23 more is an invalid line", long + " " + allowing() + "\n" + allowing("b.example") + "\n", []string{"b.example"}, invalid},
		{"CLI-24 each replaces all", allowing("a.example", "b.example") + "\n" + allowing() + "\n" + allowing("c.example"),
			[]string{"a.example b.example", "", "c.example"}, ""},
		{"CLI-24 network and filesystem are required", "{\"network\":{\"allowedDomains\":[],\"deniedDomains\":[]}}\n" + allowing("c.example"),
			[]string{"c.example"}, invalid},
		{"CLI-25 not JSON", "{\n" + allowing("c.example") + "x\n" + allowing("c.example") + "\n", []string{"c.example"}, invalid + invalid},
		{"CLI-25 not UTF-8", "\xff\n" + allowing("c.example"), []string{"c.example"}, invalid},
		{"CLI-27 nothing at all", "", nil, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			e := pipeEnds(t)
			go func() {
				_, _ = io.WriteString(e.peer, tt.input)
				e.peer.Close()
			}()
			u := newUpdates(len(tt.updates), 0)
			if len(tt.updates) == 0 {
				u.onWait = func() { u.end() }
			}
			status, stderr := u.run(t, e.fd, "true")
			want := strings.ReplaceAll(tt.stderr, "fd N", "fd "+strconv.Itoa(e.fd))
			if status != 0 || stderr != want || !cmp.Equal(tt.updates, u.got) {
				t.Errorf("got %d, %q, updates %.99q; want 0, %q, %.99q", status, stderr, u.got, want, tt.updates)
			}
		})
	}
}

// A line is refused by the session as well as by the decoder; debug lines say why, and what accepted ones do not change.
func TestDebugLinesOfTheChannel_CLI25_CLI32(t *testing.T) {
	e := pipeEnds(t)
	send(t, e, `{"p":"http://user:secret@proxy:1"} `+"\n"+allowing("refused.example")+"\n"+
		strings.TrimSuffix(allowing("a.example"), "}")+`,"denyreads":[]}`+"\n")
	f := newFake()
	f.onUpdate = func(cfg *config.Config) ([]string, error) {
		if cfg.Network.AllowedDomains[0] == "refused.example" {
			return nil, errors.New("the session says no")
		}
		f.ended <- nil
		return []string{"filesystem.denyRead", "network.parentProxy"}, nil
	}
	status, _, stderr := cli(t, f, "-d", "--control-fd", strconv.Itoa(e.fd), "true")
	if status != 0 || strings.Contains(stderr, "secret") {
		t.Errorf("CLI-11: got %d, %s", status, stderr)
	}
	fd := fmt.Sprintf("control fd %d: ", e.fd)
	for _, want := range []string{
		"Invalid config on control fd " + strconv.Itoa(e.fd) + ": ignored, previous config still in force\n",
		debugPrefix + fd + "invalid config reason=",
		`line={"p":"http://***@proxy:1"}`,
		"the session says no line=" + allowing("refused.example"),
		debugPrefix + fd + "new config in force\n",
		debugPrefix + fd + "no effect on the running command, since these are fixed at its start: filesystem.denyRead, network.parentProxy\n",
		debugPrefix + fd + "unknown settings key ignored: denyreads\n",
	} {
		if !strings.Contains(stderr, want) {
			t.Errorf("no %q in:\n%s", want, stderr)
		}
	}
}

func TestShownOfALine_CLI25(t *testing.T) {
	pad := strings.Repeat("x", shownOfLine-40)
	tests := []struct{ line, want string }{
		{`{"a":"http://u:p@h:1"}`, `{"a":"http://***@h:1"}`},
		{`{"a":"u:p@h:1","b":"https://v:q,r'@i@j/"}`, `{"a":"***@h:1","b":"https://***@***@j/"}`},
		{`@ a@`, `@ ***@`},
		{`http://h/ no userinfo`, `http://h/ no userinfo`},
		{`{"` + pad + `":"http://user:secret` + pad + `@h"}`, `{"` + pad + `":"...`},
	}
	for _, tt := range tests {
		if got := shown([]byte(tt.line)); got != tt.want {
			t.Errorf("%s: got %s, want %s", tt.line, got, tt.want)
		}
	}
}

// listener keeps what is written and closes heard when that holds a word. Whoever writes to it has a lock.
type listener struct {
	word  string
	text  strings.Builder
	heard chan struct{}
	once  sync.Once
}

func (l *listener) Write(p []byte) (int, error) {
	l.text.Write(p)
	if strings.Contains(l.text.String(), l.word) {
		l.once.Do(func() { close(l.heard) })
	}
	return len(p), nil
}

// CLI-28 and CLI-29: what a channel that cannot be read any more means depends on whether a line had arrived.
func TestReadErrors_CLI28_CLI29(t *testing.T) {
	const refused = "Error: control fd N failed before delivering an update: connection reset by peer (ECONNRESET). " +
		"Refusing to run the command without the control channel it asks for.\n"
	const closed = "Error reading control fd N: connection reset by peer (ECONNRESET). " +
		"The control channel is closed; no further updates will be applied.\n"
	reset := func(t *testing.T, e channelEnds) {
		if err := e.peer.Close(); err != nil {
			t.Error(err)
		}
	}
	t.Run("CLI-28 before the start", func(t *testing.T) {
		e := resetEnds(t)
		reset(t, e)
		u := newUpdates(-1, 0)
		status, stderr := u.run(t, e.fd, "true")
		if calls := strings.Join(u.calls, ","); status != 1 || stderr != strings.ReplaceAll(refused, "fd N", "fd "+strconv.Itoa(e.fd)) || calls != "open,close" {
			t.Errorf("got %d, %q, %s", status, stderr, calls)
		}
	})
	commands := []struct {
		name     string
		onSignal func(*updates)
		calls    string
	}{
		{"ends by the signal", func(u *updates) { u.ended <- &exitError{code: 143} }, "open,start,signal terminated,close"},
		{"chooses its status", func(u *updates) { u.ended <- nil }, "open,start,signal terminated,close"},
		{"ignores the signal", func(*updates) {}, "open,start,signal terminated,kill,close"},
	}
	for _, c := range commands {
		t.Run("CLI-28 the command "+c.name, func(t *testing.T) {
			e := resetEnds(t)
			u := newUpdates(-1, 0)
			u.onWait = func() { reset(t, e) }
			u.onSignal = func(os.Signal) { c.onSignal(u) }
			status, stderr := u.run(t, e.fd, "true")
			if calls := strings.Join(u.calls, ","); status != 1 || stderr != strings.ReplaceAll(refused, "fd N", "fd "+strconv.Itoa(e.fd)) || calls != c.calls {
				t.Errorf("got %d, %q, %s; want 1 and %s", status, stderr, calls, c.calls)
			}
		})
	}
	for name, line := range map[string]string{"an accepted line": allowing(), "a blank line": "", "an invalid line": "{"} {
		t.Run("CLI-29 after "+name, func(t *testing.T) {
			e := resetEnds(t)
			send(t, e, line+"\n")
			u := newUpdates(-1, 7)
			said := &listener{word: "Error reading", heard: make(chan struct{})}
			// The peer's reset discards what has not been read yet: it comes when the line has been.
			u.onStart = func() { reset(t, e) }
			u.onWait = func() {
				<-said.heard
				u.end()
			}
			home := t.TempDir()
			a := &app{stdout: io.Discard, stderr: said, getenv: func(string) string { return home }, open: u.open, grace: patience}
			status := a.run([]string{"--control-fd", strconv.Itoa(e.fd), "true"})
			stderr := said.text.String()
			want := strings.ReplaceAll(closed, "fd N", "fd "+strconv.Itoa(e.fd))
			if status != 7 || !strings.HasSuffix(stderr, want) || strings.Count(stderr, want) != 1 {
				t.Errorf("got %d, %q; want 7, %q", status, stderr, want)
			}
		})
	}
}

// One socket may carry the settings in and the report of what was refused out.
func TestOneSocketForBothWays(t *testing.T) {
	e := socketEnds(unix.SOCK_STREAM)(t)
	send(t, e, allowing("a.example")+"\n")
	u := newUpdates(1, 0)
	if status, stderr := u.run(t, e.fd, "--violations", "fd:"+strconv.Itoa(e.fd), "true"); status != 0 || stderr != "" {
		t.Errorf("got %d, %q", status, stderr)
	}
}
