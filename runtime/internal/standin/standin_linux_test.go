package standin

import (
	"errors"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestDoorOf: no other words have a program stand in.
func TestDoorOf(t *testing.T) {
	if door, ok := doorOf(Args(3)); door != 3 || !ok {
		t.Errorf("%d, %v", door, ok)
	}
	for _, args := range [][]string{
		nil, {}, {Name}, {Name, ""}, {Name, "3"}, {Name, "descriptor="}, {Name, "descriptor=x"}, {Name, "descriptor=2"}, {Name, "descriptor=-3"},
		{Name, "descriptor=3", "more"}, {"/bin/" + Name, "descriptor=3"}, {"srt", "descriptor=3"}, {Name, "-descriptor=3"}, {Name, "descriptor=99999999999999999999"},
	} {
		if door, ok := doorOf(args); ok {
			t.Errorf("%q: %d", args, door)
		}
	}
}

func TestEnv(t *testing.T) {
	t.Setenv("SECRET", "x")
	t.Setenv("LD_LIBRARY_PATH", "")
	t.Setenv("GOCOVERDIR", "")
	if env := Env(); !slices.Equal(env, []string{"GOMAXPROCS=1"}) {
		t.Errorf("%q", env)
	}
	t.Setenv("LD_LIBRARY_PATH", "/lib/own")
	if env := Env(); !slices.Equal(env, []string{"GOMAXPROCS=1", "LD_LIBRARY_PATH=/lib/own"}) {
		t.Errorf("%q", env)
	}
}

// meet has this process be both sides.
func meet(t *testing.T, terminal bool) (c *Caller, link int) {
	t.Helper()
	door, theirs, err := Pair()
	if err != nil {
		t.Fatal(err)
	}
	defer door.Close()
	defer theirs.Close()
	if link, err = enter(int(theirs.Fd()), terminal); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(link) })
	if c, err = Accept(door); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c, link
}

func TestProtocol(t *testing.T) {
	c, link := meet(t, true)
	if !c.Terminal || c.PID != os.Getpid() || c.UID != os.Geteuid() || c.GID != os.Getegid() {
		t.Errorf("%+v", c)
	}
	for i, f := range c.Streams {
		var mine, theirs unix.Stat_t
		if err := errors.Join(unix.Fstat(i, &mine), unix.Fstat(int(f.Fd()), &theirs)); err != nil || mine.Ino != theirs.Ino || mine.Dev != theirs.Dev {
			t.Errorf("stream %d: %v, another file", i, err)
		}
	}
	if err := c.Started(true); err != nil {
		t.Error(err)
	}
	if m, ok := receive(link, 0); !ok || m != (message{kindStarted, 1, ""}) {
		t.Errorf("%v, %v", m, ok)
	}
	for _, junk := range []string{"x", "Kxx", "S\x01"} { // no signals
		_ = unix.Send(link, []byte(junk), 0)
	}
	_ = unix.Send(link, []byte{kindSignal, byte(unix.SIGTERM)}, 0)
	if sig, err := c.Signal(); sig != unix.SIGTERM || err != nil {
		t.Errorf("%v, %v", sig, err)
	}
	// What the session has left unread does not keep the end from arriving.
	_ = unix.Send(link, []byte{kindSignal, byte(unix.SIGHUP)}, 0)
	c.End(300&0xff, strings.Repeat("x", 2*maxText))
	c.Close()
	if m, ok := receive(link, 0); !ok || m.kind != kindEnd || m.value != 44 || len(m.text) != maxText {
		t.Errorf("%c, %d, %d bytes, %v", m.kind, m.value, len(m.text), ok)
	}
	if _, ok := receive(link, 0); ok {
		t.Error("a message after the end")
	}
}

func TestProtocol_GoneProcess(t *testing.T) {
	c, link := meet(t, false)
	if c.Terminal {
		t.Error("a terminal that was not given up")
	}
	_ = unix.Shutdown(link, unix.SHUT_RDWR)
	if sig, err := c.Signal(); !errors.Is(err, io.EOF) {
		t.Errorf("%v, %v", sig, err)
	}
}

func TestRefuse(t *testing.T) {
	door, theirs, err := Pair()
	if err != nil {
		t.Fatal(err)
	}
	defer theirs.Close()
	Refuse(door, 1, "why")
	if _, err := enter(int(theirs.Fd()), false); !errors.Is(err, unix.EPIPE) {
		t.Errorf("%v", err)
	}
	if m, ok := receive(int(theirs.Fd()), unix.MSG_DONTWAIT); !ok || m != (message{kindEnd, 1, "why"}) {
		t.Errorf("%v, %v", m, ok)
	}
	if _, err := Accept(door); !errors.Is(err, net.ErrClosed) {
		t.Errorf("%v", err)
	}
}

func TestIsDoor(t *testing.T) {
	stream, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer closeAll(stream[:])
	door, theirs, err := Pair()
	if err != nil {
		t.Fatal(err)
	}
	defer door.Close()
	defer theirs.Close()
	for fd, want := range map[int]bool{int(theirs.Fd()): true, stream[0]: false, 0: false, 9999: false} {
		if isDoor(fd) != want {
			t.Errorf("%d: %v", fd, !want)
		}
	}
}

// FuzzAccept: whatever a process sends, it is understood or refused, and no descriptor of it is left.
func FuzzAccept(f *testing.F) {
	f.Add([]byte{kindHello, 1}, 4)
	f.Add([]byte{kindHello, 0}, 3)
	f.Add([]byte{kindHello}, 4)
	f.Add([]byte("HH\x00"), 5)
	f.Add([]byte{kindEnd, 1}, 0)
	f.Fuzz(func(t *testing.T, text []byte, files int) {
		door, theirs, err := Pair()
		if err != nil {
			t.Fatal(err)
		}
		defer door.Close()
		defer theirs.Close()
		// The link is a socket; the streams may be anything, a socket as well.
		fds := slices.Repeat([]int{int(theirs.Fd())}, min(max(files, 0), 20))
		var rights []byte
		if len(fds) > 0 {
			rights = unix.UnixRights(fds...)
		}
		if _, err := unix.SendmsgN(int(theirs.Fd()), text, rights, nil, unix.MSG_DONTWAIT); err != nil {
			t.Skip("cannot be sent")
		}
		before := nextFile(t)
		c, err := Accept(door)
		proper := len(text) == 2 && text[0] == kindHello && len(fds) == callerFiles
		if (err == nil) != proper {
			t.Errorf("%q with %d descriptors: %v", text, len(fds), err)
		}
		if err == nil {
			if c.Terminal != (text[1] == 1) {
				t.Errorf("%q: %v", text, c.Terminal)
			}
			c.Close()
		} else if !errors.Is(err, ErrMalformed) && len(text) > 0 {
			t.Errorf("%q: %v", text, err)
		}
		if after := nextFile(t); after != before {
			t.Errorf("a descriptor is left: %d, then %d", before, after)
		}
	})
}

// nextFile is the lowest number that is free.
func nextFile(t *testing.T) int {
	t.Helper()
	fd, err := unix.Dup(0)
	if err != nil {
		t.Fatal(err)
	}
	unix.Close(fd)
	return fd
}
