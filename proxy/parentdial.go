package proxy

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/srt-sandbox/srt/proxy/internal/httphead"
	"github.com/srt-sandbox/srt/runtime/config"
)

// errParentRefused is an answer other than 2xx to our CONNECT.
var errParentRefused = errors.New("the parent proxy refused the tunnel")

// dialTunnel opens the way to an allowed destination: through the parent unless it is bypassed, else directly (NET-27).
// leftover is what the destination has sent already. The connection is tracked.
func (s *Server) dialTunnel(ctx context.Context, rules *Rules, h config.Host, port uint16) (conn net.Conn, leftover []byte, err error) {
	if parent := s.route(rules, h, false); parent != nil {
		return s.tunnelThrough(ctx, parent, hostPort(h, port))
	}
	conn, err = s.dialDirect(ctx, rules, h, port)
	return conn, nil, err
}

// dialParent connects to a parent or to the socket of mitmProxy. Its addresses are not judged: the settings name it, not the sandbox (NET-50).
func (s *Server) dialParent(ctx context.Context, p *parentEndpoint) (net.Conn, error) {
	dialCtx, cancel := context.WithTimeout(ctx, s.limits.Dial)
	defer cancel()
	if p.socket != "" {
		return s.dialSocket(dialCtx, p.socket)
	}
	addrs := []netip.Addr{p.host.Addr}
	if !p.host.IsLiteral() {
		var err error
		if addrs, err = s.resolver.LookupNetIP(dialCtx, "ip", p.host.Name); err != nil {
			return nil, lookupError{err}
		}
		if len(addrs) == 0 {
			return nil, lookupError{errNoAddress}
		}
	}
	conn, err := s.dialAddrs(dialCtx, addrs, p.port)
	if err != nil || !p.tls {
		return conn, err
	}
	return s.secure(ctx, conn, p.host)
}

// secure makes a verified TLS connection to a host over conn, which must be tracked and is closed on failure. For a
// literal package tls sends no SNI and checks the certificate's addresses.
func (s *Server) secure(ctx context.Context, conn net.Conn, h config.Host) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, s.limits.Handshake)
	defer cancel()
	secured := tls.Client(conn, &tls.Config{
		ServerName: h.Name, RootCAs: s.verifying(), NextProtos: []string{"http/1.1"}, MinVersion: tls.VersionTLS12,
	})
	if err := secured.HandshakeContext(ctx); err != nil {
		s.forget(conn)
		return nil, fmt.Errorf("TLS handshake: %w", err)
	}
	s.retrack(conn, secured)
	return secured, nil
}

// retrack replaces a tracked connection by one that wraps it.
func (s *Server) retrack(conn, wrapped net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, conn)
	s.conns[wrapped] = tracked{scope: s.scope}
	if s.closed || s.scope.ended {
		_ = conn.Close() // the end has come by in the meantime; the next use fails
	}
}

// tunnelThrough asks a parent for a tunnel to host:port (NET-61).
func (s *Server) tunnelThrough(ctx context.Context, p *parentEndpoint, target string) (net.Conn, []byte, error) {
	conn, err := s.dialParent(ctx, p)
	if err != nil {
		return nil, nil, err
	}
	// A client that leaves ends the wait, as a deadline does.
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(aLongTimeAgo) })
	_ = conn.SetDeadline(time.Now().Add(s.limits.Handshake))
	leftover, err := askTunnel(conn, target, p.auth)
	if err == nil && !stop() {
		err = context.Cause(ctx)
	}
	if err != nil {
		stop()
		s.forget(conn)
		return nil, nil, err
	}
	_ = conn.SetDeadline(time.Time{})
	return conn, leftover, nil
}

// askTunnel sends a CONNECT and reads the answer to it. leftover is what came after the answer.
func askTunnel(conn net.Conn, target, auth string) (leftover []byte, err error) {
	req := []byte("CONNECT " + target + " HTTP/1.1\r\nHost: " + target + "\r\n")
	if auth != "" {
		req = httphead.AppendField(req, "Proxy-Authorization", auth)
	}
	if _, err := conn.Write(append(req, "\r\n"...)); err != nil {
		return nil, err
	}
	br := readers.Get().(*bufio.Reader)
	br.Reset(conn)
	defer func() {
		br.Reset(nil)
		readers.Put(br)
	}()
	resp, err := readResponse(br)
	if err != nil {
		return nil, err
	}
	if resp.Status < 200 || resp.Status > 299 {
		return nil, &tunnelRefusedError{resp.Status, resp.Reason}
	}
	if n := br.Buffered(); n > 0 {
		waiting, _ := br.Peek(n)
		leftover = append(leftover, waiting...)
	}
	return leftover, nil
}

// tunnelRefusedError is the answer of a proxy that refused a CONNECT.
type tunnelRefusedError struct {
	status int
	reason string
}

func (e *tunnelRefusedError) Error() string {
	return fmt.Sprintf("%v: status %d", errParentRefused, e.status)
}

func (e *tunnelRefusedError) Unwrap() error { return errParentRefused }

// maxInterim is how many 1xx responses may precede an answer to our CONNECT.
const maxInterim = 16

// readResponse reads the first response that is final.
func readResponse(br *bufio.Reader) (*httphead.Response, error) {
	for range maxInterim {
		resp, err := readResponseHead(br)
		if err != nil {
			return nil, err
		}
		if resp.Status >= 200 {
			return resp, nil
		}
	}
	return nil, httphead.ErrMalformed
}

// readResponseHead reads one response head.
func readResponseHead(br *bufio.Reader) (*httphead.Response, error) {
	buf := heads.Get().(*[]byte)
	defer heads.Put(buf)
	head, err := httphead.ReadHead(br, (*buf)[:0])
	*buf = head[:0]
	if err != nil {
		return nil, err
	}
	return httphead.ParseResponse(head)
}
