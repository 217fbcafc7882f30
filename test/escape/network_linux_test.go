package escape

import (
	"fmt"
	"net"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// client is the head of every python program here: it finds the proxy and its password where any program does. Every
// way to talk ends quietly: what counts is what the host's listener sees.
const client = `import os, socket, base64, urllib.parse, struct
print("INSIDE", flush=True)
url = urllib.parse.urlsplit(os.environ.get("HTTP_PROXY", "http://x:x@127.0.0.1:3128"))
auth = base64.b64encode((url.username + ":" + url.password).encode()).decode()
TOKEN, USER, WAIT = url.password, url.username, 10
# Where the sandbox has no network of its own, its proxies are at other numbers.
SERVERS = {3128: url.port or 3128, 1080: urllib.parse.urlsplit(os.environ.get("FTP_PROXY", "socks5h://127.0.0.1:1080")).port}
def talk(port, *parts):
    try:
        s = socket.create_connection(("127.0.0.1", SERVERS.get(port, port)), 10)
        s.settimeout(WAIT)
        out = b""
        for p in parts:
            s.sendall(p)
            out += s.recv(4096)
        return out
    except OSError as e:
        return repr(e).encode()
def connect(target, extra=b""):
    if isinstance(target, str): target = target.encode()
    return talk(3128, b"CONNECT " + target + b" HTTP/1.1\r\nHost: " + target + b"\r\nProxy-Authorization: Basic " + auth.encode() + b"\r\n" + extra + b"\r\n")
def get(url, host, extra=b"", body=b"", method=b"GET"):
    return talk(3128, method + b" " + url + b" HTTP/1.1\r\nHost: " + host + b"\r\nProxy-Authorization: Basic " + auth.encode() + b"\r\nConnection: close\r\n" + extra + b"\r\n" + body)
def socks(host, port, user=None, password=None, kind=3):
    user, password = (user or USER).encode(), (password or TOKEN).encode()
    address = bytes([len(host)]) + host if kind == 3 else host
    return talk(1080, b"\x05\x01\x02", b"\x01" + bytes([len(user)]) + user + bytes([len(password)]) + password,
        b"\x05\x01\x00" + bytes([kind]) + address + struct.pack(">H", port))
`

// python runs a program in the sandbox, with PORT and PATH of a listener filled in.
func (w *world) python(g *target, code string) outcome {
	w.t.Helper()
	return w.run("python3", "-c", g.fill(client+code))
}

func (g *target) fill(code string) string {
	return strings.NewReplacer("PORT", fmt.Sprint(g.port), "PATH", "'"+g.path+"'", "ADDRESS", "'"+ownAddress()+"'").Replace(code)
}

// ownAddress is an address of this host beyond the loopback, or the loopback where there is no other.
func ownAddress() string {
	addrs, err := net.InterfaceAddrs()
	if err == nil {
		for _, a := range addrs {
			if n, ok := a.(*net.IPNet); ok && n.IP.To4() != nil && !n.IP.IsLoopback() {
				return n.IP.String()
			}
		}
	}
	return "127.0.0.1"
}

// unreached wants that no program reaches a listener on the host.
func (w *world) unreached(g *target, code string) outcome {
	w.t.Helper()
	o := w.python(g, code)
	if g.reached() {
		w.t.Errorf("ESCAPE: the listener of the host was reached\n%s\n%s%s", code, o.out, o.err)
	}
	return o
}

// reachedBy wants that it does: what a test forbids elsewhere is possible here.
func (w *world) reachedBy(g *target, code string) outcome {
	w.t.Helper()
	o := w.python(g, code)
	if !g.reached() {
		w.t.Errorf("the listener was not reached, so the test attacks nothing\n%s\n%s%s", code, o.out, o.err)
	}
	return o
}

// TestEscape_070_EmptyAllowList: CVE-2025-66479. No list and an empty list allow nothing; an invalid one runs nothing.
func TestEscape_070_EmptyAllowList(t *testing.T) {
	code := `WAIT = 3; connect("127.0.0.1:PORT"); get(b"http://127.0.0.1:PORT/", b"127.0.0.1:PORT"); socks(b"127.0.0.1", PORT); socks(bytes([127,0,0,1]), PORT, kind=1); connect("localhost:PORT")`
	each(t, func(t *testing.T, w *world) {
		g := listenFor(w, unix.AF_INET, unix.SOCK_STREAM)
		w.unreached(g, code)
		w.settings.Domains = []string{"127.0.0.1"}
		w.reachedBy(g, code)
		for _, bad := range []any{nil, "*", []any{""}, []any{1}, []any{"http://x"}, []any{"a b"}, map[string]any{}} {
			w.settings.Network = map[string]any{"allowedDomains": bad}
			w.refused("allowedDomains")
		}
	})
}

// TestEscape_071_ProxyIgnored: a program that takes no proxy reaches what is allowed, and nothing else.
func TestEscape_071_ProxyIgnored(t *testing.T) {
	code := `
for host in ("127.0.0.1", "localhost", "127.1", "0.0.0.0", ADDRESS):
    try: socket.create_connection((host, PORT), 2)
    except OSError: pass`
	each(t, func(t *testing.T, w *world) {
		g := listenFor(w, unix.AF_INET, unix.SOCK_STREAM)
		for _, domains := range [][]string{nil, {"127.0.0.2", "*.a.example", "*.a.localhost"}, {fmt.Sprintf("127.0.0.1:%d", g.port+1)},
			{fmt.Sprintf("localhost:%d", g.port+1)}} {
			w.settings.Domains = domains
			w.unreached(g, code)
		}
		for _, domain := range []string{fmt.Sprintf("127.0.0.1:%d", g.port), fmt.Sprintf("localhost:%d", g.port), "localhost"} {
			w.settings.Domains = []string{domain}
			w.reachedBy(g, code)
		}
	})
}

// TestEscape_073_StarIsNoOpenDoor: the widest list still goes through the proxies and their address check.
func TestEscape_073_StarIsNoOpenDoor(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		g := listenFor(w, unix.AF_INET, unix.SOCK_STREAM)
		w.settings.Domains = []string{"*.example.com", "*.a.test"}
		w.unreached(g, `
for host in ("127.0.0.1", "localhost", ADDRESS, "x.localhost"):
    connect(host + ":PORT"); socks(host.encode(), PORT)
    try: socket.create_connection((host, PORT), 2)
    except OSError: pass`)
		w.settings.Domains = []string{"*"}
		w.refused("allowedDomains")
	})
}

