package inspect

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"math/big"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// tlsPair is a connection with TLS on both ends.
func tlsPair(t testing.TB) (client, server *tls.Conn) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{"x"}, NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(cert)
	near, far := pair(t)
	client = tls.Client(near, &tls.Config{ServerName: "x", RootCAs: roots})
	server = tls.Server(far, &tls.Config{
		Certificates:                []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}},
		DynamicRecordSizingDisabled: true,
	})
	done := make(chan error)
	go func() { done <- server.Handshake() }()
	if err := errors.Join(client.Handshake(), <-done); err != nil {
		t.Fatal(err)
	}
	return client, server
}

// overTLS serves one end of a TLS connection, with the server behind TLS as well.
func overTLS(t testing.TB, h *passing, o *origin, l Limits) *tls.Conn {
	h.dial = func(ctx) (net.Conn, error) {
		near, far := tlsPair(t)
		o.mu.Lock()
		o.dials++
		o.mu.Unlock()
		go func() {
			defer far.Close()
			o.serve(far)
		}()
		return near, nil
	}
	client, server := tlsPair(t)
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer server.Close()
		Serve(t.Context(), server, bufio.NewReader(server), h, l)
	}()
	t.Cleanup(func() { client.NetConn().Close(); <-done })
	return client
}

// TestTLS38_OverTLS: requests one after the other on the same two TLS connections, and stray bytes of the server's, which
// TLS may hold where no socket shows them.
func TestTLS38_OverTLS(t *testing.T) {
	for _, tc := range []struct {
		answer string
		dials  int
	}{{ok200, 1}, {ok200 + "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil", 3}} {
		o := &origin{t: t, answer: always(tc.answer)}
		c := overTLS(t, &passing{}, o, quick)
		for range 3 {
			io.WriteString(c, get)
			got := make([]byte, len(kept))
			if _, err := io.ReadFull(c, got); err != nil || string(got) != kept {
				t.Fatalf("%q, %v", got, err)
			}
		}
		if o.dials != tc.dials {
			t.Errorf("%d dials, want %d", o.dials, tc.dials)
		}
	}
}

// TestUpstream_LeftInTLS: bytes that only the TLS layer of a connection still holds are found.
func TestTLS38_LeftInTLS(t *testing.T) {
	client, server := tlsPair(t)
	u := &upstream{conn: client}
	if first := u.quiet(); !first || !u.quiet() { // asking takes nothing away
		t.Error("a quiet connection is not")
	}
	io.WriteString(server, "0123456789")
	io.ReadFull(client, make([]byte, 4)) // the whole record is in the TLS layer now
	if u.quiet() {
		t.Error("bytes are left")
	}
	near, far := pair(t)
	u = &upstream{conn: near}
	if !u.quiet() {
		t.Error("a quiet connection is not")
	}
	far.CloseWrite()
	if _, err := near.Read(make([]byte, 1)); !errors.Is(err, io.EOF) || u.quiet() {
		t.Error("a connection that the server has ended is")
	}
	here, _ := net.Pipe()
	if !(&upstream{conn: here}).quiet() {
		t.Error("a quiet pipe is not")
	}
}

// TestTLS43_Idle: a connection without a complete head gets close_notify and FIN, and is cut later.
func TestTLS43_Idle(t *testing.T) {
	for name, in := range map[string]string{"nothing": "", "part of a head": "GET / HTTP/1.1\r\n", "after a response": get} {
		l := Limits{FirstHead: 100 * time.Millisecond, Idle: 100 * time.Millisecond}
		c := overTLS(t, &passing{}, &origin{t: t, answer: always(ok200)}, l)
		io.WriteString(c, in)
		got, err := io.ReadAll(c)
		if err != nil || in == get && string(got) != kept || in != get && len(got) > 0 {
			t.Errorf("%s: %q, %v", name, got, err) // without a close_notify ReadAll fails
		}
		// Nothing of the client's is read as a request from now on, and the cut follows: a write fails in the end.
		for err == nil {
			_, err = io.WriteString(c.NetConn(), "more")
		}
	}
}

// TestTLS44_Stalled: an upload that nobody takes, one that does not come, and a response that nobody reads are cut.
func TestTLS44_Stalled(t *testing.T) {
	silent := func(ctx) (net.Conn, error) {
		near, far := pair(t)
		t.Cleanup(func() { far.Close() })
		return near, nil
	}
	endless := func(ctx) (net.Conn, error) {
		near, far := pair(t)
		go func() {
			defer far.Close()
			io.WriteString(far, "HTTP/1.1 200 OK\r\n\r\n")
			for {
				if _, err := far.Write(make([]byte, 64<<10)); err != nil {
					return
				}
			}
		}()
		return near, nil
	}
	post := "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000000\r\n\r\n"
	for _, tc := range []struct {
		name string
		dial func(ctx) (net.Conn, error)
		in   string
		fill bool
	}{
		{"an upload that does not come", silent, post + "abc", false},
		{"an upload that nobody takes", silent, post, true},
		{"a response that nobody reads", endless, get, false},
	} {
		h := &passing{dial: tc.dial}
		s := serve(t.Context(), t, h, Limits{Stall: 250 * time.Millisecond})
		s.send(tc.in)
		var err error
		for tc.fill && err == nil {
			_, err = s.Write(make([]byte, 64<<10))
		}
		<-s.done
		if _, readErr := io.Copy(io.Discard, s); err == nil && readErr == nil {
			t.Errorf("%s: an orderly end", tc.name)
		}
		if len(h.failures) > 0 {
			t.Errorf("%s: %v", tc.name, h.failures)
		}
	}
}

