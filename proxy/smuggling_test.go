package proxy

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
)

// smuggling is a request that tries to be read as another one, or as two. The head is the part after the request line,
// Host and credentials; raw is all of the input instead.
type smuggling struct {
	name, head, body, raw string
	// answer is the status of the only answer; 0: the client leaves without one.
	answer int
	// seen is what an upstream server must see: "METHOD path body", each exactly once, and nothing else.
	seen []string
}

// inner is a request that only a parser that disagrees about framing would find.
const inner = "GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n"

var posted = []string{"POST /x hello"}

func smugglings() []smuggling {
	return slices.Concat(lengthTricks(), codingTricks(), chunkTricks(), lineTricks(), headTricks())
}

func lengthTricks() []smuggling {
	return []smuggling{
		{name: "plain", head: "Content-Length: 5\r\n", body: "hello", answer: 200, seen: posted},
		{name: "CL.TE", head: "Content-Length: 6\r\nTransfer-Encoding: chunked\r\n", body: "0\r\n\r\nG", answer: 400},
		{name: "TE.CL", head: "Transfer-Encoding: chunked\r\nContent-Length: 4\r\n", body: "22\r\n" + inner + "0\r\n\r\n", answer: 400},
		{name: "CL twice", head: "Content-Length: 5\r\nContent-Length: 0\r\n", body: "hello", answer: 400},
		{name: "CL twice, equal", head: "Content-Length: 5\r\nCONTENT-LENGTH: 5\r\n", body: "hello", answer: 400},
		{name: "CL list", head: "Content-Length: 5, 5\r\n", body: "hello", answer: 400},
		{name: "CL sign", head: "Content-Length: +5\r\n", body: "hello", answer: 400},
		{name: "CL negative", head: "Content-Length: -5\r\n", body: "hello", answer: 400},
		{name: "CL hex", head: "Content-Length: 0x5\r\n", body: "hello", answer: 400},
		{name: "CL empty", head: "Content-Length:\r\n", body: "hello", answer: 400},
		{name: "CL parted", head: "Content-Length: 5 5\r\n", body: "hello", answer: 400},
		{name: "CL vertical tab", head: "Content-Length: 5\x0b\r\n", body: "hello", answer: 400},
		{name: "CL fraction", head: "Content-Length: 5.0\r\n", body: "hello", answer: 400},
		{name: "CL exponent", head: "Content-Length: 5e0\r\n", body: "hello", answer: 400},
		{name: "CL beyond 64 bits", head: "Content-Length: 18446744073709551621\r\n", body: "hello", answer: 400},
		{name: "CL leading zeros", head: "Content-Length: 005\r\n", body: "hello", answer: 200, seen: posted},
		{name: "CL lookalike", head: "Content-Length: 5\r\nContent_Length: 0\r\n", body: "hello", answer: 200, seen: posted},
		{name: "a request as body", head: fmt.Sprintf("Content-Length: %d\r\n", len(inner)), body: inner, answer: 200, seen: []string{"POST /x " + inner}},
		{name: "GET with a body", raw: fmt.Sprintf("GET http://127.0.0.1:PORT/x HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\nAUTH\r\n%s", len(inner), inner),
			answer: 200, seen: []string{"GET /x " + inner}},
		{name: "GET without a length", raw: "GET http://127.0.0.1:PORT/x HTTP/1.1\r\nHost: a\r\nConnection: close\r\nAUTH\r\n" + inner, answer: 200, seen: []string{"GET /x "}},
		{name: "CL on HTTP/1.0", raw: "POST http://127.0.0.1:PORT/x HTTP/1.0\r\nConnection: keep-alive\r\nContent-Length: 5\r\nAUTH\r\nhello" + inner, answer: 200, seen: posted},
	}
}

