package test

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/srt-sandbox/srt/probe"
	"github.com/srt-sandbox/srt/probe/probetest"
)

// Mode confined (docs/modes.md) end to end: where a container refuses namespaces, here by SRT_WITHOUT, which can only take away. The
// second way is that of Docker's default profile, which gives srt no copies of a command's sockets either.
var confinedWays = map[string]string{"no namespaces": "userns", "no copies of sockets": "userns,pidfd_getfd"}

// eachConfined runs a test as every account in mode confined.
func eachConfined(t *testing.T, f func(*testing.T, *box)) {
	t.Helper()
	probetest.NeedVersion(t, probe.Landlock, 6)
	for way, without := range confinedWays {
		for _, who := range accounts {
			t.Run(who.name+", "+way, func(t *testing.T) {
				b := newBox(t, who)
				b.env = append(b.env, "SRT_WITHOUT="+without)
				f(t, b)
			})
		}
	}
}

// weaker is a settings file that allows mode confined.
func weaker(c cfg) cfg {
	top := object{"enableWeakerNestedSandbox": true}
	for k, v := range c.top {
		top[k] = v
	}
	c.top = top
	return c
}

// binding adds network.allowLocalBinding.
func binding(c cfg) cfg {
	c.net = object{"allowLocalBinding": true}
	return weaker(c)
}

func TestConfined_OnlyWhereTheSettingsAllowIt(t *testing.T) {
	eachConfined(t, func(t *testing.T, b *box) {
		r := b.sh(cfg{aw: list{"."}}, "touch ran")
		if r.status == 0 || !strings.Contains(r.stderr, "enableWeakerNestedSandbox") {
			t.Errorf("without the setting: %v", r)
		}
		b.absent("ran")
		b.sh(weaker(cfg{aw: list{"."}}), "touch ran").ok()
		b.holds("ran", "")
	})
}

func TestConfined_FilesThatMayBeChangedAreAndOthersAreNot(t *testing.T) {
	eachConfined(t, func(t *testing.T, b *box) {
		b.repository(".")
		b.file("../outside/f", "host")
		b.file("kept", "host")
		b.file("kept-dir/f", "host")
		c := weaker(cfg{aw: list{"."}, dw: list{"kept", "kept-dir"}})
		refused := map[string]string{
			"write":          "echo x > ../outside/f",
			"append":         "echo x >> ../outside/f",
			"truncate":       "truncate -s 0 ../outside/f",
			"new":            "touch ../outside/new",
			"mkdir":          "mkdir ../outside/d",
			"unlink":         "rm -f ../outside/f",
			"rename away":    "mv ../outside/f ./stolen",
			"rename over":    "echo x > g; mv g ../outside/f",
			"chmod":          "chmod 777 ../outside/f",
			"touch":          "touch -d @0 ../outside/f",
			"link to it":     "ln ../outside/f alias && echo x > alias",
			"denied":         "echo x > kept",
			"denied, moved":  "mv kept kept2",
			"denied, in it":  "touch kept-dir/new",
			"denied, dir":    "mv kept-dir other-dir",
			"hook":           "echo x > .git/hooks/pre-commit",
			"git config":     "echo x >> .git/config",
			"mandatory":      "echo x > .bashrc",
			"mandatory, mv":  "echo x > q; mv q .bashrc",
			"mandatory, dir": "mkdir .vscode",
			"by descriptor":  "exec 3< ../outside/f; echo x > /proc/self/fd/3",
		}
		for name, text := range refused {
			if r := b.sh(c, text); r.status == 0 {
				t.Errorf("%s was possible: %v", name, r)
			}
		}
		b.holds("../outside/f", "host")
		b.holds("kept", "host")
		b.holds("kept-dir/f", "host")
		for _, path := range []string{"../outside/new", "../outside/d", "stolen", "kept-dir/new", "kept2", "other-dir", ".bashrc", ".vscode"} {
			b.absent(path)
		}
		b.sh(c, `set -e; echo a > f; mv f g; mkdir -p d/e; ln g d/e/h; ln -s g s; chmod 600 g; touch -d @0 g; mkfifo p; rm s p; cat d/e/h > i; rm -r d`).ok()
		b.holds("i", "a\n")
	})
}

