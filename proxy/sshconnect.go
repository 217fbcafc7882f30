package proxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/srt-sandbox/srt/runtime/config"
	"github.com/srt-sandbox/srt/runtime/violation"
)

// SSHConnect is the ProxyCommand of ssh (NET-91): it opens a tunnel to target, host:port with brackets round an IPv6
// literal, through the proxy at proxyURL, http://user:token@host:port, and copies stdin and stdout through it until the
// network side ends. stdin is still being read when it returns.
//
// The error is the one line that the user gets to see, "sandbox proxy: github.com:22: 403 host is not on the allow list"
// or "sandbox proxy: github.com:22: no answer"; it never holds credentials. A target that is none is
// "sandbox proxy: bad host" or "sandbox proxy: bad port" and reaches nobody.
func SSHConnect(ctx context.Context, stdin io.Reader, stdout io.Writer, proxyURL, target string) error {
	host, port, ok := cutPort(target)
	h, err := config.CanonicalHost(host)
	if !ok || err != nil {
		return errors.New("sandbox proxy: bad host")
	}
	n, ok := parsePort(port)
	if !ok {
		return errors.New("sandbox proxy: bad port")
	}
	conn, leftover, err := sshTunnel(ctx, proxyURL, hostPort(h, n))
	if err != nil {
		return fmt.Errorf("sandbox proxy: %s: %w", target, err)
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	go func() {
		_, _ = io.Copy(conn, stdin)
		_ = closeWrite(conn)
	}()
	if _, err := stdout.Write(leftover); err != nil {
		return nil
	}
	// However the network side ends, ssh reports it better than we could.
	_, _ = io.Copy(stdout, conn)
	return nil
}

// errNoAnswer is a proxy that cannot be reached or says nothing.
var errNoAnswer = errors.New("no answer")

// sshTunnel connects to the proxy and asks for the tunnel. Every error is the end of the user's line.
func sshTunnel(ctx context.Context, proxyURL, target string) (net.Conn, []byte, error) {
	endpoint, err := parseEndpoint(proxyURL)
	if err != nil || endpoint.tls {
		return nil, nil, errNoAnswer
	}
	limits := Limits{}.orDefaults()
	ctx, cancel := context.WithTimeout(ctx, limits.Dial)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", hostPort(endpoint.host, endpoint.port))
	if err != nil {
		return nil, nil, errNoAnswer
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(aLongTimeAgo) })
	defer stop()
	leftover, err := askTunnel(conn, target, endpoint.auth)
	var refused *tunnelRefusedError
	switch {
	case errors.As(err, &refused):
		err = fmt.Errorf("%d %s", refused.status, violation.StatusPhrase(refused.reason))
	case err != nil:
		err = errNoAnswer
	default:
		_ = conn.SetDeadline(time.Time{})
		return conn, leftover, nil
	}
	_ = conn.Close()
	return nil, nil, err
}
