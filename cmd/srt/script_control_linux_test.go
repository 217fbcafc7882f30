package main

import (
	"bytes"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// reset starts a command with a connection as descriptor 3, sends the lines of a file over it ("-" for none) and, when the
// file ready is there, breaks it off, so that reading from it fails. When standard error tells that the channel is
// closed, it makes the file broken. It wants the command to end with a status: reset lines ready status command [argument...]. What the command wrote
// is in the file stderr afterwards.
func reset(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 4 {
		ts.Fatalf("usage: reset lines ready status command [argument...]")
	}
	want, err := strconv.Atoi(args[2])
	ts.Check(err)
	path, err := lookPath(ts, args[3])
	ts.Check(err)
	conn, theirs := connection(ts)
	defer conn.Close()
	if args[0] != "-" {
		_, err = conn.Write([]byte(ts.ReadFile(args[0])))
		ts.Check(err)
	}
	var stderr watchedOutput
	cmd := exec.Command(path, args[4:]...)
	cmd.Dir, cmd.Env, cmd.Stderr, cmd.ExtraFiles = ts.MkAbs("."), scriptEnv(ts), &stderr, []*os.File{theirs}
	ts.Check(cmd.Start())
	theirs.Close()
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	if _, err := waitReady(ts.MkAbs(args[1]), ended); err != nil {
		_ = cmd.Process.Kill()
		ts.Fatalf("%v\n%s", err, stderr.text())
	}
	ts.Check(conn.Close())
	for deadline := time.After(patience); ; {
		if strings.Contains(stderr.text(), "Error reading control fd 3") { // CLI-29; after CLI-28 nothing goes on
			ts.Check(os.WriteFile(ts.MkAbs("broken"), nil, 0o644))
		}
		select {
		case <-ended:
		case <-deadline:
			_ = cmd.Process.Kill()
			ts.Fatalf("still there\n%s", stderr.text())
		case <-time.After(5 * time.Millisecond):
			continue
		}
		break
	}
	ts.Logf("[stderr]\n%s", stderr.text())
	ts.Check(os.WriteFile(ts.MkAbs("stderr"), []byte(stderr.text()), 0o644))
	if got := cmd.ProcessState.ExitCode(); got != want {
		ts.Fatalf("status %d (%v), want %d", got, cmd.ProcessState, want)
	}
}

// connection is a TCP connection whose first end resets it when it is closed.
func connection(ts *testscript.TestScript) (*net.TCPConn, *os.File) {
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	ts.Check(err)
	defer listener.Close()
	client, err := net.Dial("tcp4", listener.Addr().String())
	ts.Check(err)
	defer client.Close()
	server, err := listener.Accept()
	ts.Check(err)
	ts.Check(server.(*net.TCPConn).SetLinger(0))
	file, err := client.(*net.TCPConn).File()
	ts.Check(err)
	return server.(*net.TCPConn), file
}

// watchedOutput is what a command has written so far.
type watchedOutput struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

// Write keeps p.
func (w *watchedOutput) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.buf.Write(p)
}

func (w *watchedOutput) text() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.buf.String()
}
