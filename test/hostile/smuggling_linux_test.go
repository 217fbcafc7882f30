package hostile

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/srt-sandbox/srt/test/programs/stage"
)

// smuggled are requests that some servers read as two, and whose second part nobody has judged. Z stands for that part. What is not
// answered 400 goes on as one request, whole.
var smuggled = map[string]string{
	"CL.TE":             "POST /1 HTTP/1.1\r\nHost: x\r\nContent-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nZ",
	"TE.CL":             "POST /1 HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\nZ",
	"CL.CL":             "POST /1 HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\nContent-Length: 400\r\n\r\nZ",
	"CL, CL":            "POST /1 HTTP/1.1\r\nHost: x\r\nContent-Length: 0, 0\r\n\r\nZ",
	"CL hex":            "POST /1 HTTP/1.1\r\nHost: x\r\nContent-Length: 0x0\r\n\r\nZ",
	"CL signed":         "POST /1 HTTP/1.1\r\nHost: x\r\nContent-Length: -0\r\n\r\nZ",
	"CL empty":          "POST /1 HTTP/1.1\r\nHost: x\r\nContent-Length:\r\n\r\nZ",
	"CL overflow":       "POST /1 HTTP/1.1\r\nHost: x\r\nContent-Length: 18446744073709551616\r\n\r\nZ",
	"TE list":           "POST /1 HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: identity, chunked\r\n\r\n0\r\n\r\nZ",
	"TE quoted":         "POST /1 HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: \"chunked\"\r\n\r\n0\r\n\r\nZ",
	"TE vertical tab":   "POST /1 HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\nZ",
	"TE space":          "POST /1 HTTP/1.1\r\nHost: x\r\nTransfer-Encoding : chunked\r\n\r\n0\r\n\r\nZ",
	"TE folded":         "POST /1 HTTP/1.1\r\nHost: x\r\nTransfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\nZ",
	"TE of HTTP/1.0":    "POST /1 HTTP/1.0\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nZ",
	"TE twice":          "POST /1 HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nZ",
	"TE and bare LF":    "POST /1 HTTP/1.1\r\nHost: x\r\nX: y\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nZ",
	"TE behind CR":      "POST /1 HTTP/1.1\r\nHost: x\r\nX: y\rTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nZ",
	"line without name": "POST /1 HTTP/1.1\r\nHost: x\r\n: y\r\nContent-Length: 0\r\n\r\nZ",
	"NUL in a name":     "POST /1 HTTP/1.1\r\nHost: x\r\nContent-\x00Length: 400\r\n\r\nZ",
	"first line folded": "GET /1 HTTP/1.1\r\n Host: x\r\nHost: x\r\n\r\nZ",
	"LF in the target":  "GET /1\nX HTTP/1.1\r\nHost: x\r\n\r\nZ",
	"space in target":   "GET /1 HTTP/1.1\r\nZ HTTP/1.1\r\nHost: x\r\n\r\n",
	"HTTP/0.9":          "GET /1\r\n\r\nZ",
	"HTTP/1.2":          "GET /1 HTTP/1.2\r\nHost: x\r\n\r\nZ",
	"HTTP/2 preface":    "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\nZ",
	"chunk size +":      "POST /1 HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n+0\r\n\r\nZ",
	"chunk size 0x":     "POST /1 HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0x0\r\n\r\nZ",
	"chunk size space":  "POST /1 HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n 0\r\n\r\nZ",
	"chunk size huge":   "POST /1 HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n10000000000000000\r\nZ",
	"chunk LF":          "POST /1 HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\n\nZ",
	"chunk without end": "POST /1 HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabcd\r\n0\r\n\r\nZ",
	"extension LF":      "POST /1 HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n2;a\nxx\r\n4c\r\n0\r\n\r\nZ",
	"trailer CR":        "POST /1 HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX: y\rZ\r\n\r\n",
}

// carried are requests whose second part is part of their body: one request goes on, and the part in it.
var carried = map[string]string{
	"in a body":          "POST /1 HTTP/1.1\r\nHost: x\r\nContent-Length: N\r\n\r\nZ",
	"in the body of GET": "GET /1 HTTP/1.1\r\nHost: x\r\nContent-Length: N\r\n\r\nZ",
	"of DELETE":          "DELETE /1 HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nC\r\nZ\r\n0\r\n\r\n",
	"in a chunk":         "POST /1 HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nC\r\nZ\r\n0\r\n\r\n",
	"behind Expect":      "POST /1 HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: N\r\n\r\nZ",
	"Connection names":   "POST /1 HTTP/1.1\r\nHost: x\r\nConnection: content-length, host, close\r\nContent-Length: N\r\n\r\nZ",
	"with Upgrade gone":  "POST /1 HTTP/1.0\r\nHost: x\r\nUpgrade: h2c\r\nContent-Length: N\r\n\r\nZ",
}

