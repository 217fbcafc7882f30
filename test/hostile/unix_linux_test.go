package hostile

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/srt-sandbox/srt/test/programs/stage"
)

// TestNET80_WaysToASocket: a socket of the host is not reached by any path, and the sandbox's own are.
func TestNET80_WaysToASocket(t *testing.T) {
	w := newWorld(t)
	stage.Each(t, func(s *stage.Stage) {
		h := w.hostSocket(s, "host.sock")
		name := fmt.Sprintf("srt-hostile-%d", os.Getpid())
		abstract := listenAbstract(s, name)
		for _, allowed := range [][]string{nil, {s.Work + "/another.sock", s.Home + "/elsewhere"}} {
			r := w.run(s, rules{Network: map[string]any{"allowUnixSockets": list(allowed)}}, "env", "-C", s.Work, "/usr/bin/python3", w.dir+"/unix.py", h.path, name)
			wantLines(s.T, r, waysToASocket)
			h.untouched(s)
			abstract.untouched(s)
			s.Clear()
			h = w.hostSocket(s, "host.sock")
		}
	})
}

const waysToASocket = `path EACCES
seqpacket EACCES
non-blocking EACCES
relative EACCES
symbolic link EACCES
hard link EACCES
link to its directory EACCES
by dot dot EACCES
by descriptor EACCES
by descriptor of its directory EACCES
by root EACCES
by working directory EACCES
by thread EACCES
by pid 1 EACCES
renamed EACCES
in place of our own EACCES
after many of our own EACCES
bind over it EADDRINUSE
connected again EACCES
sendto of a stream EISCONN
sendto of seqpacket ok
sendmsg ENOTSUP
abstract ECONNREFUSED
abstract with its path ECONNREFUSED
the longest address EACCES
another family EINVAL
no family EINVAL
another root 0
passed on EACCES
own ({b'stolen'}, True, True)
`

// listenAbstract makes a socket of the host with a name that no file system has.
func listenAbstract(s *stage.Stage, name string) *hostSocket {
	s.T.Helper()
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	s.Must(err)
	s.T.Cleanup(func() { unix.Close(fd) })
	s.Must(unix.Bind(fd, &unix.SockaddrUnix{Name: "@" + name}))
	s.Must(unix.Listen(fd, 16))
	return &hostSocket{fd: fd, path: "@" + name}
}

// TestNET80_SocketReplaced: a socket file is judged as the object that is then connected to, not by its name.
func TestNET80_SocketReplaced(t *testing.T) {
	w := newWorld(t)
	stage.Each(t, func(s *stage.Stage) {
		h := w.hostSocket(s, "host.sock")
		r := w.run(s, rules{}, w.dir+"/swap", h.path, s.Work+"/own.sock", strconv.Itoa(10*defaultTries))
		line := done(s.T, r)[0]
		s.T.Log(line)
		var made, connected, refused, failed int
		if _, err := fmt.Sscanf(line, "tries %d connected %d refused %d failed %d", &made, &connected, &refused, &failed); err != nil || connected == 0 || refused == 0 {
			s.T.Errorf("want both connections and refusals: %v", r)
		}
		h.untouched(s)
	})
}

// TestNET80_AllowedSocketReplaced: the host's other sockets do not become allowed when a link with the name of an allowed
// one leads to them.
func TestNET80_AllowedSocketReplaced(t *testing.T) {
	newWorld(t).replaced(t, `os.symlink(other, allowed + ".link")
put(lambda: os.rename(allowed + ".link", allowed))
os.unlink(allowed); os.link(other, allowed)
put(lambda: None)
os.unlink(allowed); os.symlink("/proc/self/root" + other, allowed)
put(lambda: None)`)
}

// TestNET80_AllowedSocketRenamed: nor when they get that name, which a command can give them where it may write.
func TestNET80_AllowedSocketRenamed(t *testing.T) {
	newWorld(t).replaced(t, `put(lambda: os.rename(other, allowed))`)
}

