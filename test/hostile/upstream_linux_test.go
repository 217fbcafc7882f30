package hostile

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/srt-sandbox/srt/test/programs/stage"
)

// hostileAnswers are what servers answer that mean no good, by the first segment of the path. The connection ends then.
var hostileAnswers = map[string]func(net.Conn, *http.Request){
	"says": func(c net.Conn, r *http.Request) {
		if text := badAnswers[strings.TrimPrefix(r.URL.Path, "/says/")].text; text != "" {
			_, _ = io.WriteString(c, text)
		}
	},
	"endless-interim": func(c net.Conn, _ *http.Request) {
		for {
			if _, err := io.WriteString(c, "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n"); err != nil {
				return
			}
		}
	},
	"endless-head": func(c net.Conn, _ *http.Request) {
		if _, err := io.WriteString(c, "HTTP/1.1 200 OK\r\nX-A: "); err != nil {
			return
		}
		for {
			if _, err := c.Write([]byte(strings.Repeat("a", 4096))); err != nil {
				return
			}
		}
	},
	"redirect": func(c net.Conn, r *http.Request) {
		fmt.Fprintf(c, "HTTP/1.1 302 Found\r\nLocation: https://api.test:8443%s\r\nX-Query: %s\r\nContent-Length: 0\r\n\r\n", r.RequestURI, r.URL.RawQuery)
	},
	"fast": func(c net.Conn, _ *http.Request) {
		fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n", int64(1)<<40)
		block := make([]byte, 64<<10)
		for {
			if _, err := c.Write(block); err != nil {
				return
			}
		}
	},
	"slow-upload": func(c net.Conn, _ *http.Request) { // takes a byte of a body now and then
		for one := make([]byte, 1); ; time.Sleep(50 * time.Millisecond) {
			if _, err := c.Read(one); err != nil {
				return
			}
		}
	},
}