// TestTLS30_Smuggling: TLS-30, TLS-31, TLS-34 and attacks 78: no two parsers read different requests from what srt forwards. The
// second part would be refused by a request rule if it were judged, and is never a request of its own.
func TestTLS30_Smuggling(t *testing.T) {
	w, at := newWeb(t)
	const second = "GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n"
	fill := strings.NewReplacer("Z", second, "N", fmt.Sprint(len(second)), "\r\nC\r\n", fmt.Sprintf("\r\n%x\r\n", len(second)))
	var code strings.Builder
	attacks := func(all map[string]string, say string) (names []string) {
		for name, text := range all {
			names = append(names, name)
			fmt.Fprintf(&code, "%s(%q, %s)\n", say, name, pythonBytes(fill.Replace(text)))
		}
		slices.Sort(names)
		return names
	}
	bad, one := attacks(smuggled, "attack"), attacks(carried, "attack")
	stage.Each(t, func(s *stage.Stage) {
		at.trusted(s)
		for _, way := range []string{"tunnel", "captured"} {
			at.take()
			r := w.python(s, rules{Allow: []string{"a.srv.test"}, Network: map[string]any{"tlsTerminate": map[string]any{}, "requestRules": []any{
				map[string]any{"hosts": []string{"a.srv.test"}, "paths": []string{"/smuggled"}, "action": "deny"}}}}, `from secure import *
def attack(label, text):
    s = tunnel("a.srv.test:8443") if sys.argv[1] == "tunnel" else shake(tcp("a.srv.test", 8443), "a.srv.test")
    s.sendall(text)
    print(label.replace(" ", "_"), (head(s).split(b" ") + [b"", b"nothing"])[1].decode())
    s.close()
`+code.String()+"done()", way)
			var refused, passed []string
			for _, line := range done(s.T, r) {
				name, status, _ := strings.Cut(line, " ")
				name = strings.ReplaceAll(name, "_", " ")
				if status == "200" || status == "100" {
					passed = append(passed, name)
				} else if refused = append(refused, name); status != "400" {
					s.T.Errorf("%s: %s", name, status)
				}
			}
			slices.Sort(refused)
			slices.Sort(passed)
			if !slices.Equal(refused, bad) || !slices.Equal(passed, one) {
				s.T.Errorf("refused %q, passed %q", refused, passed)
			}
			got := at.take()
			for _, a := range got {
				if strings.Contains(a.target, "smuggled") || strings.Count(a.raw, second) != 1 || !strings.HasSuffix(strings.TrimSuffix(a.raw, "\r\n0\r\n\r\n"), second) {
					s.T.Errorf("ESCAPE: %q", a.raw)
				}
			}
			if len(got) != len(one) {
				s.T.Errorf("%d requests arrived", len(got))
			}
		}
	})
}

// pythonBytes is a literal of bytes in python.
func pythonBytes(text string) string {
	var b strings.Builder
	b.WriteString("b'")
	for _, c := range []byte(text) {
		fmt.Fprintf(&b, "\\x%02x", c)
	}
	return b.String() + "'"
}

