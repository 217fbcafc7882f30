package escape

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestEscape_020_DirectoryDescriptor: CVE-2024-21626. No descriptor of the caller's leads the command out, and a
// directory as standard input is seen through the sandbox's own view (FS-46).
func TestEscape_020_DirectoryDescriptor(t *testing.T) {
	attacks := map[string][]call{
		"create beneath":  {{unix.SYS_OPENAT, 0, "new", unix.O_CREAT | unix.O_WRONLY, 0o644}},
		"write beneath":   {{unix.SYS_OPENAT, 0, "victim", unix.O_WRONLY | unix.O_TRUNC, 0}},
		"remove beneath":  {{unix.SYS_UNLINKAT, 0, "victim", 0}},
		"enter and write": {{unix.SYS_FCHDIR, 0}, {unix.SYS_OPENAT, at, "victim", unix.O_WRONLY | unix.O_TRUNC, 0}},
		"by magic link":   {{unix.SYS_OPENAT, at, "/proc/self/fd/0/victim", unix.O_WRONLY | unix.O_TRUNC, 0}},
		"rename in":       {{unix.SYS_OPENAT, at, "f", unix.O_CREAT | unix.O_WRONLY, 0o644}, {unix.SYS_RENAMEAT2, at, "f", 0, "victim", 0}},
		"rename out":      {{unix.SYS_RENAMEAT2, 0, "victim", at, "stolen", 0}},
		"mode":            {{unix.SYS_FCHMOD, 0, 0o700}},
		"times":           {{unix.SYS_UTIMENSAT, 0, 0, hex(make([]byte, 32)), 0}},
		"attribute":       {{unix.SYS_FSETXATTR, 0, "user.pwned", hex("1"), 1, 0}},
		"above":           {{unix.SYS_OPENAT, 0, "../out/new", unix.O_CREAT | unix.O_WRONLY, 0o644}},
		"link":            {{unix.SYS_LINKAT, 0, "victim", 0, "new", 0}},
		"descriptor 5":    {{unix.SYS_OPENAT, 5, "new", unix.O_CREAT | unix.O_WRONLY, 0o644}},
		"descriptor 5 by magic link": {{unix.SYS_CHDIR, "/proc/self/fd/5"}, {unix.SYS_OPENAT, at, "new", unix.O_CREAT | unix.O_WRONLY, 0o644},
			{unix.SYS_OPENAT, at, "/proc/self/fd/5/victim", unix.O_WRONLY | unix.O_TRUNC, 0}},
	}
	for name, calls := range attacks {
		t.Run(name, func(t *testing.T) {
			each(t, func(t *testing.T, w *world) {
				dir, err := os.Open(w.out)
				w.must(err)
				defer dir.Close()
				w.stdin, w.files = dir, []*os.File{dir, dir, dir}
				w.holds(script(calls...), "out")
			})
		})
	}
}

// TestEscape_021_InheritedDescriptor: no descriptor beyond the standard streams reaches the command. The attack also runs
// without a sandbox, to show that it would succeed: it must name no descriptor but those it was given.
func TestEscape_021_InheritedDescriptor(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		file, err := os.OpenFile(w.out+"/victim", os.O_RDWR, 0)
		w.must(err)
		defer file.Close()
		w.files = []*os.File{file, file, file, file, file, file, file}
		w.holds(`for n in 3 4 5 6 7 8 9; do eval "echo pwned >&$n"; done 2>/dev/null
for n in /proc/$$/fd/[3-9]; do echo pwned > $n; done 2>/dev/null`, "out")
	})
}