// badAnswers are whole answers, and what a client inside may get instead: the status, "" for nothing at all, and whether it
// can tell that the body is not all there is.
var badAnswers = map[string]struct {
	text, status string
	whole        bool
}{
	"nothing":                {"", "502", true},
	"not-http":               {"SSH-2.0-x\r\n\r\n", "502", true},
	"http-0.9":               {"<html>hello</html>", "502", true},
	"http-2":                 {"HTTP/2 200 OK\r\n\r\n", "502", true},
	"status-of-letters":      {"HTTP/1.1 abc OK\r\n\r\n", "502", true},
	"status-99":              {"HTTP/1.1 099 OK\r\n\r\n", "502", true},
	"status-of-four":         {"HTTP/1.1 2000 OK\r\n\r\n", "502", true},
	"bare-lf":                {"HTTP/1.1 200 OK\nContent-Length: 2\n\nab", "502", true},
	"folded":                 {"HTTP/1.1 200 OK\r\nX-A: b\r\n c\r\nContent-Length: 2\r\n\r\nab", "502", true},
	"cr-in-value":            {"HTTP/1.1 200 OK\r\nX-A: b\rSet-Cookie: pwned\r\nContent-Length: 2\r\n\r\nab", "502", true},
	"nul-in-value":           {"HTTP/1.1 200 OK\r\nX-A: b\x00\r\nContent-Length: 2\r\n\r\nab", "502", true},
	"space-before-colon":     {"HTTP/1.1 200 OK\r\nContent-Length : 2\r\n\r\nab", "502", true},
	"both-lengths":           {"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "502", true},
	"two-lengths":            {"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nabc", "502", true},
	"signed-length":          {"HTTP/1.1 200 OK\r\nContent-Length: +2\r\n\r\nab", "502", true},
	"huge-length":            {"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\nab", "502", true},
	"other-coding":           {"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nab", "502", true},
	"chunked-twice":          {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n", "502", true},
	"switch-unasked":         {"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\nraw", "502", true},
	"interim-only":           {"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\n\r\n", "502", true},
	"head-of-100-kib":        {"HTTP/1.1 200 OK\r\nX-A: " + strings.Repeat("a", 100<<10) + "\r\nContent-Length: 0\r\n\r\n", "502", true},
	"cut-in-head":            {"HTTP/1.1 200 OK\r\nContent-Le", "502", true},
	"short":                  {"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc", "200", false},
	"chunk-size-of-letters":  {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\nabc\r\n0\r\n\r\n", "200", false},
	"chunk-size-negative":    {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\nabc\r\n0\r\n\r\n", "200", false},
	"chunk-size-huge":        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\nabc\r\n0\r\n\r\n", "200", false},
	"chunk-longer":           {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nabc\r\n0\r\n\r\n", "200", false},
	"chunks-cut":             {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n", "200", false},
	"second-response":        {"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nabHTTP/1.1 200 OK\r\nSet-Cookie: pwned\r\nContent-Length: 5\r\n\r\npwned", "200", true},
	"trailers":               {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\nSet-Cookie: pwned\r\n\r\n", "200", true},
	"body-of-204":            {"HTTP/1.1 204 No Content\r\nContent-Length: 29\r\n\r\nHTTP/1.1 200 OK\r\nX: pwned\r\n\r\n", "204", true},
	"hop-by-hop":             {"HTTP/1.1 200 OK\r\nConnection: x-pwned, close\r\nX-Pwned: pwned\r\nProxy-Authenticate: Basic realm=\"pwned\"\r\nContent-Length: 2\r\n\r\nab", "200", true},
	"proxy-error-of-its-own": {"HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic realm=\"pwned\"\r\nContent-Length: 2\r\n\r\nab", "407", true},
}

// TestTLS35_HostileServers: TLS-32, TLS-35, TLS-38: whatever a server answers, a client inside gets one well-formed response or can
// tell that it is cut short, nothing of the connection between srt and the server, and never an answer to another request.
func TestTLS35_HostileServers(t *testing.T) {
	w, at := newWeb(t)
	var names []string
	for name := range badAnswers {
		names = append(names, name)
	}
	stage.Each(t, func(s *stage.Stage) {
		at.trusted(s)
		r := w.python(s, rules{Allow: []string{"*.srv.test"}, Network: map[string]any{"tlsTerminate": map[string]any{}}}, `from secure import *
import http.client
def try_(n, path):
    s = tunnel("n" + str(n) + ".srv.test:8443", verify=True); s.settimeout(60)
    s.sendall(get(path, "x"))
    r = http.client.HTTPResponse(s); whole = True; body = b""
    try:
        r.begin(); body = r.read()
    except http.client.IncompleteRead as e: whole = False; body = e.partial
    except Exception as e: return "nothing", name(e)
    words = ("pwned" if "pwned" in repr((r.getheaders(), body)).lower() else "clean")
    if r.length: whole = False
    if r.status < 300 and whole: # the connection may carry another request, whose answer must be its own
        try:
            s.sendall(get("/next", "x")); r2 = http.client.HTTPResponse(s); r2.begin(); b = r2.read()
            if b != b"ok\n": words = "another's answer " + repr(b)
        except Exception: pass
    return r.status, whole, words
for n, p in enumerate(`+pythonList(names)+`): print(p, *try_(n, "/says/" + p))
for p in ("endless-interim", "endless-head"): print(p, *try_(p, "/" + p))
done()`)
		got := map[string]string{}
		for _, line := range done(s.T, r) {
			name, rest, _ := strings.Cut(line, " ")
			got[name] = rest
		}
		for name, bad := range badAnswers {
			want := bad.status + " True clean"
			if !bad.whole {
				want = bad.status + " False clean"
			}
			if got[name] != want {
				s.T.Errorf("%s: got %q, want %q", name, got[name], want)
			}
		}
		for _, name := range []string{"endless-interim", "endless-head"} {
			if got[name] != "502 True clean" {
				s.T.Errorf("%s: got %q", name, got[name])
			}
		}
	})
}

func pythonList(words []string) string { return fmt.Sprintf("%q.split()", strings.Join(words, " ")) }

// TestTLS36_ServersThatAreNotTheirs: TLS-36, cases 11: a server that is not what its name says gets no byte of a request, on no
// connection, and the client a 502 with the reason.
func TestTLS36_ServersThatAreNotTheirs(t *testing.T) {
	w, at := newWeb(t)
	stage.Each(t, func(s *stage.Stage) {
		at.trusted(s)
		at.take()
		changing := "changing-" + s.Who.Name + ".srv.test"
		r := w.python(s, rules{Allow: []string{"*.srv.test"}, Network: map[string]any{"tlsTerminate": map[string]any{}}}, `from secure import *
for host in sys.argv[1:]:
    for i in range(2):
        s = tunnel(host + ":8443", verify=True); s.sendall(get("/secret", "x"))
        h = head(s).decode().split("\r\n"); tag = [l for l in h if l.startswith("X-Proxy-Error")]
        print(host, h[0], *tag)
done()`, "wrongname.srv.test", "expired.srv.test", "stranger.srv.test", changing)
		var want strings.Builder
		for _, host := range []string{"wrongname.srv.test", "expired.srv.test", "stranger.srv.test"} {
			for range 2 {
				fmt.Fprintf(&want, "%s HTTP/1.1 502 Bad Gateway X-Proxy-Error: upstream-tls\n", host)
			}
		}
		fmt.Fprintf(&want, "%s HTTP/1.1 200 OK\n%[1]s HTTP/1.1 502 Bad Gateway X-Proxy-Error: upstream-tls\n", changing)
		wantLines(s.T, r, want.String())
		if got := at.take(); len(got) != 1 || got[0].name != changing {
			s.T.Errorf("what arrived: %v", got)
		}
	})
}
