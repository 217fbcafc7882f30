package ns

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestOnlyTheStandardStreams holds FS-46 and CLI-10, with descriptors of the host process open that are not
// close-on-exec.
func TestOnlyTheStandardStreams_FS46(t *testing.T) {
	leak, err := unix.Open("/etc/passwd", unix.O_RDONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(leak)
	out, _, err := run(t, minimal(newProgram(t), "/bin/sh", "-c", "for f in /proc/self/fd/*; do echo ${f##*/}; done"))
	if err != nil {
		t.Fatal(err)
	}
	// The shell's own opening of the directory is the fourth.
	if got := strings.Join(strings.Fields(out), " "); got != "0 1 2 3" {
		t.Errorf("descriptors %q, want 0 1 2 and that of the listing", got)
	}
}

func TestStreamsMayHaveAnyNumbers(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	c := minimal(newProgram(t), "/bin/sh", "-c", "read x; echo $x; echo err >&2")
	in, inw, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintln(inw, "line")
	inw.Close()
	c.Stdin, c.Stdout, c.Stderr = in, w, w
	p, err := c.start()
	in.Close()
	w.Close()
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	out.ReadFrom(r)
	if _, err := p.Wait(); err != nil || out.String() != "line\nerr\n" {
		t.Errorf("%q, %v", out.String(), err)
	}
}

func TestListenersAreReceived_NET4(t *testing.T) {
	p := newProgram(t)
	p.LoopbackUp()
	p.Listen(0, 3128, 1080)
	c := minimal(p, "/bin/sh", "-c", "cat /proc/net/tcp; exit 0")
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	c.Stdin, c.Stdout, c.Stderr = null, null, null
	proc, err := c.start()
	if err != nil {
		t.Fatal(err)
	}
	defer closeFiles(proc)
	if len(proc.Files) != 4 && len(proc.Files) != 2 {
		t.Fatalf("%d listeners", len(proc.Files))
	}
	for i, f := range proc.Files {
		sa, err := unix.Getsockname(int(f.Fd()))
		if err != nil {
			t.Fatal(err)
		}
		port := map[int]int{0: 3128, 1: 1080}[i%2]
		switch a := sa.(type) {
		case *unix.SockaddrInet4:
			if a.Port != port || a.Addr != [4]byte{127, 0, 0, 1} {
				t.Errorf("listener %d: %v", i, a)
			}
		case *unix.SockaddrInet6:
			if a.Port != port || i < 2 {
				t.Errorf("listener %d: %v", i, a)
			}
		}
	}
	if _, err := proc.Wait(); err != nil {
		t.Error(err)
	}
}

// heldPipe is a pipe whose writing end goes to pid 1.
func heldPipe(t *testing.T) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close(); w.Close() })
	return r, w
}

// atEnd tells whether a pipe has come to its end.
func atEnd(t *testing.T, r *os.File) bool {
	t.Helper()
	fds := []unix.PollFd{{Fd: int32(r.Fd()), Events: unix.POLLIN}}
	n, err := unix.Poll(fds, 0)
	if err != nil {
		t.Fatal(err)
	}
	return n == 1 && fds[0].Revents&unix.POLLHUP != 0
}

