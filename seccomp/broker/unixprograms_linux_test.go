package broker

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

func init() { probes["unix-programs"] = func(folder string) any { return programsProbe(folder) } }

// programsProbe runs the shell scripts of programCases, each in a folder of its own, and gives what they print.
func programsProbe(folder string) map[string]string {
	result := map[string]string{}
	for _, c := range programCases {
		if c.missing() != "" {
			continue
		}
		dir := folder + "/" + c.name
		if err := os.Mkdir(dir, 0o700); err != nil {
			result[c.name] = err.Error()
			continue
		}
		cmd := exec.Command("/bin/bash", "-euc", c.script)
		cmd.Dir = dir
		cmd.Env = []string{"HOME=" + dir, "PATH=" + searchPath, "LC_ALL=C"}
		out, err := cmd.CombinedOutput()
		result[c.name] = string(out)
		if err != nil {
			result[c.name] += "\n" + err.Error()
		}
	}
	return result
}

const searchPath = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"

// programCase is a program that serves and connects by paths.
type programCase struct {
	name     string
	programs []string
	script   string
	want     string // a line of the output
}

// missing is a program of the case that is not installed.
func (c *programCase) missing() string {
	for _, p := range c.programs {
		found := false
		for dir := range strings.SplitSeq(searchPath, ":") {
			info, err := os.Stat(dir + "/" + p)
			found = found || err == nil && !info.IsDir()
		}
		if !found {
			return p
		}
	}
	return ""
}

var programCases = []programCase{
	{"python", []string{"python3"}, `
cat > serve.py <<'END'
import os, socket, socketserver, struct, threading
class Handler(socketserver.StreamRequestHandler):
    def handle(self):
        uid = struct.unpack("3i", self.request.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[1]
        self.wfile.write(b"user %s, said " % (b"alike" if uid == os.geteuid() else b"%d" % uid) + self.rfile.readline())
s = socketserver.ThreadingUnixStreamServer("s", Handler)
threading.Thread(target=s.serve_forever, daemon=True).start()
c = socket.socket(socket.AF_UNIX)
c.connect("s")
c.sendall(b"hello\n")
print(c.makefile().readline().strip())
END
python3 serve.py`, "user alike, said hello"},
	{"asyncio", []string{"python3"}, `
cat > a.py <<'END'
import asyncio
async def main():
    async def serve(r, w):
        w.write((await r.readline()).upper())
        w.close()
    async with await asyncio.start_unix_server(serve, "s"):
        async def ask(i):
            r, w = await asyncio.open_unix_connection("s")
            w.write(b"x%d\n" % i)
            return (await r.read()).decode().strip()
        print(len(set(await asyncio.gather(*[ask(i) for i in range(60)]))), "answers")
asyncio.run(main())
END
python3 a.py`, "60 answers"},
	{"multiprocessing", []string{"python3"}, `
cat > m.py <<'END'
import multiprocessing
def f(x): return x * x
if __name__ == "__main__":
    with multiprocessing.Manager() as m:
        d = m.dict()
        d["k"] = "through the manager"
        print(d["k"])
END
python3 m.py`, "through the manager"},
	{"ssh-agent", []string{"ssh-agent", "ssh-add", "ssh-keygen"}, `
eval "$(ssh-agent -a "$PWD/agent")" >/dev/null
ssh-keygen -q -t ed25519 -N '' -C srt-key -f key
ssh-add -q key
ssh-add -l
ssh-agent -k >/dev/null`, "srt-key (ED25519)"},
	{"gpg-agent", []string{"gpg-agent", "gpg-connect-agent", "gpgconf"}, `
export GNUPGHOME=$PWD
gpg-agent --daemon --quiet -- true 2>/dev/null || gpg-agent --daemon 2>/dev/null
gpg-connect-agent 'getinfo pid' /bye
gpgconf --kill gpg-agent`, "OK"},
	{"node", []string{"node"}, `
cat > n.js <<'END'
const net = require("net");
const s = net.createServer(c => c.end("from node"));
s.listen("s", () => net.connect("s").on("data", d => { console.log(String(d)); s.close(); }));
END
node n.js`, "from node"},
	{"node cluster", []string{"node"}, `
cat > c.js <<'END'
const cluster = require("cluster"), http = require("http");
if (cluster.isPrimary) {
  cluster.fork().on("listening", () => http.get({ socketPath: "s", path: "/" }, r => r.on("data", d => { console.log(String(d)); process.exit(0); })));
} else http.createServer((q, r) => r.end("from a worker")).listen("s");
END
node c.js`, "from a worker"},
	{"dbus", []string{"dbus-daemon", "dbus-send"}, `
dbus-daemon --session --address="unix:path=$PWD/bus" --fork --nopidfile
DBUS_SESSION_BUS_ADDRESS="unix:path=$PWD/bus" dbus-send --session --print-reply --dest=org.freedesktop.DBus / org.freedesktop.DBus.GetConnectionUnixUser string:org.freedesktop.DBus`,
		"method return"},
	{"dbus abstract", []string{"dbus-daemon", "dbus-send"}, `
dbus-daemon --session --address="unix:abstract=srt-$$" --fork --nopidfile
DBUS_SESSION_BUS_ADDRESS="unix:abstract=srt-$$" dbus-send --session --print-reply --dest=org.freedesktop.DBus / org.freedesktop.DBus.ListNames`,
		"method return"},
	{"tmux", []string{"tmux"}, `
export TMUX_TMPDIR=$PWD TERM=xterm
tmux -S sock -f /dev/null new-session -d -s srt 'sleep 1000'
tmux -S sock list-sessions
tmux -S sock kill-server`, "srt: 1 windows"},
	{"git fsmonitor", []string{"git"}, `
git init -q repo
cd repo
git config core.fsmonitor true
touch a
git status --short
git fsmonitor--daemon status || echo no daemon in this git
git fsmonitor--daemon stop || true`, "?? a"},
	{"curl", []string{"python3", "curl"}, `
cat > h.py <<'END'
import http.server, socketserver
class H(http.server.BaseHTTPRequestHandler):
    def address_string(self): return "peer"
    def log_message(self, *a): pass
    def do_GET(self):
        self.send_response(200); self.end_headers(); self.wfile.write(b"by http")
s = socketserver.UnixStreamServer("s", H)
s.handle_request()
END
python3 h.py &
until [ -S s ]; do :; done
for i in 1 2 3 4 5 6 7 8 9; do curl -sS --unix-socket s http://x/ && break; sleep 0.1; done
wait`, "by http"},
	{"socat packets", []string{"socat"}, `
socat UNIX-LISTEN:s,type=5 SYSTEM:'cat' &
until [ -S s ]; do :; done
echo by packets | socat -t1 - UNIX-CONNECT:s,type=5`, "by packets"},
}

// TestUnix_Programs runs servers and clients of everyday use in the sandbox.
func TestUnix_Programs_NET81(t *testing.T) {
	folder := tempFolder(t)
	var got map[string]string
	b := startSandbox(t, setup{judge: &testJudge{}, filter: connects, probe: "unix-programs", folder: folder, watched: true})
	denials := b.finishWith(t, &got)
	for _, c := range programCases {
		t.Run(c.name, func(t *testing.T) {
			if p := c.missing(); p != "" {
				t.Skipf("want %s (build/prepare.sh installs it), got none", p)
			}
			if !strings.Contains(got[c.name], c.want) {
				t.Errorf("it said %q, want %q", got[c.name], c.want)
			}
		})
	}
	for _, d := range denials {
		if d.Err != nil || strings.HasPrefix(d.Path, folder) {
			t.Errorf("%+v", d)
		}
	}
}
