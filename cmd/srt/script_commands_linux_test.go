package main

import (
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/sys/unix"
)

// patience bounds every wait for an event of another process. It is no expectation about speed.
const patience = 30 * time.Second

// exits runs a command and wants exactly this status: exits N command [argument...].
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits status command [argument...]")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			ts.Fatalf("%v", err)
		}
		got = exit.ExitCode()
	}
	if got != want {
		ts.Fatalf("status %d, want %d", got, want)
	}
}

// expand replaces $VARIABLE in files by its value: expand file...
func expand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: expand file...")
	}
	for _, name := range args {
		text := os.Expand(ts.ReadFile(name), ts.Getenv)
		ts.Check(os.WriteFile(ts.MkAbs(name), []byte(text), 0o644))
	}
}

// interrupt starts a command, waits until the file (or the reader of a FIFO) named ready is there, sends a signal and
// wants this status: interrupt SIGNAL ready status command [argument...]. What the command wrote is in the files stdout
// and stderr afterwards.
func interrupt(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 4 {
		ts.Fatalf("usage: interrupt SIGNAL ready status command [argument...]")
	}
	want, err := strconv.Atoi(args[2])
	ts.Check(err)
	var stdout, stderr strings.Builder
	path := args[3]
	if found, err := lookPath(ts, path); err == nil {
		path = found
	}
	cmd := exec.Command(path, args[4:]...)
	cmd.Dir = ts.MkAbs(".")
	cmd.Env = scriptEnv(ts)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	ts.Check(cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	keep, err := waitReady(ts.MkAbs(args[1]), ended)
	if err == nil {
		err = cmd.Process.Signal(unix.SignalNum("SIG" + args[0]))
	}
	if err != nil {
		_ = cmd.Process.Kill()
		ts.Fatalf("%v\n%s", err, stderr.String())
	}
	select {
	case <-ended:
	case <-time.After(patience):
		_ = cmd.Process.Kill()
		ts.Fatalf("still there after the signal\n%s", stderr.String())
	}
	if keep != nil {
		_ = keep.Close()
	}
	ts.Logf("[stdout]\n%s[stderr]\n%s", stdout.String(), stderr.String())
	ts.Check(os.WriteFile(ts.MkAbs("stdout"), []byte(stdout.String()), 0o644))
	ts.Check(os.WriteFile(ts.MkAbs("stderr"), []byte(stderr.String()), 0o644))
	if got := cmd.ProcessState.ExitCode(); got != want {
		ts.Fatalf("status %d (%v), want %d", got, cmd.ProcessState, want)
	}
}

// scriptEnv is the environment of the script as exec hands it on.
func scriptEnv(ts *testscript.TestScript) []string {
	var env []string
	for _, name := range []string{"PATH", "HOME", "TMPDIR", "WORK", "SRT_DEBUG"} {
		if value := ts.Getenv(name); value != "" {
			env = append(env, name+"="+value)
		}
	}
	return env
}

func lookPath(ts *testscript.TestScript, name string) (string, error) {
	for _, dir := range filepath.SplitList(ts.Getenv("PATH")) {
		path := filepath.Join(dir, name)
		if unix.Access(path, unix.X_OK) == nil {
			return path, nil
		}
	}
	return "", exec.ErrNotFound
}

// waitReady waits for a file, or opens a FIFO for writing as soon as somebody reads from it.
func waitReady(path string, ended <-chan error) (io.Closer, error) {
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
		info, err := os.Stat(path)
		if err == nil && info.Mode()&os.ModeNamedPipe == 0 {
			return nil, nil
		}
		if err == nil {
			if fd, err := unix.Open(path, unix.O_WRONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0); err == nil {
				return os.NewFile(uintptr(fd), path), nil
			}
		}
		select {
		case <-ended:
			return nil, errors.New("the command ended before it was ready")
		case <-time.After(5 * time.Millisecond):
		}
	}
	return nil, errors.New("never ready: " + path)
}

// gone wants that no process has this text in its command line any more: gone text.
func gone(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: gone text")
	}
	var left []string
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if left = processesWith(args[0]); len(left) == 0 {
			return
		}
	}
	ts.Fatalf("still running: %q", left)
}

func processesWith(text string) []string {
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	var found []string
	for _, file := range files {
		data, err := os.ReadFile(file)
		line := strings.ReplaceAll(string(data), "\x00", " ")
		if err == nil && strings.Contains(line, text) {
			found = append(found, line)
		}
	}
	return found
}

// serve starts a web server on the host's loopback for the length of the script and puts its port in a variable: serve
// NAME. Every answer is the line "hello from NAME".
func serve(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: serve VARIABLE")
	}
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	ts.Check(err)
	server := &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, "hello from "+args[0]+"\n")
		}),
		ReadHeaderTimeout: patience,
	}
	go func() { _ = server.Serve(listener) }()
	ts.Defer(func() { _ = server.Close() })
	_, port, err := net.SplitHostPort(listener.Addr().String())
	ts.Check(err)
	ts.Setenv(args[0], port)
}