func codingTricks() []smuggling {
	chunked := "5\r\nhello\r\n0\r\n\r\n"
	var out []smuggling
	for name, line := range map[string]string{
		"identity": "Transfer-Encoding: identity", "gzip, chunked": "Transfer-Encoding: gzip, chunked", "xchunked": "Transfer-Encoding: xchunked",
		"twice": "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked", "hidden second": "Transfer-Encoding: chunked\r\nTransfer-encoding: cow",
		"hidden first": "Transfer-Encoding: x\r\nTransfer-Encoding: chunked", "list": "Transfer-Encoding: chunked, chunked",
		"trailing comma": "Transfer-Encoding: chunked,", "leading comma": "Transfer-Encoding: ,chunked", "parameter": "Transfer-Encoding: chunked;q=1",
		"quoted": `Transfer-Encoding: "chunked"`, "single quotes": "Transfer-Encoding: 'chunked'", "vertical tab": "Transfer-Encoding: \x0bchunked",
		"form feed": "Transfer-Encoding: chunked\x0c", "no-break space": "Transfer-Encoding: \xa0chunked", "NUL": "Transfer-Encoding: chunked\x00",
		"blank before the colon": "Transfer-Encoding : chunked", "tab before the colon": "Transfer-Encoding\t: chunked", "folded": "Transfer-Encoding:\r\n chunked",
		"folded name": "X: y\r\n Transfer-Encoding: chunked", "bare LF": "X: y\nTransfer-Encoding: chunked", "bare CR": "X: y\rTransfer-Encoding: chunked",
		"CR before the name": "X: y\r\n\rTransfer-Encoding: chunked", "LF LF": "X: y\n\nGET /smuggled HTTP/1.1", "empty": "Transfer-Encoding:",
		"Kelvin sign": "Transfer-Encoding: chun\u212aed", "name with a NUL": "Transfer-Encoding\x00: chunked", "name beyond ASCII": "Transfer-Encodin\u0121: chunked",
	} {
		out = append(out, smuggling{name: "TE " + name, head: line + "\r\n", body: chunked, answer: 400})
	}
	return append(out,
		smuggling{name: "TE on HTTP/1.0", raw: "POST http://127.0.0.1:PORT/x HTTP/1.0\r\nTransfer-Encoding: chunked\r\nAUTH\r\n" + chunked, answer: 400},
		smuggling{name: "TE tab", head: "Transfer-Encoding:\t\tCHUNKED \t\r\n", body: chunked, answer: 200, seen: posted},
		smuggling{name: "TE lookalike", head: "Content-Length: 5\r\nTransfer_Encoding: chunked\r\nTransfer.Encoding: chunked\r\n", body: "hello", answer: 200, seen: posted},
		smuggling{name: "TE for a GET", raw: "GET http://127.0.0.1:PORT/x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nAUTH\r\n" + chunked, answer: 200, seen: []string{"GET /x hello"}},
		smuggling{name: "Connection names the coding", head: "Connection: close, Transfer-Encoding\r\nTransfer-Encoding: chunked\r\n", body: chunked, answer: 200, seen: posted},
		smuggling{name: "Connection names the length", head: "Connection: close, Content-Length\r\nContent-Length: 5\r\n", body: "hello", answer: 200, seen: posted},
		smuggling{name: "Connection names Host", head: "Connection: close, Host\r\nContent-Length: 5\r\n", body: "hello", answer: 200, seen: posted},
	)
}

