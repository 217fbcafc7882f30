package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/srt-sandbox/srt/runtime"
	"github.com/srt-sandbox/srt/runtime/config"
	"github.com/srt-sandbox/srt/runtime/violation"
)

// fake is a session and its one process. It records what the command line asks of a sandbox.
type fake struct {
	openErr  error
	startErr error
	onOpen   func(context.Context)
	onStart  func()
	onWait   func()
	onSignal func(os.Signal)
	onKill   func() error
	onUpdate func(*config.Config) ([]string, error)
	watched  iter.Seq[runtime.Violation] // what Watch gives; nil: nothing
	lost     uint64

	mu    sync.Mutex
	argv  []string
	shell string
	calls []string
	ended chan error
	opts  sessionOptions
	ctx   context.Context
}

func newFake() *fake { return &fake{ended: make(chan error, 1)} }

func (f *fake) note(call string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls = append(f.calls, call)
}

func (f *fake) open(ctx context.Context, _ *config.Config, opts sessionOptions) (session, error) {
	f.note("open")
	f.opts, f.ctx = opts, ctx
	if f.onOpen != nil {
		f.onOpen(ctx)
	}
	if f.openErr != nil {
		return nil, f.openErr
	}
	return f, nil
}

func (f *fake) Command(_ context.Context, name string, arg ...string) process {
	f.argv = append([]string{name}, arg...)
	return f
}

func (f *fake) Shell(_ context.Context, text string) process {
	f.shell = text
	return f
}

func (f *fake) Explain(context.Context) (explanation, error) { return fakePlan{"full"}, nil }

func (f *fake) Update(_ context.Context, cfg *config.Config) ([]string, error) {
	if f.onUpdate == nil {
		f.note("update")
		return nil, nil
	}
	return f.onUpdate(cfg)
}

func (f *fake) Watch(context.Context, int) iter.Seq[runtime.Violation] {
	if f.watched == nil {
		return func(func(runtime.Violation) bool) {}
	}
	return f.watched
}

func (f *fake) Total() uint64 { return 9 }

func (f *fake) Lost() uint64 { return f.lost }

func (f *fake) Close() error {
	f.note("close")
	return nil
}

func (f *fake) Start() error {
	f.note("start")
	if f.onStart != nil {
		f.onStart()
	}
	return f.startErr
}

func (f *fake) Wait() error {
	if f.onWait != nil {
		f.onWait()
	}
	return <-f.ended
}

func (f *fake) Signal(sig os.Signal) error {
	f.note("signal " + sig.String())
	if f.onSignal != nil {
		f.onSignal(sig)
	}
	return nil
}

func (f *fake) InCallersGroup() bool { return false }

func (f *fake) Kill() error {
	f.note("kill")
	if f.onKill != nil {
		return f.onKill()
	}
	f.ended <- &exitError{code: 137}
	return nil
}

type fakePlan struct {
	Mode string `json:"mode"`
}

func (p fakePlan) WriteText(w io.Writer) error {
	_, err := io.WriteString(w, "Mode: "+p.Mode+"\n")
	return err
}

// cli runs the command line with a fake sandbox, an empty home directory and a short grace.
func cli(t *testing.T, f *fake, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	return cliEnv(t, f, map[string]string{}, args...)
}

func cliEnv(t *testing.T, f *fake, env map[string]string, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	if env[homeVariable()] == "" {
		env[homeVariable()] = t.TempDir()
	}
	var out, errs bytes.Buffer
	a := &app{
		stdout: &out,
		stderr: &errs,
		getenv: func(name string) string { return env[name] },
		open:   f.open,
		grace:  5 * time.Millisecond,
	}
	status = a.run(args)
	return status, out.String(), errs.String()
}

func TestExitStatus(t *testing.T) {
	tests := []struct {
		name   string
		start  error
		wait   error
		status int
		stderr string
	}{
		{name: "CLI-12 success", status: 0},
		{name: "CLI-12 the command's own status", wait: &exitError{code: 3}, status: 3},
		{name: "CLI-12 killed by a signal", wait: &exitError{code: 137}, status: 137},
		{name: "CLI-12 a command may choose 127", wait: &exitError{code: 127}, status: 127},
		{name: "CLI-12 not found", start: &exitError{127, "x: not found"}, status: 127, stderr: "Error: x: not found\n"},
		{name: "CLI-12 not runnable", wait: &exitError{126, "x: permission denied"}, status: 126, stderr: "Error: x: permission denied\n"},
		{name: "CLI-13 start fails", start: errors.New("clone: EPERM"), status: 1, stderr: "Error: clone: EPERM\n"},
		{name: "CLI-16", wait: errors.New("Process killed by signal: SIGKILL"), status: 1, stderr: "Process killed by signal: SIGKILL\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := newFake()
			f.startErr = tt.start
			f.ended <- tt.wait
			status, stdout, stderr := cli(t, f, "exec", "--", "x")
			if status != tt.status || stdout != "" || stderr != tt.stderr {
				t.Errorf("got %d, stdout %q, stderr %q; want %d, nothing, %q", status, stdout, stderr, tt.status, tt.stderr)
			}
			if got := strings.Join(f.calls, ","); got != "open,start,close" {
				t.Errorf("calls: %s, want open,start,close", got)
			}
		})
	}
}

