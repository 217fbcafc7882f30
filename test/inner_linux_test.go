package test

import (
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// srt inside srt: the inner policy and the outer one both hold, whichever is wider.

// outer lets an srt inside make namespaces.
func outer(c cfg) cfg {
	c.top = object{"allowNestedUserNamespaces": true, "enableWeakerNestedSandbox": true}
	return c
}

// inner is what the last srt of a chain has: it has no listener of its own, since the outer one has it, and its /proc is the outer's.
func inner(c cfg) cfg {
	c.top = object{"enableWeakerNestedSandbox": true}
	return c
}

// chain is a command line with one srt inside the other.
func (b *box) chain(cfgs []cfg, args ...string) []string {
	b.t.Helper()
	for _, c := range slices.Backward(cfgs) {
		args = b.srt(c, args...)
	}
	return args
}

// TestInner_Refused: without leave of the outer one there are no namespaces, and the inner one says what to set there.
func TestInner_Refused(t *testing.T) {
	each(t, func(t *testing.T, b *box) {
		b.host(b.chain([]cfg{{aw: list{b.work}}, inner(cfg{})}, "touch", "ran")...).fails().says("allowNestedUserNamespaces")
		b.absent("ran")
		// With leave, but its own settings want the outer's processes hidden, which takes a listener.
		b.host(b.chain([]cfg{outer(cfg{aw: list{b.work}}), {}}, "touch", "ran")...).fails().says("enableWeakerNestedSandbox")
		b.absent("ran")
	})
}

// TestInner_Files: two and three levels; what either denies is denied, by calls that the outer broker performs as well.
func TestInner_Files(t *testing.T) {
	need(t, "python3")
	each(t, func(t *testing.T, b *box) {
		for _, levels := range []int{2, 3} {
			t.Run(fmt.Sprint(levels), func(t *testing.T) {
				b := newBox(t, b.who)
				b.file("in/f", "f")
				b.file("in/keep/f", "kept")
				b.file("out/f", "f")
				b.file("hidden/f", "secret of the outer")
				b.file(b.home+"/elsewhere/f", "f")
				b.must(unix.Mkfifo(b.abs("out/fifo"), 0o666))
				b.must(os.Chown(b.abs("out/fifo"), b.who.uid, b.who.gid))
				cfgs := []cfg{outer(cfg{aw: list{b.work}, dr: list{b.abs("hidden")}})}
				if levels == 3 {
					cfgs = append(cfgs, outer(cfg{aw: list{b.work}}))
				}
				cfgs = append(cfgs, inner(cfg{aw: list{b.abs("in"), b.home + "/elsewhere"}, ar: list{b.abs("hidden")}, dw: list{b.abs("in/keep"), b.abs("in/later")}}))
				b.host(b.chain(cfgs, "python3", "-c", innerAttack)...).ok().prints("tried")
				b.innerHeld()
			})
		}
	})
}

// innerHeld tells whether innerAttack has done what it may, and no more.
func (b *box) innerHeld() {
	b.t.Helper()
	for path, want := range map[string]string{"in/f": "f", "in/keep/f": "kept", "out/f": "f", b.home + "/elsewhere/f": "f", "in/made": "made", "in/moved": "made"} {
		b.holds(path, want)
	}
	for _, path := range []string{"in/gone", "in/keep/x", "out/x", "in/later", "out/moved", b.home + "/elsewhere/x", b.home + "/x"} {
		b.absent(path)
	}
}

// innerAttack tries everything from the innermost command. What may be done comes first.
const innerAttack = `
import os, sys
def made(path):
    with open(path, "x") as f: f.write("made")
made("in/made"); made("in/tmp"); os.rename("in/tmp", "in/moved"); os.link("in/moved", "in/second"); os.mkdir("in/dir"); os.symlink("../f", "in/dir/link")
fd = os.open("/dev/null", os.O_WRONLY | os.O_CREAT); os.write(fd, b"x")
def refused(what, f):
    try: got = f()
    except OSError: return
    print("DONE", what, got)
home = os.path.dirname(os.getcwd())
for d in ("out", "in/keep", home + "/elsewhere", home):
    refused("create " + d, lambda: made(d + "/x"))
    refused("mkdir " + d, lambda: os.mkdir(d + "/x"))
    refused("symlink " + d, lambda: os.symlink("x", d + "/x"))
    refused("mkfifo " + d, lambda: os.mkfifo(d + "/x"))
    refused("link " + d, lambda: os.link("in/f", d + "/x"))
    refused("rename " + d, lambda: os.rename("in/f", d + "/x"))
    refused("write " + d, lambda: open(d + "/f", "w"))
    refused("append " + d, lambda: open(d + "/f", "a"))
    refused("truncate " + d, lambda: os.truncate(d + "/f", 0))
    refused("remove " + d, lambda: os.unlink(d + "/f"))
refused("rename the denied", lambda: os.rename("in/keep", "in/gone"))
refused("replace the denied", lambda: (os.mkdir("in/empty"), os.rename("in/empty", "in/keep"))[0])
refused("replace what is in it", lambda: os.rename("in/made", "in/keep/f"))
refused("rename what holds it", lambda: os.rename("in", "gone"))
refused("exchange", lambda: os.rename("in/keep/f", "out/moved"))
refused("link out of it", lambda: os.link("in/keep/f", "in/gone"))
refused("what is denied and not there", lambda: made("in/later"))
for flags in (os.O_WRONLY, os.O_RDWR, os.O_WRONLY | os.O_CREAT, os.O_RDWR | os.O_CREAT):
    refused("a FIFO", lambda: os.open("out/fifo", flags | os.O_NONBLOCK))
    refused("a device", lambda: os.open("/dev/kmsg", flags | os.O_NONBLOCK))
for path in ("hidden/f", home + "/hidden/f"):
    refused("what the outer hides", lambda: open(path).read())
for path in ("/etc/passwd", "/proc/sys/kernel/hostname", "/sys/kernel/uevent_seqnum"):
    refused("the system " + path, lambda: open(path, "a"))
print("tried")
`

// TestInner_Hosts: proxies chain by the environment, and a host is reached if every level allows it.
func TestInner_Hosts(t *testing.T) {
	need(t, "curl")
	each(t, func(t *testing.T, b *box) {
		web := b.web() // the proxy behind the outer one: nothing has to be looked up
		net := object{"parentProxy": object{"http": "http://127.0.0.1:" + web.port}}
		all := list{"a.test", "b.test", "c.test"}
		for _, levels := range [][]cfg{
			{outer(cfg{allow: list{"a.test", "b.test"}, net: net}), inner(cfg{allow: list{"b.test", "c.test"}})},
			{outer(cfg{allow: list{"a.test", "b.test"}, net: net}), outer(cfg{allow: all}), inner(cfg{allow: list{"b.test", "c.test"}})},
			{outer(cfg{allow: all, net: net}), outer(cfg{allow: list{"a.test", "b.test"}}), inner(cfg{allow: list{"b.test", "c.test"}})},
		} {
			before := len(web.requests())
			r := b.host(b.chain(levels, "sh", "-c", `for h in a b c; do curl -fsS http://$h.test/; echo " $h $?"; done; curl -sS --noproxy "*" -m 5 http://127.0.0.1:`+web.port+`/ || echo shut`)...)
			if !strings.Contains(r.stdout, "hello  b 0\n") || strings.Count(r.stdout, "hello") != 1 || !strings.Contains(r.stdout, "shut") {
				t.Errorf("%d levels: %v", len(levels), r)
			}
			for _, req := range web.requests()[before:] {
				if req.Host != "b.test" {
					t.Errorf("%d levels: %s has been asked for", len(levels), req.Host)
				}
			}
		}
	})
}

// TestInner_Processes: the inner command sees nothing of the outer one's secrets, signals nothing of it, and reaches no socket of it.
func TestInner_Processes(t *testing.T) {
	need(t, "python3")
	each(t, func(t *testing.T, b *box) {
		l, err := net.Listen("unix", b.abs("host.sock"))
		b.must(err)
		b.t.Cleanup(func() { l.Close() })
		script := `sleep 600 & export PID=$! OUTER=secretOfTheOuter; kill -0 $PID || exit 1
` + strings.Join(quoted(b.srt(inner(cfg{}), "python3", "-c", `
import os, signal, socket
for n in [p for p in os.listdir("/proc") if p.isdigit()]:
    for f in ("environ", "maps", "mem", "root/etc/passwd", "cwd/.", "fd/0"):
        try: text = open("/proc/%s/%s" % (n, f), "rb").read(1 << 16)
        except OSError: continue
        if b"OUTER=" in text and "OUTER" not in os.environ: print("READ", n, f)
    if int(n) != os.getpid():
        try: os.kill(int(n), signal.SIGKILL)
        except OSError: pass
try: os.kill(int(os.environ["PID"]), signal.SIGKILL); print("KILLED")
except OSError: pass
for name in ("host.sock",):
    try: s = socket.socket(socket.AF_UNIX); s.connect(name); print("CONNECTED")
    except OSError: pass
print("tried")`)), " ") + `
kill -0 $PID && echo alive; kill $PID`
		b.host(b.srt(outer(cfg{aw: list{b.work}}), "sh", "-c", script)...).ok().prints("tried\nalive")
	})
}

// quoted are words for a shell.
func quoted(words []string) (list []string) {
	for _, w := range words {
		list = append(list, "'"+strings.ReplaceAll(w, "'", `'\''`)+"'")
	}
	return list
}

// innerPair is one srt in the other, each without some features (SRT_WITHOUT), or masked around both.
type innerPair struct {
	outer, inner string
	masked       bool
	refused      string // a part of the error; empty: the command runs
}

// innerPairs are the pairs in which one of the two is in mode confined. A process has one listener, so that the inner one is that only where
// the outer one takes none; and a confined one lets nothing inside make namespaces.
var innerPairs = []innerPair{
	{outer: "userns", refused: "has to be in mode full or nested"},
	{outer: "userns", inner: "userns", refused: "listens to this process already"},
	{outer: "userns,pidfd_getfd", inner: "notify", refused: "has to be in mode full or nested"},
	{inner: "userns", refused: "listens to this process already"},
	{inner: "userns", masked: true, refused: "listens to this process already"},
	{outer: "notify", inner: "userns"},
	{outer: "notify", inner: "userns,pidfd_getfd"},
	{outer: "notify", inner: "userns", masked: true, refused: "counts processes as another pid namespace"},
	{outer: "notify"},               // full, and the inner one has the listener
	{outer: "notify", masked: true}, // nested both, and nobody has one: in the /proc of the container the inner one could not tell whose calls it got
}

// TestInner_Confined: both policies hold in such a pair, or nothing runs and the reason is told.
func TestInner_Confined(t *testing.T) {
	need(t, "python3")
	each(t, func(t *testing.T, b *box) {
		for _, pair := range innerPairs {
			t.Run(fmt.Sprintf("%+v", pair), func(t *testing.T) {
				if pair.masked && pair.outer == "notify" && os.Getuid() != 0 {
					// The outer one keeps placeholders, and user id 0 of a namespace that an ordinary user made is not whom /var/lib belongs to.
					t.Skipf("needs uid 0 to mask a /proc for another user, have %d; the run as root covers it", os.Getuid())
				}
				b := newBox(t, b.who)
				b.file("in/f", "f")
				b.file("in/keep/f", "kept")
				b.file("out/f", "f")
				b.file(b.home+"/hidden/f", "secret of the outer")
				b.file(b.home+"/elsewhere/f", "f")
				b.must(unix.Mkfifo(b.abs("out/fifo"), 0o666))
				b.must(os.Chown(b.abs("out/fifo"), b.who.uid, b.who.gid))
				around := outer(cfg{aw: list{b.work}, dr: list{b.home + "/hidden"}})
				within := inner(cfg{aw: list{b.abs("in"), b.home + "/elsewhere"}, ar: list{b.home + "/hidden"}, dw: list{b.abs("in/keep"), b.abs("in/later")}})
				line := append([]string{"env", "SRT_WITHOUT=" + pair.inner}, b.srt(within, "python3", "-c", innerAttack)...)
				line = append([]string{"env", "SRT_WITHOUT=" + pair.outer}, b.srt(around, line...)...)
				run := b.host
				if pair.masked {
					run = b.masked
				}
				if pair.refused != "" {
					run(line...).fails().says(pair.refused)
					b.absent("in/made")
					return
				}
				run(line...).ok().prints("tried")
				b.innerHeld()
			})
		}
	})
}

// TestInner_InContainer: the outer one is in mode nested itself, with its guard and without.
func TestInner_InContainer(t *testing.T) {
	each(t, func(t *testing.T, b *box) {
		b.mkdir("in", 0o755)
		guarded := cfg{aw: list{b.work}, top: object{"allowNestedUserNamespaces": true}}
		for _, around := range []cfg{guarded, outer(cfg{aw: list{b.work}})} {
			b.masked(b.chain([]cfg{around, inner(cfg{aw: list{b.abs("in")}})}, "sh", "-c",
				"echo x > in/made && rm in/made && ! touch out 2>/dev/null && read -r name < /proc/self/comm && echo $name")...).ok().prints("sh")
		}
		b.absent("out")
	})
}