// TestTLS39_NotStalled: a complete request waits for its response without limit, and so does a response for more of itself.
func TestTLS39_NotStalled(t *testing.T) {
	h, release := &passing{}, make(chan struct{})
	h.dial = func(ctx) (net.Conn, error) {
		near, far := pair(t)
		go func() {
			defer far.Close()
			if _, err := http.ReadRequest(bufio.NewReader(far)); err != nil {
				return
			}
			<-release
			io.WriteString(far, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\no")
			<-release
			io.WriteString(far, "k")
		}()
		return near, nil
	}
	s := serve(t.Context(), t, h, Limits{Stall: 25 * time.Millisecond, Linger: time.Millisecond})
	s.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nConnection: close\r\n\r\nabc")
	for range 2 {
		<-time.After(100 * time.Millisecond)
		release <- struct{}{}
	}
	if back := s.rest(); back != closed {
		t.Errorf("back %q", back)
	}
}

// TestTLS35_Streams: what has come of either body goes on before anything else is waited for.
func TestTLS35_Streams(t *testing.T) {
	for _, chunked := range []bool{true, false} {
		h := &passing{dial: func(ctx) (net.Conn, error) {
			near, far := pair(t)
			go func() {
				defer far.Close()
				br := bufio.NewReader(far)
				r, err := http.ReadRequest(br)
				if err != nil {
					return
				}
				if chunked {
					io.WriteString(far, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
				} else {
					io.WriteString(far, "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n")
				}
				var b [1]byte
				for {
					if _, err := io.ReadFull(r.Body, b[:]); err != nil {
						break
					}
					if chunked {
						io.WriteString(far, "1\r\n"+string(b[:])+"\r\n")
					} else {
						far.Write(b[:])
					}
				}
				if chunked {
					io.WriteString(far, "0\r\n\r\n")
				}
			}()
			return near, nil
		}}
		s := serve(t.Context(), t, h, quick)
		s.send("POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
		r, err := http.ReadResponse(bufio.NewReader(s), nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range "abc" {
			s.send("1\r\n" + string(b) + "\r\n")
			var got [1]byte
			if _, err := io.ReadFull(r.Body, got[:]); err != nil || got[0] != byte(b) {
				t.Fatal(got, err)
			}
		}
		s.send("0\r\n\r\n")
		if rest, err := io.ReadAll(r.Body); len(rest) > 0 || err != nil {
			t.Error(rest, err)
		}
		s.Close()
		<-s.done
	}
}

// TestWebSocket: the bytes after a 101 are relayed both ways, what came early included, until both sides have ended.
func TestTLS35_WebSocket(t *testing.T) {
	in := "GET /ws HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: k\r\n\r\nearly"
	const answer = "HTTP/1.1 101 Switching Protocols\r\nSec-WebSocket-Accept: a\r\nUpgrade: WebSocket\r\nConnection: upgrade\r\n\r\n"
	for _, tc := range []struct{ asked, answer, back string }{
		{"websocket", answer, "HTTP/1.1 101 Switching Protocols\r\nSec-WebSocket-Accept: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"},
		{"websocket", "HTTP/1.1 403 No\r\nContent-Length: 0\r\n\r\n", "HTTP/1.1 403 No\r\nContent-Length: 0\r\nConnection: keep-alive\r\n"},
		{"websocket", strings.Replace(answer, "WebSocket", "h2c", 2), "HTTP/1.1 502 "},
		{"websocket", strings.Replace(answer, "Connection", "X", 1), "HTTP/1.1 502 "},
		{"", answer, "HTTP/1.1 502 "},
	} {
		head := make(chan string, 1)
		h := &passing{judge: func(_ ctx, _ *Request, out *Outgoing) (*Outgoing, Answer) {
			out.Upgrade = tc.asked
			return out, nil
		}}
		h.dial = func(ctx) (net.Conn, error) {
			near, far := pair(t)
			go func() {
				defer far.Close()
				br := bufio.NewReader(far)
				r, err := http.ReadRequest(br)
				if err != nil {
					return
				}
				head <- r.Header.Get("Upgrade") + "," + r.Header.Get("Connection")
				io.WriteString(far, tc.answer)
				got, _ := io.ReadAll(br)
				io.WriteString(far, strings.ToUpper(string(got)))
			}()
			return near, nil
		}
		s := serve(t.Context(), t, h, quick)
		s.send(in)
		s.expect(tc.back)
		if want := tc.asked + ","; !strings.HasPrefix(<-head, want) {
			t.Errorf("%q: the server was asked something else", tc.asked)
		}
		if !strings.Contains(tc.back, " 101 ") {
			s.Close()
			<-s.done
			continue
		}
		s.send(strings.Repeat(" late", 20000))
		s.CloseWrite()
		if back := s.rest(); back != "EARLY"+strings.Repeat(" LATE", 20000) {
			t.Errorf("relayed %d bytes", len(back))
		}
	}
}

// TestPipe: connections that can neither be half closed nor asked anything are served as well.
func TestServe_Pipe(t *testing.T) {
	o := &origin{t: t, answer: always(ok200)}
	h := &passing{dial: func(ctx) (net.Conn, error) {
		near, far := net.Pipe()
		go func() { defer far.Close(); o.serve(far) }()
		return near, nil
	}}
	client, server := net.Pipe()
	go func() { defer server.Close(); Serve(t.Context(), server, nil, h, quick) }()
	for range 2 {
		io.WriteString(client, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc")
		got := make([]byte, len(kept))
		if _, err := io.ReadFull(client, got); err != nil || string(got) != kept {
			t.Fatalf("%q, %v", got, err)
		}
	}
	io.WriteString(client, "GET / HTTP/1.1\r\n\r\n")
	if back, err := io.ReadAll(client); err != nil || !strings.HasPrefix(string(back), "HTTP/1.1 400 ") {
		t.Errorf("%q, %v", back, err)
	}
}