func TestConfined_ReadingIsDenied(t *testing.T) {
	eachConfined(t, func(t *testing.T, b *box) {
		b.file("../secret/key", "host secret")
		b.file("../open/f", "open")
		c := weaker(cfg{aw: list{"."}, dr: list{filepath.Join(b.home, "secret")}})
		for name, text := range map[string]string{"file": "cat ../secret/key", "list": "ls ../secret", "by cwd": "cd ../secret && cat key",
			"by link": "ln -s ../secret/key l; cat l", "by root": "cat /proc/self/root" + b.home + "/secret/key"} {
			if r := b.sh(c, text); r.status == 0 || strings.Contains(r.stdout, "host secret") {
				t.Errorf("%s: %v", name, r)
			}
		}
		if r := b.sh(c, "cat ../open/f").ok(); r.stdout != "open" {
			t.Errorf("what is not denied: %v", r)
		}
	})
}

func TestConfined_WhatItCannotHoldIsRefusedWithEveryReason(t *testing.T) {
	eachConfined(t, func(t *testing.T, b *box) {
		b.file("a", "secret")
		b.file("b", "secret")
		r := b.sh(weaker(cfg{aw: list{"."}, dr: list{"a", "b"}}), "touch ran")
		if r.status == 0 || !strings.Contains(r.stderr, "filesystem.denyRead") || !strings.Contains(r.stderr, b.work+"/a") || !strings.Contains(r.stderr, b.work+"/b") {
			t.Errorf("denied reads within a write root: %v", r)
		}
		b.absent("ran")
	})
}

func TestConfined_Network(t *testing.T) {
	need(t, "curl", "python3")
	eachConfined(t, func(t *testing.T, b *box) {
		web := b.web()
		url := " http://localhost:" + web.port + "/x"
		allowed, other := weaker(cfg{allow: list{"localhost:" + web.port}}), weaker(cfg{allow: list{"localhost:1"}})
		for name, text := range map[string]string{
			"http":    byProxy + "curl -fsS" + url,
			"connect": byProxy + "curl -fsSp" + url,
			"socks":   byProxy + "curl -fsS -x $FTP_PROXY" + url,
			"python":  byProxy + `python3 -c 'import sys,urllib.request as u; print(u.urlopen(sys.argv[1]).read().decode())'` + url,
		} {
			if r := b.sh(allowed, text); r.status != 0 || !strings.HasPrefix(r.stdout, "hello") {
				t.Errorf("%s, allowed: %v", name, r)
			}
			if r := b.sh(other, text); r.status == 0 || strings.Contains(r.stdout, "hello") {
				t.Errorf("%s, off the list: %v", name, r)
			}
		}
		before := len(web.requests())
		for name, text := range map[string]string{
			"direct":           "curl -sS --noproxy '*'" + url,
			"direct, address":  "curl -sS --noproxy '*' http://127.0.0.1:" + web.port,
			"without a token":  "curl -fsS -x http://localhost:${HTTP_PROXY##*:} --noproxy ''" + url,
			"datagram":         `python3 -c 'import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("127.0.0.1", 53))'`,
			"fast open":        `python3 -c 'import socket,sys; socket.socket().sendto(b"GET / HTTP/1.0\r\n\r\n", 0x20000000, ("127.0.0.1", int(sys.argv[1])))' ` + web.port,
			"bind":             `python3 -c 'import socket; socket.socket().bind(("127.0.0.1", 0))'`,
			"listen, no bind":  `python3 -c 'import socket; socket.socket().listen()'`,
			"abstract":         `python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind("\0x")'`,
			"namespaces":       "unshare -Un true",
			"keys":             `python3 -c 'import ctypes; c=ctypes.CDLL(None,use_errno=True); exit(c.syscall(29,0x5eed,4096,0o1600) >= 0)' && exit 1; exit 1`,
			"signals to srt":   "kill -0 $PPID",
			"signals to outer": "kill -0 " + fmt.Sprint(os.Getpid()),
		} {
			if r := b.sh(allowed, text); r.status == 0 {
				t.Errorf("%s: %v", name, r)
			}
		}
		if got := len(web.requests()); got != before {
			t.Errorf("%d requests arrived past the proxy", got-before)
		}
	})
}

// A destination that is refused is reported as everywhere, by whichever way a program tried it.
func TestConfined_RefusalsAreReported(t *testing.T) {
	need(t, "curl")
	eachConfined(t, func(t *testing.T, b *box) {
		r := b.sh(weaker(cfg{}), byProxy+"curl -sS http://denied.test/; curl -sS --noproxy '*' --max-time 5 http://192.0.2.1:81/; touch /etc/x; exit 1")
		for _, want := range []string{"denied.test:80", "192.0.2.1:81", "/etc/x"} {
			if !strings.Contains(r.stderr, want) {
				t.Errorf("nothing says that %s was refused: %v", want, r)
			}
		}
	})
}