// TestEscape_074_HostBytes: NUL, line ends and the like in a host end neither a name nor a line early.
func TestEscape_074_HostBytes(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		g := listenFor(w, unix.AF_INET, unix.SOCK_STREAM)
		w.settings.Domains = []string{"allowed.example", "*.allowed.example"}
		w.unreached(g, `
for glue in (b"\x00.allowed.example", b"\r\n.allowed.example", b"\n.allowed.example", b"#.allowed.example", b"/.allowed.example", b"\\.allowed.example",
             b"?.allowed.example", b" .allowed.example", b"%00.allowed.example", b"@allowed.example", b"\t.allowed.example", b":PORT:.allowed.example", b"%.allowed.example"):
    for host in (b"127.0.0.1", b"localhost"):
        socks(host + glue, PORT); connect(host + glue + b":PORT"); connect(host + b":PORT" + glue); get(b"http://" + host + glue + b":PORT/", b"allowed.example")
        get(b"http://allowed.example" + glue + b"@" + host + b":PORT/", b"allowed.example")
socks(b"allowed.example\x00127.0.0.1", PORT)
connect(b"allowed.example:80\r\nHost: x\r\n\r\nCONNECT 127.0.0.1:PORT")`)
	})
}

// TestEscape_075_HostSpelling: every spelling of a denied or unlisted address is that address.
func TestEscape_075_HostSpelling(t *testing.T) {
	code := `
for h in ("127.0.0.1", "127.1", "127.0.1", "0x7f.1", "0x7f000001", "2130706433", "017700000001", "0177.0.0.1", "127.0.0.1.", "localhost", "LOCALHOST", "localhost.",
          "[::1]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[::127.0.0.1]", "[64:ff9b::7f00:1]", "[::1%lo]", "[::1%25lo]", "[0:0:0:0:0:0:0:1]", "0", "0.0.0.0", "[::]",
          "127.0.0.1%00", "１２７.0.0.1", "127。0。0。1", "xn--localhost-", "foo.localhost", "127.0.0.2", ADDRESS, "ip6-localhost", "127.0.0.1:PORT@x"):
    connect(h.encode() + b":PORT"); socks(h.strip("[]").encode(), PORT); get(b"http://" + h.encode() + b":PORT/", h.encode())
socks(bytes(15) + b"\x01", PORT, kind=4); socks(bytes(10) + b"\xff\xff\x7f\x00\x00\x01", PORT, kind=4); socks(bytes(4), PORT, kind=1)`
	each(t, func(t *testing.T, w *world) {
		g := listenFor(w, unix.AF_INET, unix.SOCK_STREAM)
		w.settings.Domains = []string{"example.com"}
		w.unreached(g, code)
		w.settings.Network = map[string]any{"allowedDomains": []string{"*.example.com", "127.0.0.1", "localhost", "0.0.0.0", "[::1]", ownAddress()},
			"deniedDomains": []string{"127.0.0.1", "localhost", "foo.localhost", "0.0.0.0", "[::1]", ownAddress()}}
		w.unreached(g, code)
	})
}

// TestEscape_076_NameOfThisHost: an allowed name whose address is this host's, or one that nobody is to reach, is not
// connected (NET-50 to NET-57).
func TestEscape_076_NameOfThisHost(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		g := listenFor(w, unix.AF_INET, unix.SOCK_STREAM)
		w.write("hosts", fmt.Sprintf("127.0.0.1 loop.a.example\n%s own.a.example\n0.0.0.0 zero.a.example\n::ffff:127.0.0.1 mapped.a.example\n", ownAddress()))
		w.umbrella = `mount --bind $WORLD/hosts /etc/hosts`
		w.settings.Domains = []string{"*.a.example"}
		o := w.unreached(g, `
for h in ("loop", "own", "zero", "mapped"):
    print(connect(h + ".a.example:PORT")); socks(h.encode() + b".a.example", PORT); get(b"http://" + h.encode() + b".a.example:PORT/", h.encode() + b".a.example")`)
		if n := strings.Count(o.out, "403 resolved to"); n != 4 {
			t.Errorf("%d of 4 refusals are for the address:\n%s%s", n, o.out, o.err)
		}
	})
}
