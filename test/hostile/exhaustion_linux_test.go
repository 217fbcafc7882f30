package hostile

import (
	"bufio"
	"encoding/base64"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/srt-sandbox/srt/test/programs/stage"
)

// watched is a program inside whose srt is looked at. The program says a line, and goes on once it is told.
type watched struct {
	s     *stage.Stage
	cmd   *exec.Cmd
	lines *bufio.Scanner
	in    io.WriteCloser
	errs  strings.Builder
}

// watch starts a program of python inside, with the module secure. srt writes what it refuses to a file.
func (w *world) watch(s *stage.Stage, at *web, r rules, code string) *watched {
	s.T.Helper()
	at.trusted(s)
	head := "import sys; sys.path.insert(0, '" + w.dir + "'); sys.dont_write_bytecode = True\nfrom secure import *\ndef pause(*what): print(*what, flush=True); sys.stdin.readline()\n"
	line := s.Srt(w.settings(s, r), "/usr/bin/python3", "-c", head+code)
	line = slices.Insert(line, 1, "--violations", s.Dir+"/violations")
	v := &watched{s: s, cmd: s.Command(plain(line)...)}
	v.cmd.Env = append(slices.Clone(s.Env), "W="+w.dir, "TOKEN="+planted)
	v.cmd.Stderr = &v.errs
	out, err := v.cmd.StdoutPipe()
	s.Must(err)
	v.in, err = v.cmd.StdinPipe()
	s.Must(err)
	v.lines = bufio.NewScanner(out)
	s.Must(v.cmd.Start())
	return v
}

// line is the next line of the program.
func (v *watched) line() string {
	v.s.T.Helper()
	if !v.lines.Scan() {
		err := v.cmd.Wait()
		v.s.T.Fatalf("the program ended early: %v\n%s", err, v.errs.String())
	}
	return v.lines.Text()
}

// on lets it go on.
func (v *watched) on() {
	v.s.T.Helper()
	_, err := io.WriteString(v.in, "\n")
	v.s.Must(err)
}

// end waits for it.
func (v *watched) end() {
	v.s.T.Helper()
	if err := v.cmd.Wait(); err != nil {
		v.s.T.Fatalf("%v\n%s", err, v.errs.String())
	}
}

// memory is what srt holds now, and held at most, in KiB of RAM.
func (v *watched) memory() (now, most int) {
	v.s.T.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", v.cmd.Process.Pid))
	v.s.Must(err)
	for line := range strings.Lines(string(text)) {
		_, _ = fmt.Sscanf(line, "VmRSS: %d kB", &now)
		_, _ = fmt.Sscanf(line, "VmHWM: %d kB", &most)
	}
	if now == 0 || most == 0 {
		v.s.T.Fatalf("no memory in\n%s", text)
	}
	return now, most
}

// violations are what srt has refused, one line of JSON each.
func (v *watched) violations() []string {
	text, _ := os.ReadFile(v.s.Dir + "/violations")
	return strings.Split(strings.TrimSpace(string(text)), "\n")
}

// TestTLS41_300Tunnels: TLS-41, VIO-15, attack 88: 256 of 300 tunnels stand, the others get the exact answer and the command one
// violation, and every slot comes back.
func TestTLS41_300Tunnels(t *testing.T) {
	w, at := newWeb(t)
	const want = "HTTP/1.1 503 Service Unavailable\r\nX-Proxy-Error: too-many-tunnels\r\nContent-Type: text/plain\r\nContent-Length: 39\r\n" +
		"Connection: close\r\n\r\ntoo many TLS-terminated tunnels at once"
	stage.Each(t, func(s *stage.Stage) {
		v := w.watch(s, at, rules{Allow: []string{"a.srv.test"}, Network: map[string]any{"tlsTerminate": map[string]any{}}}, `
import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (1000, 1000))
def open():
    s = via(); s.sendall(("CONNECT a.srv.test:8443 HTTP/1.1\r\nHost: x\r\n" + AUTH + "\r\n").encode()); return s
for turn in range(2):
    all = [open() for i in range(300)]
    heads = [(s, head(s)) for s in all]
    good = [s for s, h in heads if h == b"HTTP/1.1 200 Connection Established\r\n\r\n"]
    bad = [h.decode() + rest(s).decode() for s, h in heads if s not in good]
    tls = [shake(s, "a.srv.test", True) for s in good]
    for s in tls: s.sendall(get("/", "x"))
    ok = sum(one(s)[1] == b"ok\n" for s in tls)
    print(len(good), ok, len(bad), len(set(bad)), base64.b64encode(bad[0].encode()).decode(), flush=True)
    for s in tls: s.close()
    pause("turn")
done()`)
		for turn := range 2 {
			var stood, answered, refused, kinds int
			var text string
			line := v.line()
			if _, err := fmt.Sscanf(line, "%d %d %d %d %s", &stood, &answered, &refused, &kinds, &text); err != nil {
				t.Fatalf("%q: %v", line, err)
			}
			// The first tunnel of the second turn may meet one of the first that is not gone yet.
			if stood != 256 && (turn == 0 || stood < 250) || answered != stood || stood+refused != 300 || kinds != 1 || decoded(s, text) != want {
				s.T.Errorf("%d stood, %d answered, %d refused, %q", stood, answered, refused, decoded(s, text))
			}
			v.line()
			if got := v.violations(); turn == 0 && (len(got) != 1 || !strings.Contains(got[0], "the sandbox's limit of 256 TLS-terminated tunnels at once is reached")) {
				s.T.Errorf("violations: %q", got)
			}
			v.on()
		}
		v.end()
	})
}