func TestSpellings(t *testing.T) {
	tests := []struct {
		name  string
		args  []string
		argv  []string
		shell string
	}{
		{name: "CLI-1 exec keeps words", args: []string{"exec", "--", "printf", "%s", "a  b"}, argv: []string{"printf", "%s", "a  b"}},
		{name: "CLI-8 compatible quotes words", args: []string{"printf", "%s", "a  b"}, shell: "printf '%s' 'a  b'"},
		{name: "CLI-4 a command named exec", args: []string{"--", "exec", "ls"}, shell: "exec ls"},
		{name: "CLI-2 -c is unmodified", args: []string{"-c", "echo $HOME", "x"}, shell: "echo $HOME"},
		{name: "CLI-2 -c with exec", args: []string{"exec", "-c", "echo 'a'"}, shell: "echo 'a'"},
		{name: "CLI-6 an empty -c counts as none", args: []string{"-c", "", "ls"}, shell: "ls"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := newFake()
			f.ended <- nil
			if status, _, stderr := cli(t, f, tt.args...); status != 0 || stderr != "" {
				t.Fatalf("got %d, %q", status, stderr)
			}
			if diff := cmp.Diff(tt.argv, f.argv); diff != "" || f.shell != tt.shell {
				t.Errorf("shell %q, want %q; argv (-want +got):\n%s", f.shell, tt.shell, diff)
			}
		})
	}
}

func TestNothingIsBuilt(t *testing.T) {
	bad := writeFile(t, filepath.Join(t.TempDir(), "bad"), "{")
	tests := []struct {
		name   string
		args   []string
		stderr string // prefix
		lines  int
	}{
		{"CLI-5", []string{"--bogus", "true"}, "error: unknown option '--bogus'", 1},
		{"CLI-6 no words", nil, "Error: No command specified. ", 1},
		{"CLI-6 exec without words", []string{"exec", "--"}, "Error: No command specified. ", 1},
		{"CLI-6 empty -c", []string{"-c", ""}, "Error: No command specified. ", 1},
		{"CLI-7 arguments before settings", []string{"-s", bad}, "Error: No command specified. ", 1},
		{"CFG-7", []string{"-s", bad, "true"}, "Error: " + bad + " is not valid JSON: ", 2},
		{"CFG-9 explain", []string{"explain", "-s", bad}, "Error: " + bad + " is not valid JSON: ", 2},
		{"CLI-7 settings before the channel", []string{"--control-fd", "3", "-s", bad, "true"}, "Error: " + bad, 2},
		{"CLI-21", []string{"--control-fd", "2147483647", "true"}, "Error: --control-fd 2147483647 is not usable: ", 1},
		{"CLI-21 explain", []string{"explain", "--control-fd", "2147483647"}, "Error: --control-fd 2147483647 is not usable: ", 1},
		{"CLI-42 elsewhere", []string{"windows-install", "--force"}, "Error: srt windows-install ", 1},
		{"CLI-42 uninstall elsewhere", []string{"windows-uninstall"}, "Error: srt windows-uninstall ", 1},
		{"NET-91 words", []string{"__ssh-connect", "h"}, "error: __ssh-connect takes a host and a port", 1},
		{"NET-91 outside", []string{"__ssh-connect", "h.example", "22"}, "sandbox proxy: HTTPS_PROXY is not set", 1},
		{"NET-91 bad host", []string{"__ssh-connect", "a b", "22"}, "sandbox proxy: bad host\n", 1},
		{"NET-91 bad port", []string{"__ssh-connect", "h.example", "x"}, "sandbox proxy: bad port\n", 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := newFake()
			status, stdout, stderr := cli(t, f, tt.args...)
			if status != 1 || stdout != "" || !strings.HasPrefix(stderr, tt.stderr) || strings.Count(stderr, "\n") != tt.lines {
				t.Errorf("got %d, stdout %q, stderr %q; want 1, nothing, %d line(s) starting with %q",
					status, stdout, stderr, tt.lines, tt.stderr)
			}
			if len(f.calls) != 0 {
				t.Errorf("a sandbox was touched: %v", f.calls)
			}
		})
	}
}

func TestHelpAndVersion(t *testing.T) {
	for _, args := range [][]string{{"-h"}, {"--help"}, {"exec", "-h"}, {"-s", "/nonexistent", "-h", "x"}} {
		if status, stdout, stderr := cli(t, newFake(), args...); status != 0 || stdout != helpText || stderr != "" {
			t.Errorf("CLI-2 %q: got %d, %q, %q", args, status, stdout, stderr)
		}
	}
	for _, args := range [][]string{{"-V"}, {"--version"}, {"-d", "-V", "x"}} {
		if status, stdout, stderr := cli(t, newFake(), args...); status != 0 || stdout != versionString()+"\n" || stderr != "" {
			t.Errorf("CLI-2 %q: got %d, %q, %q", args, status, stdout, stderr)
		}
	}
}

