package main

import (
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// channelEnds makes the descriptor that srt is given, inherited as from a shell (without close-on-exec), and the other end.
type channelEnds struct {
	fd   int
	peer *os.File
}

// inherited marks fd as a descriptor that a program begins with and closes it at the end of the test.
func inherited(t *testing.T, fd int) int {
	t.Helper()
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_SETFD, 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	return fd
}

func endsOf(t *testing.T, fd, peer int, err error) channelEnds {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	file := os.NewFile(uintptr(peer), "the writer's end")
	t.Cleanup(func() { file.Close() })
	return channelEnds{inherited(t, fd), file}
}

func pipeEnds(t *testing.T) channelEnds {
	t.Helper()
	var p [2]int
	err := unix.Pipe2(p[:], unix.O_CLOEXEC)
	return endsOf(t, p[0], p[1], err)
}

func socketEnds(kind int) func(*testing.T) channelEnds {
	return func(t *testing.T) channelEnds {
		t.Helper()
		p, err := unix.Socketpair(unix.AF_UNIX, kind|unix.SOCK_CLOEXEC, 0)
		return endsOf(t, p[0], p[1], err)
	}
}

func fifoEnds(mode int) func(*testing.T) channelEnds {
	return func(t *testing.T) channelEnds {
		t.Helper()
		path := filepath.Join(t.TempDir(), "fifo")
		if err := unix.Mkfifo(path, 0o600); err != nil {
			t.Fatal(err)
		}
		keep, err := unix.Open(path, unix.O_RDWR|unix.O_CLOEXEC, 0) // so that opening an end does not wait for the other
		if err != nil {
			t.Fatal(err)
		}
		defer unix.Close(keep)
		fd, err := unix.Open(path, mode|unix.O_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		peer, err := unix.Open(path, unix.O_WRONLY|unix.O_CLOEXEC, 0)
		return endsOf(t, fd, peer, err)
	}
}

func terminalEnds(t *testing.T) channelEnds {
	t.Helper()
	master, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetPointerInt(master, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	number, err := unix.IoctlGetInt(master, unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	fd, err := unix.Open("/dev/pts/"+strconv.Itoa(number), unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	return endsOf(t, fd, master, err)
}

// resetEnds is a TCP connection whose peer can reset it, which makes reading fail.
func resetEnds(t *testing.T) channelEnds {
	t.Helper()
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	client, err := net.Dial("tcp4", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	server, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	if err := server.(*net.TCPConn).SetLinger(0); err != nil {
		t.Fatal(err)
	}
	peer, err := server.(*net.TCPConn).File()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { peer.Close() })
	file, err := client.(*net.TCPConn).File()
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	fd, err := unix.FcntlInt(file.Fd(), unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		t.Fatal(err)
	}
	return channelEnds{inherited(t, fd), peer}
}

func openFlags(t *testing.T, path string, flags int) int {
	t.Helper()
	fd, err := unix.Open(path, flags|unix.O_CLOEXEC, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	return inherited(t, fd)
}

func TestDescriptorsThatAreNotUsable_CLI21(t *testing.T) {
	file := writeFile(t, filepath.Join(t.TempDir(), "file"), "")
	tests := []struct {
		name string
		fd   func(*testing.T) int
		want string
	}{
		{"closed", func(t *testing.T) int {
			fd, err := unix.Dup(0)
			if err != nil {
				t.Fatal(err)
			}
			unix.Close(fd)
			return fd
		}, "it is not open (EBADF)"},
		{"srt's own", func(t *testing.T) int {
			f, err := os.Open(file)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { f.Close() })
			return int(f.Fd())
		}, "it is not open (EBADF)"},
		{"write end of a pipe", func(t *testing.T) int {
			ends := pipeEnds(t)
			fd, err := unix.Dup(int(ends.peer.Fd()))
			if err != nil {
				t.Fatal(err)
			}
			return inherited(t, fd)
		}, "it is open for writing only"},
		{"file for appending", func(t *testing.T) int { return openFlags(t, file, unix.O_WRONLY|unix.O_APPEND) }, "it is open for writing only"},
		{"directory", func(t *testing.T) int { return openFlags(t, filepath.Dir(file), unix.O_RDONLY) }, "it is a directory (EISDIR)"},
		{"directory by O_PATH", func(t *testing.T) int { return openFlags(t, filepath.Dir(file), unix.O_PATH) }, "it is a directory (EISDIR)"},
		{"file by O_PATH", func(t *testing.T) int { return openFlags(t, file, unix.O_PATH) }, "it is not open for reading (O_PATH)"},
		{"for ioctl alone", func(t *testing.T) int { return openFlags(t, "/dev/null", unix.O_ACCMODE) }, "it is not open for reading"},
		{"epoll", func(t *testing.T) int {
			fd, err := unix.EpollCreate1(0)
			if err != nil {
				t.Fatal(err)
			}
			return inherited(t, fd)
		}, "it is neither a pipe, a socket, a file nor a terminal"},
		{"listening socket", func(t *testing.T) int {
			fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
			if err == nil {
				err = unix.Bind(fd, &unix.SockaddrUnix{})
			}
			if err == nil {
				err = unix.Listen(fd, 1)
			}
			if err != nil {
				t.Fatal(err)
			}
			return inherited(t, fd)
		}, "it is a socket that listens; hand over a connection"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			fd := tt.fd(t)
			want := "Error: --control-fd " + strconv.Itoa(fd) + " is not usable: " + tt.want +
				". Refusing to run the command without the control channel it asks for.\n"
			f := newFake()
			status, stdout, stderr := cli(t, f, "--control-fd", strconv.Itoa(fd), "true")
			if status != 1 || stdout != "" || stderr != want || len(f.calls) != 0 {
				t.Errorf("got %d, %q, %q, calls %v; want 1, nothing, %q, none", status, stdout, stderr, f.calls, want)
			}
		})
	}
}

// CLI-30: a stream of the command that is the channel as well would let the command take part in it.
func TestStandardStreamsThatAreTheChannel_CLI30(t *testing.T) {
	dup := func(t *testing.T, fd int) int {
		t.Helper()
		other, err := unix.Dup(fd)
		if err != nil {
			t.Fatal(err)
		}
		return inherited(t, other)
	}
	null := openFlags(t, "/dev/null", unix.O_RDWR)
	file := writeFile(t, filepath.Join(t.TempDir(), "file"), "")
	tests := []struct {
		name       string
		fd, stream func(t *testing.T, e channelEnds) int
		ends       func(*testing.T) channelEnds
		want       string // kind; empty for a stream that is another one
	}{
		{"pipe", nil, func(t *testing.T, e channelEnds) int { return dup(t, e.fd) }, pipeEnds, "pipe"},
		{"other end of a pipe", nil, func(_ *testing.T, e channelEnds) int { return int(e.peer.Fd()) }, pipeEnds, "pipe"},
		{"another pipe", nil, func(t *testing.T, _ channelEnds) int { return pipeEnds(t).fd }, pipeEnds, ""},
		{"FIFO opened twice", nil, func(_ *testing.T, e channelEnds) int { return int(e.peer.Fd()) }, fifoEnds(unix.O_RDONLY), "pipe"},
		{"socket", nil, func(t *testing.T, e channelEnds) int { return dup(t, e.fd) }, socketEnds(unix.SOCK_STREAM), "socket"},
		{"another socket", nil, func(t *testing.T, _ channelEnds) int { return socketEnds(unix.SOCK_STREAM)(t).fd }, socketEnds(unix.SOCK_STREAM), ""},
		{"terminal", nil, func(t *testing.T, e channelEnds) int { return dup(t, e.fd) }, terminalEnds, "terminal"},
		{"another terminal", nil, func(t *testing.T, _ channelEnds) int { return terminalEnds(t).fd }, terminalEnds, ""},
		{"null device", func(*testing.T, channelEnds) int { return null }, func(*testing.T, channelEnds) int { return null }, pipeEnds, ""},
		{"file opened twice", func(t *testing.T, _ channelEnds) int { return openFlags(t, file, unix.O_RDONLY) },
			func(t *testing.T, _ channelEnds) int { return openFlags(t, file, unix.O_WRONLY) }, pipeEnds, "file"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			e := tt.ends(t)
			in := &descriptorInput{fd: e.fd}
			if tt.fd != nil {
				in.fd = tt.fd(t, e)
			}
			if reason := in.inspect(); reason != "" {
				t.Fatal(reason)
			}
			got := in.refuseShared([3]int{null, tt.stream(t, e), null})
			if tt.want == "" && got != "" || tt.want != "" && !strings.HasPrefix(got, "standard output is the same "+tt.want+",") {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
}

// CLI-30: what the channel can be opened by is kept from commands.
func TestNameOfTheChannel_CLI30(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	file := writeFile(t, filepath.Join(dir, "file"), "")
	removed := openFlags(t, writeFile(t, filepath.Join(dir, "removed"), ""), unix.O_RDONLY)
	replaced := openFlags(t, writeFile(t, filepath.Join(dir, "replaced"), ""), unix.O_RDONLY)
	bound, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	inherited(t, bound)
	if err := errors.Join(os.Remove(filepath.Join(dir, "removed")), os.Remove(filepath.Join(dir, "replaced")),
		unix.Bind(bound, &unix.SockaddrUnix{Name: filepath.Join(dir, "socket")})); err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(dir, "replaced"), "another")
	fifo := fifoEnds(unix.O_RDWR)(t)
	link, err := os.Readlink("/proc/self/fd/" + strconv.Itoa(fifo.fd))
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name string
		fd   int
		want string
	}{
		{"file", openFlags(t, file, unix.O_RDONLY), file},
		{"FIFO", fifo.fd, link},
		{"bound socket", bound, filepath.Join(dir, "socket")},
		{"removed file", removed, ""},
		{"replaced file", replaced, ""},
		{"pipe", pipeEnds(t).fd, ""},
		{"socket pair", socketEnds(unix.SOCK_STREAM)(t).fd, ""},
		{"terminal", terminalEnds(t).fd, ""},
	}
	for _, tt := range tests {
		in, got, err := openDescriptor(tt.fd)
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		in.stop()
		if got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
		if _, _, err := in.read(); !errors.Is(err, errControlStopped) {
			t.Errorf("%s: read after stop: %v", tt.name, err)
		}
	}
}

func TestMessages_CLI21(t *testing.T) {
	for name, kind := range map[string]int{"datagrams": unix.SOCK_DGRAM, "seqpacket": unix.SOCK_SEQPACKET} {
		t.Run(name, func(t *testing.T) {
			e := socketEnds(kind)(t)
			in, _, err := openDescriptor(e.fd)
			if err != nil {
				t.Fatal(err)
			}
			defer in.stop()
			long := strings.Repeat("y", controlBuffer+controlBuffer/2) // more than a read of a stream takes
			sent := []string{"a", "", long, "", "b\n"}
			for _, m := range sent {
				if _, err := unix.Write(int(e.peer.Fd()), []byte(m)); err != nil {
					t.Fatal(err)
				}
			}
			if kind == unix.SOCK_SEQPACKET {
				e.peer.Close() // an end of input that follows on empty messages
			}
			for _, want := range []string{"a", long, "b\n"} {
				data, whole, err := in.read()
				if err != nil || !whole || string(data) != want {
					t.Fatalf("%d bytes %.10q, whole %v, %v; want %d bytes %.10q", len(data), data, whole, err, len(want), want)
				}
			}
			if kind != unix.SOCK_SEQPACKET {
				return // nothing tells that the last sender of datagrams is gone
			}
			if _, _, err := in.read(); !errors.Is(err, io.EOF) {
				t.Errorf("%v, want the end of input", err)
			}
		})
	}
}