// TestEscape_048_OpenedBefore: a descriptor that was opened before the walls were up gives no more than it was opened
// for (FS-46).
func TestEscape_048_OpenedBefore(t *testing.T) {
	reading := map[string][]call{
		"mode":      {{unix.SYS_FCHMOD, 0, 0o600}},
		"times":     {{unix.SYS_UTIMENSAT, 0, 0, hex(make([]byte, 32)), 0}},
		"attribute": {{unix.SYS_FSETXATTR, 0, "user.pwned", hex("1"), 1, 0}},
		"truncate":  {{unix.SYS_TRUNCATE, "/proc/self/fd/0", 0}},
		"reopen":    {{unix.SYS_OPENAT, at, "/proc/self/fd/0", unix.O_WRONLY | unix.O_TRUNC, 0}},
		"dev/stdin": {{unix.SYS_OPENAT, at, "/dev/stdin", unix.O_RDWR | unix.O_TRUNC, 0}},
		"chmod":     {{unix.SYS_FCHMODAT, at, "/proc/self/fd/0", 0o600}},
		"link": {{unix.SYS_LINKAT, at, "/proc/self/fd/0", at, "stolen", unix.AT_SYMLINK_FOLLOW},
			{unix.SYS_OPENAT, at, "stolen", unix.O_WRONLY | unix.O_TRUNC, 0}},
	}
	for name, calls := range reading {
		t.Run("standard input "+name, func(t *testing.T) {
			each(t, func(t *testing.T, w *world) {
				file, err := os.Open(w.out + "/victim")
				w.must(err)
				defer file.Close()
				w.stdin = file
				w.holds(`[ -e $WORLD/home/not-there ] || `+script(calls...), "out")
			})
		})
	}
}

// TestEscape_048_DeviceMode: the device that stands for no input is the host's for everyone; a command of root must not
// change its mode or owner through the descriptor.
func TestEscape_048_DeviceMode(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		for _, name := range []string{"null", "zero", "full", "random", "urandom"} {
			before := describe("/dev/" + name)
			file, err := os.OpenFile("/dev/"+name, os.O_RDWR, 0)
			w.must(err)
			defer file.Close()
			info, err := file.Stat()
			w.must(err)
			w.stdin = file
			w.attack(call{unix.SYS_FCHMOD, 0, 0o600}, call{unix.SYS_FCHMODAT, at, "/proc/self/fd/0", 0o600}, call{unix.SYS_FCHOWN, 0, 7, 7},
				call{unix.SYS_FSETXATTR, 0, "security.pwned", hex("1"), 1, 0})
			if after := describe("/dev/" + name); after != before {
				t.Errorf("ESCAPE: /dev/%s was\n%s, is\n%s", name, before, after)
				w.must(os.Chown("/dev/"+name, 0, 0))
				w.must(os.Chmod("/dev/"+name, info.Mode().Perm()))
			}
		}
	})
}

// TestEscape_048_FifoMode: a FIFO that is read from keeps its mode.
func TestEscape_048_FifoMode(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		w.must(unix.Mkfifo(w.out+"/fifo", 0o600))
		w.own(w.out)
		file, err := os.OpenFile(w.out+"/fifo", os.O_RDONLY|unix.O_NONBLOCK, 0)
		w.must(err)
		defer file.Close()
		w.stdin = file
		w.holds(script(call{unix.SYS_FCHMOD, 0, 0o666}, call{unix.SYS_FCHMODAT, at, "/proc/self/fd/0", 0o666}), "out")
	})
}

// TestEscape_048_HiddenFileAsOutput: a file that is hidden cannot be read through a descriptor that only writes it.
func TestEscape_048_HiddenFileAsOutput(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		w.write("hidden/log", "top secret\n")
		w.settings.DenyRead = []string{w.dir + "/hidden"}
		w.settings.AllowWrite = append(w.settings.AllowWrite, w.dir+"/loot")
		w.must(mkdirFor(w, w.dir+"/loot"))
		attack := `cat < /proc/self/fd/1 > $WORLD/loot/got; cat <&1 >> $WORLD/loot/got; exec 5</dev/stdout; cat <&5 >> $WORLD/loot/got; true`
		for _, sandboxed := range []bool{true, false} {
			log, err := os.OpenFile(w.dir+"/hidden/log", os.O_WRONLY|os.O_APPEND, 0)
			w.must(err)
			defer log.Close()
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			defer cancel()
			cmd := w.command(ctx, "sh", "-c", attack)
			if sandboxed {
				cmd = w.srt(ctx, "sh", "-c", attack)
			}
			cmd.Stdout = log
			w.finish(cmd)
			if leaked := strings.Contains(w.read("loot/got"), "top secret"); leaked == sandboxed {
				t.Fatalf("sandboxed %v, read %v", sandboxed, leaked)
			}
		}
	})
}