// TestRequestRules_Bypasses: network.requestRules, REQ-6, REQ-7, attacks 77 and 79: no spelling of a path, method or host, and no way to
// a host, gets past a rule.
func TestRequestRules_Bypasses(t *testing.T) {
	w, at := newWeb(t)
	paths := []string{"/admin", "/%61dmin", "/x/../admin", "//admin", "/./admin", "/x/%2e%2e/admin", "/\\admin", "/x\\..\\admin", "/x/..%2fadmin", "/%2fadmin", "/admin%2f",
		"/x/..%5cadmin", "/x/..;/admin", "/admin;x", "/;/admin", "/%2561dmin", "/admin%00", "/x/%252e%252e/admin", "/admin#x", "https://a.srv.test:8443/admin",
		"https://other.srv.test/admin", "http://a.srv.test/x/../admin", "/admin?x", "/admin/", "/admin/../admin", "/x/%c0%ae%c0%ae/admin", "/%u0061dmin", "/adm%69n", "/x/.%2e/admin"}
	methods := []string{"DELETE /pub", "delete /pub", "Delete /pub", "POST /pub X-HTTP-Method-Override: DELETE", "POST /pub x_http_method_override: delete",
		"POST /pub X-Method-Override: DELETE", "GET /pub X-HTTP-Method: DELETE", "POST /pub X-HTTP-METHOD-OVERRIDE:DELETE"}
	network := map[string]any{"tlsTerminate": map[string]any{}, "requestRules": []any{
		map[string]any{"hosts": []string{"a.srv.test"}, "paths": []string{"/admin", "/admin/**"}, "action": "deny"},
		map[string]any{"hosts": []string{"a.srv.test"}, "methods": []string{"DELETE"}, "action": "deny"},
		map[string]any{"hosts": []string{"a.srv.test"}, "paths": []string{"/**"}, "action": "allow"}}}
	const attack = `from secure import *
def ask(line, version="1.1", open=lambda: tunnel("a.srv.test:8443")):
    method, path, *more = line.split(" ", 2)
    s = open(); s.sendall((method + " " + path + " HTTP/" + version + "\r\nHost: a.srv.test\r\n" + ("".join(m + "\r\n" for m in more)) + "\r\n").encode())
    return (head(s).split(b" ") + [b"", b"nothing"])[1].decode()
fine = [ask("GET /pub"), ask("POST /pub/x"), ask("GET /pub", "1.0"), ask("GET /pub", open=lambda: shake(tcp("a.srv.test", 8443), "a.srv.test"))]
print("fine", *fine)
seen = set()
for p in sys.argv[1].split():
    for version in ("1.1", "1.0"):
        seen.add(ask("GET " + p, version))
        seen.add(ask("GET " + p, version, lambda: shake(tcp("a.srv.test", 8443), "a.srv.test")))
for m in sys.argv[2].split("|"): seen.add(ask(m))
for p in sys.argv[1].split():
    s = via(); s.sendall(("GET http://a.srv.test:8080" + p + " HTTP/1.1\r\nHost: a.srv.test:8080\r\n" + AUTH + "\r\n").encode()); seen.add((head(s).split(b" ") + [b"", b"nothing"])[1].decode())
    s = tcp("a.srv.test", 8080); s.settimeout(30); s.sendall(("GET " + p + " HTTP/1.1\r\nHost: a.srv.test:8080\r\n\r\n").encode())
    rest(s)
def opaque(s): s.settimeout(30); s.sendall(b"GET /admin HTTP/1.1\r\nHost: x\r\n\r\n"); return rest(s)[:12]
for p in ("8443", "8080", "7"): quietly(lambda: opaque(connect("a.srv.test:" + p)))
def socks(port):
    s = socket.create_connection((url.hostname, 1080), 30); s.settimeout(30)
    u, p = url.username.encode(), url.password.encode()
    s.sendall(b"\x05\x01\x02"); s.recv(2); s.sendall(b"\x01" + bytes([len(u)]) + u + bytes([len(p)]) + p); s.recv(2)
    s.sendall(b"\x05\x01\x00\x03\x0aa.srv.test" + struct.pack(">H", port)); print("socks", s.recv(10)[1]); return s
quietly(lambda: opaque(shake(socks(8443), "x"))); quietly(lambda: opaque(socks(8080)))
quietly(lambda: shake(connect(GOOD + ":8443"), "a.srv.test").sendall(get("/admin", "a.srv.test")))
def upgraded():
    s = tunnel("a.srv.test:8443"); s.sendall(get("/pub/ws", "x", "Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==", "Sec-WebSocket-Version: 13"))
    return head(s).split(b" ")[1].decode()
print("websocket", upgraded())
print("seen", *sorted(seen))
done()`
	stage.Each(t, func(s *stage.Stage) {
		at.trusted(s)
		at.take()
		r := w.python(s, rules{Allow: []string{"a.srv.test"}, Network: network}, attack, strings.Join(paths, " "), strings.Join(methods, "|"))
		text := strings.Join(done(s.T, r), "\n")
		for _, want := range []string{"fine 200 200 200 200\n", "\nseen 400 403\n", "\nwebsocket 403\n", "\nsocks 1\n"} {
			if !strings.Contains(text+"\n", want) {
				s.T.Errorf("%q is missing:\n%s\n%s", want, text, r.Stderr)
			}
		}
		for _, a := range at.take() {
			if a.target != "/pub" && a.target != "/pub/x" || a.header.Get("Upgrade") != "" || a.name != "a.srv.test" {
				s.T.Errorf("ESCAPE: %q arrived (%s)", a.raw, a.name)
			}
		}
	})
}