func TestSetUpFails(t *testing.T) {
	f := newFake()
	f.openErr = errors.New("no namespaces here")
	if status, _, stderr := cli(t, f, "true"); status != 1 || stderr != "Error: no namespaces here\n" {
		t.Errorf("CLI-13: got %d, %q", status, stderr)
	}
	if got := strings.Join(f.calls, ","); got != "open" {
		t.Errorf("calls: %s, want open", got)
	}
}

func TestExplain(t *testing.T) {
	tests := []struct {
		args []string
		want string
	}{
		{[]string{"explain"}, "Mode: full\n"},
		{[]string{"explain", "--", "make", "a b"}, "Command: make 'a b'\nMode: full\n"},
		{[]string{"explain", "--json", "make"}, "{\n  \"command\": [\n    \"make\"\n  ],\n  \"plan\": {\n    \"mode\": \"full\"\n  }\n}\n"},
		{[]string{"explain", "-c", "x y"}, "Command: bash -c 'x y'\nMode: full\n"},
	}
	for _, tt := range tests {
		f := newFake()
		if status, stdout, stderr := cli(t, f, tt.args...); status != 0 || stdout != tt.want || stderr != "" {
			t.Errorf("%q: got %d, %q, %q; want 0, %q", tt.args, status, stdout, stderr, tt.want)
		}
		if got := strings.Join(f.calls, ","); got != "open,close" {
			t.Errorf("%q: calls %s, want open,close", tt.args, got)
		}
	}
}

func TestDebugLines(t *testing.T) {
	settings := writeFile(t, filepath.Join(t.TempDir(), "s"),
		`{"strictAllowList":true,"bwrapPath":"/no/such",`+smallest[1:])
	tests := []struct {
		name string
		env  map[string]string
		args []string
		want []string
	}{
		{"CLI-11 silent without debug", nil, []string{"true"}, nil},
		{"CFG-3", nil, []string{"-d", "true"}, []string{"no settings file at "}},
		{"CLI-11 zero is on", map[string]string{"SRT_DEBUG": "0"}, []string{"true"}, []string{"no settings file at "}},
		{"CFG-14 CFG-30", nil, []string{"-d", "-s", settings, "true"},
			[]string{"unknown settings key ignored: strictAllowList", "settings key has no effect in srt: bwrapPath"}},
		{"timing", map[string]string{"SRT_DEBUG": "timing"}, []string{"-s", settings, "true"},
			[]string{"timing: arguments read", "timing: settings read", "timing: sandbox ready", "timing: command started", "timing: command ended", "timing: sandbox closed"}},
		{"violations cannot forge lines", nil, []string{"-d", "true"}, []string{"violation: deny network-outbound x:1 (a b)"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := newFake()
			f.onStart = func() {
				f.opts.violation(violation.Event{Operation: violation.NetworkOutbound, Target: "x:1", Reason: "a\nb"})
			}
			f.ended <- nil
			env := map[string]string{}
			for name, value := range tt.env {
				env[name] = value
			}
			status, stdout, stderr := cliEnv(t, f, env, tt.args...)
			if status != 0 || stdout != "" {
				t.Fatalf("got %d, stdout %q", status, stdout)
			}
			for line := range strings.Lines(stderr) {
				if !strings.HasPrefix(line, debugPrefix) {
					t.Errorf("CLI-11: line without prefix: %q", line)
				}
			}
			if tt.want == nil && stderr != "" {
				t.Errorf("got %q, want silence", stderr)
			}
			for _, want := range tt.want {
				if !strings.Contains(stderr, debugPrefix+want) {
					t.Errorf("no line %q in:\n%s", want, stderr)
				}
			}
		})
	}
}

// A key that looks mistyped, or lies in an entry of credentials, is named without debug too; others are not (CFG-14).
func TestMistypedKeys_CFG14(t *testing.T) {
	settings := writeFile(t, filepath.Join(t.TempDir(), "s"), `{"later":1,"credential":{},`+smallest[1:])
	f := newFake()
	f.ended <- nil
	want := "Warning: settings key credential is unknown and has no effect; is credentials meant?\n"
	if status, stdout, stderr := cli(t, f, "-s", settings, "true"); status != 0 || stdout != "" || stderr != want {
		t.Errorf("got %d, %q, %q; want %q", status, stdout, stderr, want)
	}
}

func TestDebugReachesTheCommand(t *testing.T) {
	for _, args := range [][]string{{"-d", "true"}, {"true"}} {
		f := newFake()
		f.ended <- nil
		cli(t, f, args...)
		if want := len(args) == 2; f.opts.debugging != want {
			t.Errorf("CLI-2 %q: the command sees SRT_DEBUG: %v, want %v", args, f.opts.debugging, want)
		}
	}
}