// TestEscape_085_InheritedSocket: a socket of the host's as a standard stream cannot be turned to another peer.
func TestEscape_085_InheritedSocket(t *testing.T) {
	send := `import socket, ctypes
s = socket.socket(fileno=0)
print("INSIDE", flush=True)
`
	reconnect := "ctypes.CDLL(None).connect(0, (ctypes.c_char * 16)(), 16)\n"
	kinds := map[string]struct {
		family, kind int
		pair         bool
		script       string
	}{
		"udp":                     {unix.AF_INET, unix.SOCK_DGRAM, false, send + `s.sendto(b"pwned", ("127.0.0.1", PORT))`},
		"tcp, unconnected":        {unix.AF_INET, unix.SOCK_STREAM, false, send + `s.connect(("127.0.0.1", PORT)); s.send(b"pwned")`},
		"unix datagram pair":      {unix.AF_UNIX, unix.SOCK_DGRAM, true, send + `s.sendto(b"pwned", PATH)`},
		"unix datagram reconnect": {unix.AF_UNIX, unix.SOCK_DGRAM, true, send + reconnect + `s.connect(PATH); s.send(b"pwned")`},
		"unix stream":             {unix.AF_UNIX, unix.SOCK_STREAM, false, send + `s.connect(PATH); s.send(b"pwned")`},
		"unix stream pair":        {unix.AF_UNIX, unix.SOCK_STREAM, true, send + reconnect + `s.connect(PATH); s.send(b"pwned")`},
	}
	for name, k := range kinds {
		t.Run(name, func(t *testing.T) {
			each(t, func(t *testing.T, w *world) {
				target := listenFor(w, k.family, k.kind)
				code := strings.NewReplacer("PORT", fmt.Sprint(target.port), "PATH", "'"+target.path+"'").Replace(k.script)
				for _, sandboxed := range []bool{true, false} {
					reached := w.handSocket(k.family, k.kind, k.pair, sandboxed, code, target)
					if reached && sandboxed {
						t.Fatal("ESCAPE: the listener of the host was reached")
					}
					// The kernel itself holds a connected stream pair.
					if !reached && !sandboxed && name != "unix stream pair" {
						t.Error("the attack reaches nothing outside a sandbox either")
					}
				}
			})
		})
	}
}

// handSocket runs a python program with a socket as standard input and tells whether that reached the target.
func (w *world) handSocket(family, kind int, pair, sandboxed bool, code string, g *target) bool {
	w.t.Helper()
	var fds [2]int
	var err error
	if pair {
		fds, err = unix.Socketpair(family, kind, 0)
		defer unix.Close(fds[1])
	} else {
		fds[0], err = unix.Socket(family, kind, 0)
	}
	w.must(err)
	w.stdin = os.NewFile(uintptr(fds[0]), "socket")
	defer w.stdin.Close()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if sandboxed {
		w.finish(w.srt(ctx, "python3", "-c", code))
	} else {
		w.finish(w.command(ctx, "python3", "-c", code))
	}
	return g.reached()
}

// target is a listener of the host.
type target struct {
	fd, kind, port int
	path           string
}

// listenFor makes a listener on the host's loopback, or in out for unix sockets.
func listenFor(w *world, family, kind int) *target {
	w.t.Helper()
	fd, err := unix.Socket(family, kind|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	w.must(err)
	w.t.Cleanup(func() { unix.Close(fd) })
	g := &target{fd: fd, kind: kind, path: fmt.Sprintf("%s/sock%d", w.out, fd)}
	switch family {
	case unix.AF_UNIX:
		w.must(unix.Bind(fd, &unix.SockaddrUnix{Name: g.path}))
		w.must(os.Chmod(g.path, 0o777))
	default:
		w.must(unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}))
		sa, err := unix.Getsockname(fd)
		w.must(err)
		g.port = sa.(*unix.SockaddrInet4).Port
	}
	if kind == unix.SOCK_STREAM {
		w.must(unix.Listen(fd, 16))
	}
	return g
}

// reached tells whether anybody has connected or sent something since it was last asked. The attacker has ended by
// now, and what it did on this machine is done.
func (g *target) reached() bool {
	if g.kind == unix.SOCK_STREAM {
		fd, _, err := unix.Accept(g.fd)
		if err == nil {
			unix.Close(fd)
		}
		return err == nil
	}
	n, _, err := unix.Recvfrom(g.fd, make([]byte, 512), 0)
	return err == nil && n > 0
}