// TestHold_FS54: pid 1 has a copy for the sandbox's whole life, whatever becomes of the host side's, and the command has
// none, by no way.
func TestHold_FS54(t *testing.T) {
	for _, count := range []int{1, 2, maxFiles} {
		var readers, writers []*os.File
		for range count {
			r, w := heldPipe(t)
			readers, writers = append(readers, r), append(writers, w)
		}
		out, outw := heldPipe(t)
		in, inw := heldPipe(t)
		p := newProgram(t)
		p.Undumpable()
		l := minimal(p, "/bin/sh", "-c", `echo /proc/self/fd/*; read pid
			for f in /proc/$pid/fd/* /proc/$pid/fd/4; do readlink $f && echo led to something; test -e $f && echo $f opens; done; echo
			read x; exit 7`)
		l.Stdin, l.Stdout, l.Stderr, l.Hold = in, outw, outw, writers
		process, err := l.start()
		if err != nil {
			t.Fatal(err)
		}
		outw.Close()
		for _, w := range writers {
			w.Close()
		}
		fmt.Fprintln(inw, process.Pid())
		text := bufio.NewReader(out)
		var lines []string
		for len(lines) < 2 {
			line, err := text.ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			lines = append(lines, line)
		}
		// The shell's own opening of the directory is the fourth.
		if lines[0] != "/proc/self/fd/0 /proc/self/fd/1 /proc/self/fd/2 /proc/self/fd/3\n" || lines[1] != "\n" {
			t.Errorf("%d held: the command sees %q", count, lines)
		}
		for i, r := range readers {
			if atEnd(t, r) {
				t.Errorf("%d held: number %d is not held while the command runs", count, i)
			}
		}
		inw.Close()
		if st, err := process.Wait(); err != nil || st.Code != 7 {
			t.Errorf("%d held: %v, %v", count, st, err)
		}
		for i, r := range readers {
			if !atEnd(t, r) {
				t.Errorf("%d held: number %d is held although pid 1 is gone", count, i)
			}
		}
	}
}

// TestHold_ALockStays_FS54: the lock of an open file description is the sandbox's as long as pid 1 lives.
func TestHold_ALockStays_FS54(t *testing.T) {
	path := t.TempDir() + "/lock"
	lock := unix.Flock_t{Type: unix.F_WRLCK, Start: 5, Len: 1}
	open := func() *os.File {
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		return f
	}
	take := func(f *os.File) error { return unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, &lock) }
	owner, other := open(), open()
	if err := take(owner); err != nil {
		t.Fatal(err)
	}
	out, outw := heldPipe(t)
	in, inw := heldPipe(t)
	l := minimal(newProgram(t), "/bin/sh", "-c", `echo up; read x`)
	l.Stdin, l.Stdout, l.Stderr, l.Hold = in, outw, outw, []*os.File{owner}
	process, err := l.start()
	if err != nil {
		t.Fatal(err)
	}
	owner.Close()
	if _, err := io.ReadFull(out, make([]byte, 3)); err != nil {
		t.Fatal(err)
	}
	if err := take(other); !errors.Is(err, unix.EAGAIN) {
		t.Errorf("while the sandbox runs the lock can be taken: %v", err)
	}
	inw.Close()
	if _, err := process.Wait(); err != nil {
		t.Error(err)
	}
	if err := take(other); err != nil {
		t.Errorf("the sandbox has ended: %v", err)
	}
}

// TestHold_FailsClosed: a number of descriptors that pid 1 cannot take ends the start.
func TestHold_FailsClosed(t *testing.T) {
	_, w := heldPipe(t)
	many := make([]*os.File, maxFiles+1)
	for i := range many {
		many[i] = w
	}
	closed, _ := heldPipe(t)
	closed.Close()
	for name, list := range map[string][]*os.File{"too many": many, "closed": {w, closed}, "none": {nil}} {
		l := minimal(newProgram(t), "/bin/echo", "ran")
		l.Hold = list
		if out, _, err := run(t, l); err == nil || out != "" {
			t.Errorf("%s: %q, %v", name, out, err)
		}
	}
}

// TestHold_DoesNotMoveWhatTheProgramOpens: the program's own descriptors come after those that pid 1 holds, and are closed.
func TestHold_DoesNotMoveWhatTheProgramOpens(t *testing.T) {
	r, w := heldPipe(t)
	p := newProgram(t)
	number, _ := p.Buffer(8)
	p.Store(number, 0, p.Call("dup", "", unix.SYS_DUP, Int(1)))
	p.Expect("be", "behind what is held", number, 0, 1<<32-1, firstFree+2, unix.ERANGE)
	l := minimal(p, "/bin/sh", "-c", "exit 0")
	l.Hold = []*os.File{w, w}
	if _, st, err := run(t, l); err != nil || st.Code != 0 {
		t.Errorf("%v, %v", st, err)
	}
	w.Close()
	if !atEnd(t, r) {
		t.Error("something still holds the pipe")
	}
}
