package hostile

import (
	"os"
	"strings"
	"testing"

	"github.com/srt-sandbox/srt/test/programs/stage"
)

// TestNET83_NestedNetworks: a command that may have namespaces of its own and is root in them, with a network that it sets
// up as it likes, reaches no more than without.
func TestNET83_NestedNetworks(t *testing.T) {
	stage.Need(t, "unshare")
	w := newWorld(t)
	const attack = `
import subprocess
if len(sys.argv) == 1:
    script = open("/proc/self/cmdline").read().split("\0")[2]
    other = ["setpriv", "--reuid=1000", "--regid=1000", "--clear-groups"] if os.getuid() == 0 else []  # root lacks CAP_SETFCAP to map itself
    subprocess.run(other + ["unshare", "-Urn", "sh", "-c", "ip link set lo up; ip link add d0 type veth peer name d1; ip link set d1 up; ip addr add 10.203.7.7/16 dev d0; ip link set d0 up; ip route add default via 10.203.7.8; ip neigh add 10.203.7.8 lladdr 02:00:00:00:00:01 dev d0; ip route add local 127.0.0.0/8 dev lo; exec \"$@\"", "sh", sys.executable, "-c", script, "nested"])
else:
    # A network of its own answers as it is set up: by nobody, so that nothing is waited for.
    wanted = (errno.EACCES, errno.ECONNREFUSED, errno.EHOSTUNREACH, errno.ENETUNREACH, errno.EIO, errno.ETIMEDOUT, errno.ECONNABORTED, errno.EINPROGRESS, errno.EAGAIN)
    def blocking(host, port, family):
        s = socket.socket(family, TCP); s.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", 0, 50000)); s.connect((host, port))
    def waiting(host, port, family):
        s = socket.socket(family, TCP); s.settimeout(.05); s.connect((host, port))
    def attempt(make, host, port, family):
        try: make(host, port, family); print("connected", host, port)
        except TimeoutError: pass
        except OSError as e:
            if e.errno not in wanted: print(host, port, name(e))
    for host in (BAD, BAD6, "10.203.255.1", "10.203.7.8", "127.0.0.1", "8.8.8.8"):
        for port in (7, 80, 1081, 1082, 3128):
            for make in (blocking, waiting): attempt(make, host, port, INET6 if ":" in host else INET)
    for host in (BAD, "8.8.8.8", "10.203.255.2"):
        try: socket.socket(INET, UDP).sendto(b"stolen", (host, 53))
        except OSError: pass
    try: socket.socket(INET, TCP).sendto(b"stolen", 0x20000000, (BAD, 7)); print("fast open")
    except OSError: pass
    for kind in ((INET, socket.SOCK_RAW, 255), (17, 3, 3)):
        try: socket.socket(*kind); print("made", kind)
        except OSError: pass
    attempt(waiting, GOOD, 7, INET)
    print("nested")
    sys.exit()
print(banner(tcp(GOOD)))
done()`
	stage.Each(t, func(s *stage.Stage) {
		w.silent(s.T, func() {
			r := w.python(s, rules{Allow: []string{good + ":7"}, Top: map[string]any{"allowNestedUserNamespaces": true}}, attack)
			wantLines(s.T, r, "nested\n"+good+":7")
			if r.Stderr != "" {
				s.T.Logf("srt said:\n%.2000s", r.Stderr)
			}
		}, good+":7")
	})
}

// TestNET88_WaitingConnects: connections within the sandbox that nobody answers do not keep others from being made.
func TestNET88_WaitingConnects(t *testing.T) {
	w := newWorld(t)
	const attack = `
l = socket.socket(INET, TCP); l.bind(("127.0.0.1", 0)); l.listen(0)
held = [socket.socket(INET, TCP | socket.SOCK_NONBLOCK) for _ in range(4)]
for s in held: s.connect_ex(l.getsockname())
def wait():
    s = socket.socket(INET, TCP); held.append(s)
    try: s.connect(l.getsockname())
    except OSError: pass
for _ in range(300): threading.Thread(target=wait, daemon=True).start()
while len(held) < 304: time.sleep(.01)
print(banner(tcp(GOOD)))
s = nonblocking(GOOD); settled(s); s.setblocking(True); print(banner(s))
print("DONE", flush=True); os._exit(0)`
	stage.Each(t, func(s *stage.Stage) {
		w.silent(s.T, func() {
			wantLines(s.T, w.python(s, rules{Allow: []string{good + ":7"}}, attack), good+":7\n"+good+":7")
		}, good+":7")
	})
}

// TestNET80_NestedMounts: nor does it reach a socket of the host by mounting it in the place of an allowed one, or of its own.
func TestNET80_NestedMounts(t *testing.T) {
	stage.Need(t, "unshare")
	w := newWorld(t)
	const attack = `
import subprocess
allowed, other, own = sys.argv[1:4]
if len(sys.argv) == 4:
    l = socket.socket(UNIX, TCP); l.bind(own); l.listen(8)
    script = open("/proc/self/cmdline").read().split("\0")[2]
    for where in (allowed, own):
        for f in (own, allowed, other): os.chmod(f, 0o777)
        prefix = ["setpriv", "--reuid=1000", "--regid=1000", "--clear-groups"] if os.getuid() == 0 else []
        subprocess.run(prefix + ["unshare", "-Urm", "sh", "-c", "mount --bind " + other + " " + where + " && exec \"$@\"", "sh", sys.executable, "-c", script, allowed, other, own, where])
else:
    def to(path):
        s = socket.socket(UNIX, TCP); s.connect(path)
    say("mounted", lambda: to(sys.argv[4]))
    say("by root", lambda: to("/proc/self/root" + sys.argv[4]))
    sys.exit()
done()`
	stage.Each(t, func(s *stage.Stage) {
		s.Must(os.Chmod(s.Home, 0o755))
		allowed, other := w.hostSocket(s, "allowed.sock"), w.hostSocket(s, "other.sock")
		r := w.python(s, rules{Network: map[string]any{"allowUnixSockets": []string{allowed.path}},
			Top: map[string]any{"allowNestedUserNamespaces": true}}, attack, allowed.path, other.path, s.Work+"/own.sock")
		wantLines(s.T, r, strings.Repeat("mounted EACCES\nby root EACCES\n", 2))
		other.untouched(s)
	})
}
