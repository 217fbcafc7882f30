package httphead

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
)

func readAll(s string) ([]byte, error) {
	return ReadHead(bufio.NewReaderSize(strings.NewReader(s), 64), nil)
}

func TestReadHead(t *testing.T) {
	long := "A: " + strings.Repeat("a", Limit)
	for _, tc := range []struct {
		in   string
		want string
		err  error
	}{
		{"GET / HTTP/1.1\r\nA: b\r\n\r\nbody", "GET / HTTP/1.1\r\nA: b\r\n\r\n", nil},
		{"A: " + strings.Repeat("a", 1000) + "\r\n\r\n", "A: " + strings.Repeat("a", 1000) + "\r\n\r\n", nil},
		{"\r\nrest", "\r\n", nil},
		{"", "", io.EOF},
		{"GET / HTTP/1.1\r\n", "", io.ErrUnexpectedEOF},
		{"GET", "", io.ErrUnexpectedEOF},
		{"GET / HTTP/1.1\n\n", "", ErrMalformed},
		{"GET / HTTP/1.1\r\nA: b\n\r\n", "", ErrMalformed},
		{"\n", "", ErrMalformed},
		{long + "\r\n\r\n", "", ErrTooLarge},
		{strings.Repeat("A: b\r\n", Limit/6+1) + "\r\n", "", ErrTooLarge},
	} {
		got, err := readAll(tc.in)
		if !errors.Is(err, tc.err) || err == nil && string(got) != tc.want {
			t.Errorf("%.40q: %q, %v", tc.in, got, err)
		}
	}
}

func TestNET31_ParseRequest(t *testing.T) {
	for _, tc := range []struct {
		head string
		ok   bool
	}{
		{"GET / HTTP/1.1\r\n\r\n", true},
		{"GET / HTTP/1.0\r\nA:\r\nB: \t x y \xff\t\r\n\r\n", true},
		{"get! \x80 HTTP/1.1\r\n\r\n", true},
		{"GET / HTTP/1.1 \r\n\r\n", false},
		{"GET / HTTP/2.0\r\n\r\n", false},
		{"GET / http/1.1\r\n\r\n", false},
		{"GET  / HTTP/1.1\r\n\r\n", false},
		{"GET /a b HTTP/1.1\r\n\r\n", false},
		{"GET /\tb HTTP/1.1\r\n\r\n", false},
		{"GET /\x00 HTTP/1.1\r\n\r\n", false},
		{" / HTTP/1.1\r\n\r\n", false},
		{"GET\r\n\r\n", false},
		{"GE(T / HTTP/1.1\r\n\r\n", false},
		{"GET / HTTP/1.1\r\nA\r\n\r\n", false},
		{"GET / HTTP/1.1\r\n: x\r\n\r\n", false},
		{"GET / HTTP/1.1\r\nA : x\r\n\r\n", false},
		{"GET / HTTP/1.1\r\nA: x\r\n y\r\n\r\n", false},
		{"GET / HTTP/1.1\r\nA: x\ry\r\n\r\n", false},
		{"GET / HTTP/1.1\r\nA: x\x7f\r\n\r\n", false},
		{"GET / HTTP/1.1\r\nÄ: x\r\n\r\n", false},
	} {
		if _, err := ParseRequest([]byte(tc.head)); (err == nil) != tc.ok {
			t.Errorf("%q: %v", tc.head, err)
		}
	}
	r, err := ParseRequest([]byte("GET /a HTTP/1.1\r\nhOst: \t x \r\nHOST:y\r\n\r\n"))
	if err != nil || r.Method != "GET" || r.Target != "/a" || r.Minor != 1 ||
		string(r.Header.Append(nil)) != "hOst: x\r\nHOST: y\r\n" {
		t.Errorf("%+v, %v", r, err)
	}
	if v, n := r.Header.Get("host"); v != "x" || n != 2 {
		t.Errorf("Get: %q, %d", v, n)
	}
}