// With network.allowLocalBinding servers and tests that connect to themselves work.
func TestConfined_OwnListeners(t *testing.T) {
	need(t, "curl", "python3")
	eachConfined(t, func(t *testing.T, b *box) {
		web := b.web()
		server := `python3 -c '
import http.server, sys, threading, urllib.request
s = http.server.HTTPServer((sys.argv[1], 0), type("H", (http.server.BaseHTTPRequestHandler,), {"do_GET": lambda h: (h.send_response(204), h.end_headers())}))
threading.Thread(target=s.serve_forever, daemon=True).start()
print(s.server_address[0], urllib.request.build_opener(urllib.request.ProxyHandler({})).open("http://127.0.0.1:%d/" % s.server_port).status)' `
		for _, at := range []string{"127.0.0.1", "0.0.0.0", "''"} {
			if r := b.sh(binding(cfg{}), server+at); r.status != 0 || r.stdout != "127.0.0.1 204\n" {
				t.Errorf("a server at %s: %v", at, r)
			}
		}
		before := len(web.requests())
		if r := b.sh(binding(cfg{}), "curl -sS --noproxy '*' http://127.0.0.1:"+web.port); r.status == 0 || len(web.requests()) != before {
			t.Errorf("a listener of the host's: %v", r)
		}
	})
}

func TestConfined_UnixSockets(t *testing.T) {
	need(t, "python3")
	eachConfined(t, func(t *testing.T, b *box) {
		l, err := net.Listen("unix", filepath.Join(b.dir, "host.sock"))
		b.must(err)
		defer l.Close()
		b.must(os.Chmod(l.Addr().String(), 0o777))
		connect := `python3 -c 'import socket,sys; socket.socket(socket.AF_UNIX).connect(sys.argv[1])' `
		if r := b.sh(weaker(cfg{}), connect+l.Addr().String()); r.status == 0 {
			t.Errorf("the host's: %v", r)
		}
		c := weaker(cfg{})
		c.net = object{"allowUnixSockets": list{l.Addr().String()}}
		b.sh(c, connect+l.Addr().String()).ok()
		b.sh(weaker(cfg{aw: list{"."}}), `python3 -c '
import socket
s = socket.socket(socket.AF_UNIX); s.bind("own.sock"); s.listen()
c = socket.socket(socket.AF_UNIX); c.connect("own.sock")
a, _ = s.accept(); c.send(b"x"); assert a.recv(1) == b"x"'`).ok()
	})
}

func TestConfined_EverydayPrograms(t *testing.T) {
	need(t, "git", "gcc", "make", "python3")
	eachConfined(t, func(t *testing.T, b *box) {
		c := weaker(cfg{aw: list{".", b.dir + "/tmp"}})
		b.file("m.c", "#include <stdio.h>\nint main(void) { puts(\"built\"); }\n")
		b.file("Makefile", "m: m.c\n\tgcc -o m m.c\n")
		if r := b.sh(c, "make -s && ./m").ok(); r.stdout != "built\n" {
			t.Errorf("make: %v", r)
		}
		b.sh(c, `set -e
mkdir src; cd src; git init -q .; git config user.email a@b; git config user.name n
echo 1 > f; git add f; git commit -qm one; cd ..; git clone -q src copy; test "$(cat copy/f)" = 1; cd copy; echo 2 > f; git stash -q; git gc -q`).ok()
		b.sh(c, `python3 -c '
import os, subprocess, tempfile, multiprocessing
assert subprocess.run(["true"]).returncode == 0
with tempfile.TemporaryDirectory() as d: open(d + "/x", "w").close(); os.rename(d + "/x", d + "/y")
'`).ok()
		if r := b.sh(c, "exit 7"); r.status != 7 {
			t.Errorf("exit status: %v", r)
		}
		if r := b.sh(c, "kill -TERM $$"); r.status != 128+int(syscall.SIGTERM) {
			t.Errorf("death by a signal: %v", r)
		}
	})
}

// Whatever way srt ends, nothing of the command is left (CLI-17, CLI-18).
func TestConfined_NothingIsLeft(t *testing.T) {
	eachConfined(t, func(t *testing.T, b *box) {
		c := weaker(cfg{aw: list{"."}})
		b.sh(c, "sleep 60 & setsid sleep 60 & (sleep 60 &) ; exit 0").ok()
		b.deserted()
		for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGKILL} {
			_ = os.Remove(b.abs("up"))
			cmd := b.command(b.srt(c, "sh", "-c", "sleep 60 & setsid sleep 60 & touch up; sleep 60")...)
			wait := b.start(cmd)
			for end := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
				if _, err := os.Stat(b.abs("up")); err == nil {
					break
				} else if time.Now().After(end) {
					t.Fatal("the command did not start")
				}
			}
			b.must(cmd.Process.Signal(sig))
			wait()
			b.deserted()
		}
	})
}
