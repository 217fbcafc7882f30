package inspect

import (
	"strings"
	"testing"
)

// TestTLS34_RequestFraming holds raw bytes of a client against raw bytes at the server.
func TestTLS34_RequestFraming(t *testing.T) {
	for _, tc := range []struct{ name, in, up string }{
		{
			"TLS-34 no body", "GET /a?b=%zz HTTP/1.1\r\nHost: x\r\nA: 1\r\na: 2\r\nConnection: close\r\n\r\n",
			"GET /a?b=%zz HTTP/1.1\r\nHost: up.test\r\nA: 1\r\na: 2\r\n\r\n",
		},
		{
			"TLS-34 Content-Length kept", "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nConnection: close\r\n\r\nabc",
			"POST / HTTP/1.1\r\nHost: up.test\r\nContent-Length: 3\r\n\r\nabc",
		},
		{
			"TLS-34 Content-Length 0 declares a body", "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
			"POST / HTTP/1.1\r\nHost: up.test\r\nContent-Length: 0\r\n\r\n",
		},
		{
			"TLS-34 POST without a body", "POST / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
			"POST / HTTP/1.1\r\nHost: up.test\r\n\r\n",
		},
		{
			"TLS-34 GET with chunked", "GET / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n3;x=y\r\nabc\r\n0\r\n\r\n",
			"GET / HTTP/1.1\r\nHost: up.test\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
		},
		{
			"TLS-34 DELETE with Content-Length", "DELETE /x HTTP/1.1\r\nHost: x\r\ncontent-length: 1\r\nConnection: close\r\n\r\nz",
			"DELETE /x HTTP/1.1\r\nHost: up.test\r\nContent-Length: 1\r\n\r\nz",
		},
		{
			"TLS-32 trailers end here", "POST / HTTP/1.1\r\nHost: x\r\nTrailer: t\r\nTransfer-Encoding: Chunked\r\nConnection: close\r\n\r\n1\r\na\r\n0\r\nT: u\r\n\r\n",
			"POST / HTTP/1.1\r\nHost: up.test\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n",
		},
		{
			"TLS-34 empty chunked body", "PUT / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n0\r\n\r\n",
			"PUT / HTTP/1.1\r\nHost: up.test\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		},
		{
			"TLS-29 HTTP/1.0", "POST / HTTP/1.0\r\nContent-Length: 1\r\n\r\na",
			"POST / HTTP/1.1\r\nHost: up.test\r\nContent-Length: 1\r\n\r\na",
		},
		{
			"TLS-32 what belongs to a connection", "GET / HTTP/1.1\r\nHost: x\r\nTE: trailers\r\nKeep-Alive: 1\r\nProxy-Connection: a\r\n" +
				"Proxy_Authorization: b\r\nTransfer.Encoding: chunked\r\nContent_Length: 9\r\nUpgrade: h2c\r\nB: \xe9\x85\r\nConnection: close\r\n\r\n",
			"GET / HTTP/1.1\r\nHost: up.test\r\nB: \xe9\x85\r\n\r\n",
		},
		{
			"TLS-34 Expect is not forwarded", "POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 1\r\nConnection: close\r\n\r\na",
			"POST / HTTP/1.1\r\nHost: up.test\r\nContent-Length: 1\r\n\r\na",
		},
		{
			"RFC 9112 2.2 one empty line first", "\r\nGET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
			"GET / HTTP/1.1\r\nHost: up.test\r\n\r\n",
		},
		{
			"TLS-29 pipelined", "POST /1 HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nabGET /2 HTTP/1.1\r\nHost: x\r\n\r\n" +
				"PUT /3 HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n1\r\nz\r\n0\r\n\r\n",
			"POST /1 HTTP/1.1\r\nHost: up.test\r\nContent-Length: 2\r\n\r\nabGET /2 HTTP/1.1\r\nHost: up.test\r\n\r\n" +
				"PUT /3 HTTP/1.1\r\nHost: up.test\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nz\r\n0\r\n\r\n",
		},
		{
			"REQ-8 the method is the client's", "pRoPfInD * HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
			"pRoPfInD * HTTP/1.1\r\nHost: up.test\r\n\r\n",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			o, h := &origin{answer: always(ok200)}, &passing{}
			up, back := exchanged(t, h, o, tc.in)
			if up != tc.up {
				t.Errorf("upstream got\n%q, want\n%q", up, tc.up)
			}
			if !strings.HasSuffix(back, "ok") || len(h.failures)+len(h.malformed) > 0 || o.dials != 1 {
				t.Errorf("back %q, %v %v, %d dials", back, h.failures, h.malformed, o.dials)
			}
		})
	}
}