func TestNET33_ParseResponse(t *testing.T) {
	for _, tc := range []struct {
		head   string
		status int
		reason string
	}{
		{"HTTP/1.1 200 OK\r\n\r\n", 200, "OK"},
		{"HTTP/1.1 200\r\n\r\n", 200, ""},
		{"HTTP/1.0 999  two  \r\n\r\n", 999, " two  "},
		{"HTTP/1.1 099 X\r\n\r\n", 0, ""},
		{"HTTP/1.1 1000 X\r\n\r\n", 0, ""},
		{"HTTP/1.1 20 X\r\n\r\n", 0, ""},
		{"HTTP/1.1 2x0 X\r\n\r\n", 0, ""},
		{"HTTP/1.1 200 \x01\r\n\r\n", 0, ""},
		{"HTTP/2 200 OK\r\n\r\n", 0, ""},
		{"HTTP/1.1 200 OK\r\nA b: c\r\n\r\n", 0, ""},
	} {
		r, err := ParseResponse([]byte(tc.head))
		if (err != nil) != (tc.status == 0) || err == nil && (r.Status != tc.status || r.Reason != tc.reason) {
			t.Errorf("%q: %+v, %v", tc.head, r, err)
		}
	}
}

func TestNET31_Framing(t *testing.T) {
	for _, tc := range []struct {
		minor           int
		header          string
		request, answer any // Framing, or nil for an error
		length          int64
	}{
		{1, "", NoBody, UntilClose, 0},
		{1, "Content-Length: 5\r\n", ByLength, ByLength, 5},
		{0, "content-length: 0\r\n", ByLength, ByLength, 0},
		{1, "Transfer-Encoding: CHUNKED\r\n", Chunked, Chunked, 0},
		{0, "Transfer-Encoding: chunked\r\n", nil, nil, 0},
		{1, "Transfer-Encoding: gzip, chunked\r\n", nil, nil, 0},
		{1, "Transfer-Encoding: identity\r\n", nil, nil, 0},
		{1, "Transfer-Encoding: chun\u212aed\r\n", nil, nil, 0}, // the Kelvin sign
		{1, "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", nil, nil, 0},
		{1, "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n", nil, nil, 0},
		{1, "Content-Length: 5\r\nContent-Length: 5\r\n", nil, nil, 0},
		{1, "Content-Length: 5, 5\r\n", nil, nil, 0},
		{1, "Content-Length: +5\r\n", nil, nil, 0},
		{1, "Content-Length: 0x5\r\n", nil, nil, 0},
		{1, "Content-Length:\r\n", nil, nil, 0},
		{1, "Content-Length: 99999999999999999999\r\n", nil, nil, 0},
	} {
		version := map[int]string{0: "HTTP/1.0", 1: "HTTP/1.1"}[tc.minor]
		req, err := ParseRequest([]byte("POST / " + version + "\r\n" + tc.header + "\r\n"))
		if err != nil {
			t.Fatal(err)
		}
		check := func(kind string, f Framing, n int64, err error, want any) {
			if want == nil && !errors.Is(err, ErrMalformed) || want != nil && (err != nil || f != want || n != tc.length) {
				t.Errorf("%s %q: %v, %d, %v", kind, tc.header, f, n, err)
			}
		}
		f, n, err := req.Framing()
		check("request", f, n, err, tc.request)
		resp, err := ParseResponse([]byte(version + " 200 OK\r\n" + tc.header + "\r\n"))
		if err != nil {
			t.Fatal(err)
		}
		f, n, err = resp.Framing("GET")
		check("response", f, n, err, tc.answer)
		if tc.answer != nil {
			for _, bodyless := range []struct {
				status int
				method string
			}{{200, "HEAD"}, {204, "GET"}, {304, "GET"}, {103, "GET"}} {
				resp.Status = bodyless.status
				if f, n, err := resp.Framing(bodyless.method); f != NoBody || n != 0 || err != nil {
					t.Errorf("%+v %q: %v", bodyless, tc.header, f)
				}
			}
		}
	}
}