// TestTLS45_SlowPeers: TLS-44, TLS-45, attack 88: however many clients are slow to read or to send, or servers to take, srt holds
// little for each; afterwards it still serves.
func TestTLS45_SlowPeers(t *testing.T) {
	w, at := newWeb(t)
	for name, test := range map[string]struct {
		most int // MiB that srt may hold at most, for 256 clients
		code string
	}{
		"readers": {128, `s.sendall(get("/fast", "x")); s.recv(1)`},
		"uploads": {128, `
    s.sendall(b"POST /slow-upload HTTP/1.1\r\nHost: x\r\nContent-Length: 100000000\r\n\r\n")
    s.setblocking(False)
    try:
        while True: s.send(b"x" * 16384)
    except (BlockingIOError, ssl.SSLWantWriteError): pass`},
		"uploads to be looked through": {384, `
    s.sendall(b"POST /slow-upload HTTP/1.1\r\nHost: x\r\nContent-Length: 1048576\r\n\r\n" + b"x" * 1048575)`},
		"heads": {64, `s.sendall(b"GET / HTTP/1.1\r\nHost: x\r\nX-A: " + b"a" * 16000)`},
	} {
		t.Run(name, func(t *testing.T) {
			stage.Each(t, func(s *stage.Stage) {
				v := w.watch(s, at, masking(rules{Allow: []string{"api.test"}}, map[string]any{"tlsTerminate": map[string]any{"maxTunnels": 300}}), `
import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (1000, 1000))
held = []
for i in range(256):
    s = tunnel("api.test:8443"); held.append(s)
    `+test.code+`
time.sleep(1)
pause("held")
for s in held: s.close()
s = tunnel("api.test:8443"); s.sendall(get("/", "x")); print(one(s)[1].decode().strip(), flush=True)
done()`)
				v.line()
				now, most := v.memory()
				s.T.Logf("%d KiB now, %d KiB at most", now, most)
				if most > test.most<<10 {
					s.T.Errorf("srt held %d KiB for 256 clients, which is over %d MiB", most, test.most)
				}
				v.on()
				if got := v.line(); got != "ok" {
					s.T.Errorf("afterwards: %q", got)
				}
				v.end()
			})
		})
	}
}

// TestTLS42_SilentClients: TLS-21, TLS-42, TLS-43, TLS-46, attack 88: a client that falls silent at any stage is let go, and its slot
// is free again.
func TestTLS42_SilentClients(t *testing.T) {
	w, at := newWeb(t)
	stage.Each(t, func(s *stage.Stage) {
		at.trusted(s)
		r := w.python(s, rules{Allow: []string{"a.srv.test"}, Network: map[string]any{"tlsTerminate": map[string]any{"maxTunnels": 14, "handshakeTimeoutMs": 1000}}}, `from secure import *
def hello():
    i, o = ssl.MemoryBIO(), ssl.MemoryBIO()
    try: ssl.create_default_context().wrap_bio(i, o, server_hostname="a.srv.test").do_handshake()
    except ssl.SSLWantReadError: return o.read()
def after(b): s = connect("a.srv.test:8443"); s.sendall(b); return s
def inside(b):
    s = tunnel("a.srv.test:8443", verify=True); s.sendall(b); return s
stages = [lambda: after(b""), lambda: after(b"\x16"), lambda: after(b"\x16\x03"), lambda: after(hello()[:100]), lambda: after(hello()),
    lambda: inside(b""), lambda: inside(b"GET / HTTP/1.1\r\n")]
held = [f() for f in stages for i in range(2)]
try: connect("a.srv.test:8443"); print("a 15th tunnel")
except OSError as e: print("503" in str(e))
for s in held: s.settimeout(60); rest(s); s.close()
def again():
    while True: # srt may still be about to close the last ones
        try: return connect("a.srv.test:8443")
        except OSError: time.sleep(.1)
print(len([again() for i in range(14)]))
done()`)
		wantLines(s.T, r, "True\n14")
	})
}

// decoded undoes base64.
func decoded(s *stage.Stage, text string) string {
	s.T.Helper()
	b, err := base64.StdEncoding.DecodeString(text)
	s.Must(err)
	return string(b)
}