// replaced runs a program of python that puts something in the place of the allowed socket.
func (w *world) replaced(t *testing.T, code string) {
	stage.Each(t, func(s *stage.Stage) {
		allowed, other := w.hostSocket(s, "allowed.sock"), w.hostSocket(s, "other.sock")
		r := w.python(s, rules{Network: map[string]any{"allowUnixSockets": []string{allowed.path}}}, `
allowed, other = sys.argv[1:]
def to(path):
    s = socket.socket(UNIX, TCP); s.connect(path)
say("allowed", lambda: to(allowed))
say("other", lambda: to(other))
def put(f):
    f()
    try: to(allowed)
    except OSError: pass
`+code+`
done()`, allowed.path, other.path)
		wantLines(s.T, r, "allowed ok\nother EACCES")
		if !allowed.reached(s) {
			s.T.Error("the allowed socket was not reached")
		}
		other.untouched(s)
	})
}

// TestNET80_OtherSandboxes: a sandbox does not reach the sockets of another one of the same user.
func TestNET80_OtherSandboxes(t *testing.T) {
	w := newWorld(t)
	stage.Each(t, func(s *stage.Stage) {
		settings := w.settings(s, rules{})
		path := s.Work + "/other.sock"
		cmd := s.Command(plain(s.Srt(settings, "/usr/bin/python3", "-c", `
import socket, sys, os
l = socket.socket(socket.AF_UNIX); l.bind(sys.argv[1]); l.listen(4)
open(sys.argv[1] + ".ready", "w").close()
l.settimeout(60)
c, _ = l.accept(); print("reached by", c.recv(100), flush=True)`, path))...)
		var out strings.Builder
		cmd.Stdout, cmd.Stderr = &out, &out
		in, err := cmd.StdinPipe()
		s.Must(err)
		defer in.Close()
		s.Must(cmd.Start())
		s.Eventually(func() string {
			if _, err := os.Stat(path + ".ready"); err != nil {
				return "the other sandbox does not listen: " + out.String()
			}
			return ""
		})
		r := w.python(s, rules{}, `
def to(path):
    s = socket.socket(UNIX, TCP); s.connect(path); s.send(b"stolen")
say("path", lambda: to(sys.argv[1]))
os.link(sys.argv[1], sys.argv[1] + "2")
say("link", lambda: to(sys.argv[1] + "2"))
done()`, path)
		s.Must(cmd.Process.Kill())
		_ = cmd.Wait() // it was killed
		wantLines(s.T, r, "path EACCES\nlink EACCES")
		if strings.Contains(out.String(), "reached") {
			s.T.Errorf("ESCAPE: %s", out.String())
		}
	})
}

// TestNET80_Credentials: an allowed socket of the host is told who connects (SO_PEERCRED), and no other user, whatever the
// program says.
func TestNET80_Credentials(t *testing.T) {
	w := newWorld(t)
	stage.Each(t, func(s *stage.Stage) {
		h := w.hostSocket(s, "allowed.sock")
		r := w.python(s, rules{Network: map[string]any{"allowUnixSockets": []string{h.path}}}, `
s = socket.socket(UNIX, TCP); s.connect(sys.argv[1])
for pid, uid in ((1, 0), (os.getpid(), 0), (1, os.getuid()), (os.getpid(), 12345)):
    try: s.sendmsg([b"x"], [(1, 2, struct.pack("=iII", pid, uid, uid))])
    except OSError: pass
print("said"); done()`, h.path)
		wantLines(s.T, r, "said")
		fd, _, err := unix.Accept4(h.fd, unix.SOCK_CLOEXEC)
		s.Must(err)
		defer unix.Close(fd)
		c, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
		s.Must(err)
		if int(c.Uid) != s.Who.UID || int(c.Gid) != s.Who.GID {
			s.T.Errorf("the peer is %+v, want user %d and group %d", c, s.Who.UID, s.Who.GID)
		}
	})
}