func TestChunkedReader(t *testing.T) {
	for _, tc := range []struct{ in, body, rest string }{
		{"0\r\n\r\nnext", "", "next"},
		{"3\r\nabc\r\nA;x=\"y\"\r\n0123456789\r\n000\r\nT: 1\r\n\r\nnext", "abc0123456789", "next"},
		{"1 ;x\r\na\r\n0\r\n\r\n", "a", ""},
	} {
		br := bufio.NewReader(strings.NewReader(tc.in))
		body, err := io.ReadAll(NewChunkedReader(br))
		rest, _ := io.ReadAll(br)
		if err != nil || string(body) != tc.body || string(rest) != tc.rest {
			t.Errorf("%q: %q, %q, %v", tc.in, body, rest, err)
		}
	}
	for in, want := range map[string]error{
		"":                     io.ErrUnexpectedEOF,
		"3\r\nab":              io.ErrUnexpectedEOF,
		"3\r\nabc":             io.ErrUnexpectedEOF,
		"3\r\nabc\r\n":         io.ErrUnexpectedEOF,
		"0\r\n":                io.ErrUnexpectedEOF,
		"3\nabc\r\n0\r\n\r\n":  ErrMalformed,
		"3\r\nabcd\r\n0\r\n":   ErrMalformed,
		"-1\r\n":               ErrMalformed,
		"+3\r\nabc\r\n":        ErrMalformed,
		"0x3\r\nabc\r\n":       ErrMalformed,
		"g\r\n":                ErrMalformed,
		"\r\n":                 ErrMalformed,
		" 3\r\nabc\r\n":        ErrMalformed,
		"3 \r\nabc\r\n":        ErrMalformed,
		"3;\x00\r\nabc\r\n":    ErrMalformed,
		"1000000000000000\r\n": ErrMalformed,
		"1;" + strings.Repeat("x", maxChunkLine) + "\r\n":    ErrMalformed,
		"0\r\nA b: c\r\n\r\n":                                ErrMalformed,
		"0\r\nA: " + strings.Repeat("x", Limit) + "\r\n\r\n": ErrTooLarge,
	} {
		if _, err := io.ReadAll(NewChunkedReader(bufio.NewReader(strings.NewReader(in)))); !errors.Is(err, want) {
			t.Errorf("%.40q: %v, want %v", in, err, want)
		}
	}
}

// FuzzRequestHead checks that a parsed head survives being written and parsed again, and that nothing in it can end a
// line early: what this parser reads is what the next server reads.
func FuzzRequestHead(f *testing.F) {
	f.Fuzz(func(t *testing.T, data []byte) {
		head, err := ReadHead(bufio.NewReaderSize(bytes.NewReader(data), 16), nil)
		if err != nil {
			return
		}
		r, err := ParseRequest(head)
		if err != nil {
			return
		}
		checkHeader(t, r.Header)
		written := append([]byte(r.Method+" "+r.Target+" HTTP/1."+string(rune('0'+r.Minor))+"\r\n"), append(r.Header.Append(nil), "\r\n"...)...)
		again, err := ParseRequest(written)
		if err != nil || again.Method != r.Method || again.Target != r.Target || !bytes.Equal(again.Header.Append(nil), r.Header.Append(nil)) {
			t.Errorf("%q read again as %+v, %v", written, again, err)
		}
		framing, n, err := r.Framing()
		_, lengths := r.Header.Get("content-length")
		_, codings := r.Header.Get("transfer-encoding")
		if err == nil && (n < 0 || lengths+codings > 1 || (framing == NoBody) != (lengths+codings == 0)) {
			t.Errorf("%q: framing %v", head, framing)
		}
	})
}

// FuzzResponseHead does the same for responses and for a chunked body that follows.
func FuzzResponseHead(f *testing.F) {
	f.Fuzz(func(t *testing.T, data []byte) {
		br := bufio.NewReaderSize(bytes.NewReader(data), 16)
		head, err := ReadHead(br, nil)
		if err != nil {
			return
		}
		r, err := ParseResponse(head)
		if err != nil {
			return
		}
		checkHeader(t, r.Header)
		if r.Status < 100 || r.Status > 999 || strings.ContainsAny(r.Reason, "\r\n\x00") {
			t.Errorf("%+v", r)
		}
		if framing, _, err := r.Framing("GET"); err != nil || framing != Chunked {
			return
		}
		c := NewChunkedReader(br)
		body, err := io.ReadAll(c)
		if err != nil {
			return
		}
		checkHeader(t, c.Trailer())
		var out bytes.Buffer
		w := bufio.NewWriter(&out)
		_ = WriteChunk(w, body)
		_ = WriteLastChunk(w, c.Trailer())
		_ = w.Flush()
		again, err := io.ReadAll(NewChunkedReader(bufio.NewReader(&out)))
		if err != nil || !bytes.Equal(again, body) {
			t.Errorf("%q written again reads as %q, %v", body, again, err)
		}
	})
}

func checkHeader(t *testing.T, h Header) {
	for _, f := range h {
		if f.Name == "" || strings.ContainsAny(f.Name, " \t:\r\n\x00") || strings.ContainsAny(f.Value, "\r\n\x00") || f.Value != trimBlank(f.Value) {
			t.Errorf("field %+v", f)
		}
	}
}

func TestREQ19_Fold(t *testing.T) {
	for in, want := range map[string]string{
		"X_Api.Key": "x-api-key", "x-api-key": "x-api-key", "A1!~": "a1!~", "": "", "\u212Aey": "\u212Aey",
	} {
		if got := Fold(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}