// TestTLS30_Hostile: each is answered 400 and nothing of it is dialled or forwarded, and what follows is not a request.
func TestTLS30_Hostile(t *testing.T) {
	const evil = "GET /evil HTTP/1.1\r\nHost: x\r\n\r\n"
	for _, tc := range []struct{ name, in, what string }{
		{"CL and TE", "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "together"},
		{"two CL", "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nContent-Length: 3\r\n\r\nabc", "repeated Content-Length"},
		{"CL list", "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5, 5\r\n\r\nabcde", "invalid Content-Length"},
		{"negative CL", "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n", "invalid Content-Length"},
		{"signed CL", "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: +1\r\n\r\na", "invalid Content-Length"},
		{"empty CL", "POST / HTTP/1.1\r\nHost: x\r\nContent-Length:\r\n\r\n", "invalid Content-Length"},
		{"hex CL", "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 0x1\r\n\r\na", "invalid Content-Length"},
		{"huge CL", "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9223372036854775808\r\n\r\na", "invalid Content-Length"},
		{"TE gzip", "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", "coding"},
		{"TE xchunked", "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", "coding"},
		{"TE twice", "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "repeated"},
		{"TE identity", "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: identity\r\n\r\n", "coding"},
		{"TE chunked with 1.0", "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "coding"},
		{"TE behind a vertical tab", "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding:\x0bchunked\r\n\r\n0\r\n\r\n", "header value"},
		{"TE with 0x85", "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\x85\r\n\r\n0\r\n\r\n", "coding"},
		{"space before the colon", "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding : chunked\r\n\r\n0\r\n\r\n", "space before a colon"},
		{"folded line", "GET / HTTP/1.1\r\nHost: x\r\nA: b\r\n c\r\n\r\n", "folded"},
		{"folded first line", "GET / HTTP/1.1\r\n Host: x\r\n\r\n", "folded"},
		{"bare LF in the head", "GET / HTTP/1.1\r\nHost: x\nA: b\r\n\r\n", "LF without CR"},
		{"bare LF in the request line", "GET / HTTP/1.1\nHost: x\r\n\r\n", "LF without CR"},
		{"bare LF at the end", "GET / HTTP/1.1\r\nHost: x\r\n\n", "LF without CR"},
		{"bare CR", "GET / HTTP/1.1\r\nHost: x\rA: b\r\n\r\n", "header value"},
		{"NUL in a value", "GET / HTTP/1.1\r\nHost: x\r\nA: \x00\r\n\r\n", "header value"},
		{"NUL in a name", "GET / HTTP/1.1\r\nHost: x\r\nA\x00: b\r\n\r\n", "header name"},
		{"name beyond ASCII", "GET / HTTP/1.1\r\nHost: x\r\n\u00e9: b\r\n\r\n", "header name"},
		{"empty name", "GET / HTTP/1.1\r\nHost: x\r\n: b\r\n\r\n", "header name"},
		{"no colon", "GET / HTTP/1.1\r\nHost: x\r\nA\r\n\r\n", "colon"},
		{"no Host", "GET / HTTP/1.1\r\nA: b\r\n\r\n", "no Host"},
		{"space in the target", "GET /a b HTTP/1.1\r\nHost: x\r\n\r\n", "target"},
		{"raw é in the target", "GET /\u00e9 HTTP/1.1\r\nHost: x\r\n\r\n", "target"},
		{"tab in the target", "GET /\t HTTP/1.1\r\nHost: x\r\n\r\n", "target"},
		{"two spaces", "GET  / HTTP/1.1\r\nHost: x\r\n\r\n", "target"},
		{"HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "request line"},
		{"HTTP/0.9", "GET /\r\n\r\n", "request line"},
		{"HTTP/1.2", "GET / HTTP/1.2\r\nHost: x\r\n\r\n", "request line"},
		{"lower-case version", "GET / http/1.1\r\nHost: x\r\n\r\n", "request line"},
		{"two empty lines first", "\r\n\r\n", "request line"},
		{"TLS inside", "\x16\x03\x01\x00\x05hello\r\n\r\n", "request line"},
		{"long head", "GET / HTTP/1.1\r\nHost: x\r\nA: " + strings.Repeat("a", 16<<10) + "\r\n\r\n", "too long"},
		{"long line without end", strings.Repeat("a", 16<<10+1), "too long"},
		{"chunk size overflow", chunkedPost("10000000000000001\r\na\r\n0\r\n\r\n"), "chunk"},
		{"chunk size negative", chunkedPost("-1\r\na\r\n0\r\n\r\n"), "chunk"},
		{"chunk size with 0x", chunkedPost("0x1\r\na\r\n0\r\n\r\n"), "chunk"},
		{"chunk size empty", chunkedPost("\r\na\r\n0\r\n\r\n"), "chunk"},
		{"chunk without CRLF", chunkedPost("1\r\naX0\r\n\r\n"), "chunk"},
		{"chunk line with bare LF", chunkedPost("1\na\r\n0\r\n\r\n"), "chunk"},
		{"long chunk extension", chunkedPost("1;" + strings.Repeat("x", 5000) + "\r\na\r\n0\r\n\r\n"), "chunk"},
		{"control in a chunk extension", chunkedPost("1;\x00\r\na\r\n0\r\n\r\n"), "chunk"},
		{"long trailer", chunkedPost("0\r\nA: " + strings.Repeat("x", 17000) + "\r\n\r\n"), "chunk"},
		{"bad trailer", chunkedPost("0\r\nA : x\r\n\r\n"), "chunk"},
	} {
		t.Run("TLS-30 "+tc.name, func(t *testing.T) {
			o, h := &origin{answer: always(ok200)}, &passing{}
			up, back := exchanged(t, h, o, tc.in+evil)
			if !strings.HasPrefix(back, "HTTP/1.1 400 ") || strings.Count(back, "HTTP/1.1") != 1 {
				t.Errorf("back %q", back)
			}
			if len(h.malformed) != 1 || !strings.Contains(h.malformed[0].What, tc.what) ||
				h.malformed[0].Target != (tc.what == "target") {
				t.Errorf("told %+v", h.malformed)
			}
			if strings.Contains(up, "0\r\n\r\n") || strings.Contains(up, "evil") || o.dials > 0 && tc.what != "chunk" {
				t.Errorf("upstream got %q", up)
			}
		})
	}
}

func chunkedPost(body string) string {
	return "POST /p HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n" + body
}

// TestTLS31_MalformedSpelled: what is known of a malformed request is told, for its report.
func TestTLS31_MalformedSpelled(t *testing.T) {
	for _, tc := range []struct{ in, method, spelled string }{
		{"GET /a b?x HTTP/1.1\r\nHost: x\r\n\r\n", "GET", "/a b?x"},
		{"GET /a HTTP/1.1\r\nHost : x\r\n\r\n", "GET", "/a"},
		{"POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: x\r\n\r\n", "POST", "/a"},
		{"(GET /a HTTP/1.1\r\nHost: x\r\n\r\n", "", ""},
		{"GET /a HTTP/1.1\n\r\n", "GET", "/a"},
		{chunkedPost("x\r\n"), "POST", "/p"},
	} {
		o, h := &origin{answer: always(ok200)}, &passing{}
		exchanged(t, h, o, tc.in)
		if len(h.malformed) != 1 || h.malformed[0].Method != tc.method || h.malformed[0].Spelled != tc.spelled {
			t.Errorf("%q: %+v", tc.in, h.malformed)
		}
	}
}

// TestTLS31_Left: a client that merely left is told nothing, and nobody is told of it.
func TestTLS31_Left(t *testing.T) {
	for _, in := range []string{"", "\r\n", "GET", "GET / HTTP/1.1\r\nHost: x\r\n"} {
		h := &passing{}
		s := serve(t.Context(), t, h, quick)
		s.send(in)
		if err := s.CloseWrite(); err != nil {
			t.Fatal(err)
		}
		if back := s.rest(); back != "" || len(h.malformed) > 0 {
			t.Errorf("%q: %q, %v", in, back, h.malformed)
		}
	}
}