func chunkTricks() []smuggling {
	var out []smuggling
	for name, body := range map[string]string{
		"size sign": "+5\r\nhello\r\n0\r\n\r\n", "size negative": "-5\r\nhello\r\n0\r\n\r\n", "size 0x": "0x5\r\nhello\r\n0\r\n\r\n", "size blank": " 5\r\nhello\r\n0\r\n\r\n",
		"size and a blank": "5 \r\nhello\r\n0\r\n\r\n", "size empty": "\r\nhello\r\n0\r\n\r\n", "size no hex": "5g\r\nhello\r\n0\r\n\r\n", "size _": "0_5\r\nhello\r\n0\r\n\r\n",
		"size beyond 64 bits": "10000000000000005\r\nhello\r\n0\r\n\r\n", "size of 16 digits": "0000000000000005\r\nhello\r\n0\r\n\r\n",
		"size bare LF": "5\nhello\r\n0\r\n\r\n", "size bare CR": "5\rhello\r\n0\r\n\r\n", "data bare LF": "5\r\nhello\n0\r\n\r\n", "data too long": "5\r\nhello!\r\n0\r\n\r\n",
		"data too short": "6\r\nhello\r\n0\r\n\r\n", "extension LF": "5;a\nb\r\nhello\r\n0\r\n\r\n", "extension CR": "5;a\rb\r\nhello\r\n0\r\n\r\n", "extension NUL": "5;\x00\r\nhello\r\n0\r\n\r\n",
		"extension without ;": "5 a=b\r\nhello\r\n0\r\n\r\n", "extension bomb": "5;" + strings.Repeat("a", 2000) + "\r\nhello\r\n0\r\n\r\n", "zero with a sign": "5\r\nhello\r\n-0\r\n\r\n",
		"trailer without a colon": "5\r\nhello\r\n0\r\nabc\r\n\r\n", "trailer folded": "5\r\nhello\r\n0\r\nA: b\r\n c\r\n\r\n", "trailer bare LF": "5\r\nhello\r\n0\r\nA: b\n\r\n",
		"trailer bomb": "5\r\nhello\r\n0\r\nA: " + strings.Repeat("a", 17<<10) + "\r\n\r\n",
	} {
		out = append(out, smuggling{name: "chunk " + name, head: "Transfer-Encoding: chunked\r\n", body: body, answer: 400})
	}
	chunked := "Transfer-Encoding: chunked\r\n"
	return append(out,
		smuggling{name: "chunk extensions", head: chunked, body: "2;a=\"b\";c\r\nhe\r\n003 ;\t\r\nllo\r\n00;x\r\n\r\n", answer: 200, seen: posted},
		smuggling{name: "chunk trailers that frame", head: chunked, body: "5\r\nhello\r\n0\r\nContent-Length: 99\r\nTransfer-Encoding: x\r\nHost: b\r\nContent_Length: 9\r\n\r\n", answer: 200, seen: posted},
		smuggling{name: "chunk of a huge size", head: chunked, body: "FFFFFFFFFFFFFFF\r\nhello", answer: 0},
		smuggling{name: "no last chunk", head: chunked, body: "5\r\nhello\r\n", answer: 0},
		smuggling{name: "last chunk without an end", head: chunked, body: "5\r\nhello\r\n0\r\n", answer: 0},
		smuggling{name: "body too short", head: "Content-Length: 9\r\n", body: "hello", answer: 0},
		smuggling{name: "a request as chunk", head: chunked, body: fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(inner), inner), answer: 200, seen: []string{"POST /x " + inner}},
	)
}

func lineTricks() []smuggling {
	rest := "Host: a\r\nAUTH\r\n"
	var out []smuggling
	for name, line := range map[string]string{
		"HTTP/0.9": "GET http://127.0.0.1:PORT/x", "HTTP/2 preface": "PRI * HTTP/2.0", "HTTP/1.2": "GET http://127.0.0.1:PORT/x HTTP/1.2", "HTTP/11": "GET http://127.0.0.1:PORT/x HTTP/11",
		"http/1.1": "GET http://127.0.0.1:PORT/x http/1.1", "two blanks": "GET  http://127.0.0.1:PORT/x HTTP/1.1", "tab": "GET\thttp://127.0.0.1:PORT/x\tHTTP/1.1",
		"blank at the end": "GET http://127.0.0.1:PORT/x HTTP/1.1 ", "blank in front": " GET http://127.0.0.1:PORT/x HTTP/1.1", "two targets": "GET http://127.0.0.1:PORT/x /smuggled HTTP/1.1",
		"method": "GE(T http://127.0.0.1:PORT/x HTTP/1.1", "CR in the target": "GET http://127.0.0.1:PORT/x\r/smuggled HTTP/1.1", "NUL in the target": "GET http://127.0.0.1:PORT/\x00 HTTP/1.1",
		"origin form": "GET /x HTTP/1.1", "no authority": "GET http:///x HTTP/1.1", "backslash in the authority": `GET http://127.0.0.1:PORT\@evil.test/x HTTP/1.1`,
		"LF": "GET http://127.0.0.1:PORT/x HTTP/1.1\n", "three empty lines": "\r\n\r\n\r\nGET http://127.0.0.1:PORT/x HTTP/1.1",
	} {
		out = append(out, smuggling{name: "line " + name, raw: line + "\r\n" + rest, answer: 400})
	}
	return append(out,
		smuggling{name: "an empty line in front", raw: "\r\nGET http://127.0.0.1:PORT/x HTTP/1.1\r\n" + rest, answer: 200, seen: []string{"GET /x "}},
		smuggling{name: "authority unlike Host", raw: "GET http://127.0.0.1:PORT/x HTTP/1.1\r\nHost: evil.test\r\nHost: b\r\nAUTH\r\n", answer: 200, seen: []string{"GET /x "}},
		smuggling{name: "userinfo that looks like an authority", raw: "GET http://evil.test:80@127.0.0.1:PORT/x HTTP/1.1\r\n" + rest, answer: 200, seen: []string{"GET /x "}},
		smuggling{name: "encoded line break", raw: "GET http://127.0.0.1:PORT/x%0d%0aHost:%20b HTTP/1.1\r\n" + rest, answer: 200, seen: []string{"GET /x%0d%0aHost:%20b "}},
	)
}

func headTricks() []smuggling {
	get := "GET http://127.0.0.1:PORT/x HTTP/1.1\r\n"
	return []smuggling{
		{name: "no Host", raw: get + "AUTH\r\n", answer: 400},
		{name: "header bomb", head: "X: " + strings.Repeat("a", 17<<10) + "\r\n", answer: 431},
		{name: "4,000 headers", head: strings.Repeat("a:b\r\n", 4000), answer: 431},
		{name: "request line bomb", raw: "GET http://127.0.0.1:PORT/" + strings.Repeat("a", 17<<10) + " HTTP/1.1\r\nHost: a\r\n\r\n", answer: 431},
		{name: "many headers", head: strings.Repeat("a:b\r\n", 80) + "Content-Length: 5\r\n", body: "hello", answer: 200, seen: posted},
		{name: "bytes beyond ASCII in a value", head: "X: \xff\x80\r\nContent-Length: 5\r\n", body: "hello", answer: 200, seen: posted},
		{name: "Expect other", head: "Expect: 200-ok\r\nContent-Length: 5\r\n", body: "hello", answer: 417},
		{name: "Expect twice", head: "Expect: 100-continue\r\nExpect: 100-continue\r\nContent-Length: 5\r\n", body: "hello", answer: 417},
		{name: "Upgrade", head: "Connection: Upgrade, HTTP2-Settings, close\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\nContent-Length: 5\r\n", body: "hello", answer: 200, seen: posted},
		{name: "pipelined behind a 400", raw: get + "A b: c\r\nHost: a\r\nAUTH\r\n" + strings.Replace(get, "/x", "/smuggled", 1) + "Host: a\r\nAUTH\r\n", answer: 400},
		{name: "body of a refused request", raw: fmt.Sprintf("POST http://evil.test/ HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\nAUTH\r\n%s", 200,
			strings.Replace(get, "/x", "/smuggled", 1)+"Host: a\r\nAUTH\r\n"), answer: 403},
		{name: "body of a request without credentials", raw: fmt.Sprintf("POST http://127.0.0.1:PORT/ HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n%s", 200,
			strings.Replace(get, "/x", "/smuggled", 1)+"Host: a\r\nAUTH\r\n"), answer: 407},
	}
}

func (s smuggling) input(port int) string {
	in := s.raw
	if in == "" {
		in = "POST http://127.0.0.1:PORT/x HTTP/1.1\r\nHost: a\r\nAUTH" + s.head + "\r\n" + s.body
	}
	return strings.NewReplacer("PORT", fmt.Sprint(port), "AUTH", auth).Replace(in)
}

// judges are upstream servers that parse by other people's code.
func judges(t *testing.T) map[string]*judgeServer {
	out := map[string]*judgeServer{"net/http": goJudge(t)}
	for name, args := range map[string][]string{"python3": {"python3", "testdata/judge.py"}, "node": {"node", "testdata/judge.js"}} {
		if path, err := exec.LookPath(args[0]); err == nil {
			out[name] = childJudge(t, path, args[1:])
		}
	}
	return out
}

// judgeServer tells what it has seen: complete requests, and how many connections are open.
type judgeServer struct {
	port int

	mu   sync.Mutex
	seen []string
	open int
}

func (j *judgeServer) note(request string, open int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if request != "" {
		j.seen = append(j.seen, request)
	}
	j.open += open
}

// verdict waits until every connection is closed and returns what was seen since the last call.
func (j *judgeServer) verdict(t *testing.T) []string {
	// What a server has accepted may be in its queue still, and what it notes on the way here. A connection of the test's
	// own comes after all that.
	p := connect(t, fmt.Sprintf("127.0.0.1:%d", j.port))
	p.send("GET /last HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nConnection: close\r\n\r\n", j.port)
	_ = p.rest()
	p.Close()
	const last = "GET /last "
	if !settles(func() bool { j.mu.Lock(); defer j.mu.Unlock(); return j.open == 0 && slices.Contains(j.seen, last) }) {
		t.Error("a connection stays open")
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	seen := slices.DeleteFunc(j.seen, func(r string) bool { return r == last })
	j.seen = nil
	if len(seen) == 0 {
		return nil
	}
	return seen
}

func goJudge(t *testing.T) *judgeServer {
	j := &judgeServer{}
	l := listen(t)
	j.port = l.Addr().(*net.TCPAddr).Port
	server := &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				return
			}
			if r.Host != fmt.Sprintf("127.0.0.1:%d", j.port) {
				t.Errorf("Host %q", r.Host)
			}
			j.note(r.Method+" "+r.RequestURI+" "+string(body), 0)
			_, _ = io.WriteString(w, "hi")
		}),
		ConnState: func(_ net.Conn, state http.ConnState) {
			switch state {
			case http.StateNew:
				j.note("", 1)
			case http.StateClosed:
				j.note("", -1)
			}
		},
	}
	go func() { _ = server.Serve(l) }()
	t.Cleanup(func() { server.Close() })
	return j
}

// childJudge runs a server that writes a line of JSON for its port, each complete request and each change of the number of
// open connections. It ends with its standard input.
func childJudge(t *testing.T, path string, args []string) *judgeServer {
	cmd := exec.Command(path, args...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	var first struct{ Port int }
	if !lines.Scan() || json.Unmarshal(lines.Bytes(), &first) != nil || first.Port == 0 {
		t.Fatalf("%s does not start: %q, %v", path, lines.Text(), lines.Err())
	}
	j := &judgeServer{port: first.Port}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for lines.Scan() {
			var line struct {
				Request, Host string
				Open          int
			}
			if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
				t.Errorf("%q: %v", lines.Text(), err)
			}
			if line.Request != "" && line.Host != fmt.Sprintf("127.0.0.1:%d", j.port) {
				t.Errorf("Host %q", line.Host)
			}
			j.note(line.Request, line.Open)
		}
	}()
	t.Cleanup(func() {
		in.Close()
		<-done
		_ = cmd.Wait()
	})
	return j
}

// TestNET31_Smuggling: each input is refused, or forwarded so that other parsers see exactly the one request.
func TestNET31_Smuggling(t *testing.T) {
	for name, judge := range judges(t) {
		t.Run(name, func(t *testing.T) {
			for _, tc := range smugglings() {
				t.Run(tc.name, func(t *testing.T) { smuggle(t, judge, tc) })
			}
		})
	}
}

func smuggle(t *testing.T, judge *judgeServer, tc smuggling) {
	h := start(t, baseRules)
	p := h.dial()
	p.send("%s", tc.input(judge.port))
	if tc.answer != 0 {
		resp, err := http.ReadResponse(p.br, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadAll(resp.Body); err != nil || resp.StatusCode != tc.answer {
			t.Errorf("answer %d, %v, want %d", resp.StatusCode, err, tc.answer)
		}
	}
	p.Close()
	_ = h.server.Close() // with every connection to the upstream server
	if got := judge.verdict(t); !slices.Equal(got, tc.seen) {
		t.Errorf("upstream saw %q, want %q", got, tc.seen)
	}
}
