package proxy

import (
	"bytes"
	"errors"
	"io"
	"net/netip"
	"strings"
	"time"

	"github.com/srt-sandbox/srt/runtime/violation"
)

// The numbers of RFC 1928 and RFC 1929.
const (
	socksVersion = 0x05
	authVersion  = 0x01

	methodNone     = 0x00
	methodPassword = 0x02
	methodRefused  = 0xff

	commandConnect = 0x01

	addressIPv4 = 0x01
	addressName = 0x03
	addressIPv6 = 0x04

	maxMethods = 128 // NET-40
)

// socksReply is the second byte of an answer (NET-42).
type socksReply byte

const (
	socksGranted            socksReply = 0x00
	socksFailed             socksReply = 0x01
	socksRefused            socksReply = 0x02
	socksNetworkUnreachable socksReply = 0x03
	socksHostUnreachable    socksReply = 0x04
	socksConnectionRefused  socksReply = 0x05
	socksTimedOut           socksReply = 0x06
	socksBadCommand         socksReply = 0x07
	socksBadAddress         socksReply = 0x08
)

// errSOCKS is a message that is not of the protocol; the connection is closed without an answer.
var errSOCKS = errors.New("not a SOCKS5 message")

// serveSOCKS serves a connection whose first byte is 0x05 (NET-40 to NET-44).
func (c *client) serveSOCKS() {
	_ = c.conn.SetReadDeadline(time.Now().Add(c.limits.SOCKSHandshake))
	methods, err := readMethods(c.br)
	if err != nil {
		return
	}
	password := bytes.IndexByte(methods, methodPassword) >= 0
	none := bytes.IndexByte(methods, methodNone) >= 0
	switch {
	case c.open && none:
		if c.write(socksVersion, methodNone) {
			c.serveSOCKSRequest()
		}
	case !c.open && password:
		if c.write(socksVersion, methodPassword) && c.authenticateSOCKS() {
			c.serveSOCKSRequest()
		}
	case !c.open && none:
		if c.write(socksVersion, methodNone) {
			c.refuseUnauthenticated()
		}
	default:
		if c.write(socksVersion, methodRefused) {
			lingerClose(c.conn)
		}
	}
}

func (c *client) write(p ...byte) bool {
	_, err := c.conn.Write(p)
	return err == nil
}

// readMethods reads the greeting.
func readMethods(r io.Reader) ([]byte, error) {
	var head [2]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	if head[0] != socksVersion || head[1] > maxMethods {
		return nil, errSOCKS
	}
	methods := make([]byte, head[1])
	_, err := io.ReadFull(r, methods)
	return methods, err
}

// readPassword reads the user name and password of RFC 1929.
func readPassword(r io.Reader) (user, password string, err error) {
	var version [1]byte
	if _, err := io.ReadFull(r, version[:]); err != nil {
		return "", "", err
	}
	if version[0] != authVersion {
		return "", "", errSOCKS
	}
	if user, err = readCounted(r); err != nil {
		return "", "", err
	}
	password, err = readCounted(r)
	return user, password, err
}

// readCounted reads a length byte and as many bytes.
func readCounted(r io.Reader) (string, error) {
	var n [1]byte
	if _, err := io.ReadFull(r, n[:]); err != nil {
		return "", err
	}
	b := make([]byte, n[0])
	_, err := io.ReadFull(r, b)
	return string(b), err
}

// authenticateSOCKS reads and answers the credentials (NET-20, NET-40).
func (c *client) authenticateSOCKS() bool {
	user, password, err := readPassword(c.br)
	if err != nil {
		return false
	}
	named := user == "srt" || strings.HasPrefix(user, "srt.")
	if !c.admits(password) || !named {
		if c.write(authVersion, 0x01) {
			lingerClose(c.conn)
		}
		return false
	}
	c.key = attributionKey(user)
	return c.write(authVersion, 0x00)
}

// socksRequest is the request of a client.
type socksRequest struct {
	authority
	command byte
}

// readSOCKSRequest reads the request. errBadAddress: its address type is unknown, so that its end is as well.
func readSOCKSRequest(r io.Reader) (socksRequest, error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return socksRequest{}, err
	}
	if head[0] != socksVersion {
		return socksRequest{}, errSOCKS
	}
	req := socksRequest{command: head[1]}
	var err error
	switch head[3] {
	case addressIPv4:
		var a [4]byte
		_, err = io.ReadFull(r, a[:])
		req.host = netip.AddrFrom4(a).String()
	case addressIPv6:
		var a [16]byte
		_, err = io.ReadFull(r, a[:])
		req.host = "[" + netip.AddrFrom16(a).String() + "]"
	case addressName:
		req.host, err = readCounted(r)
	default:
		return req, errBadAddress
	}
	if err != nil {
		return req, err
	}
	var port [2]byte
	_, err = io.ReadFull(r, port[:])
	req.port = uint16(port[0])<<8 | uint16(port[1])
	return req, err
}

var errBadAddress = errors.New("unknown SOCKS address type")

// nextSOCKSRequest reads a request and answers those that are none of ours. ok: it is a CONNECT.
func (c *client) nextSOCKSRequest() (req socksRequest, ok bool) {
	req, err := readSOCKSRequest(c.br)
	switch {
	case req.command != commandConnect && (err == nil || errors.Is(err, errBadAddress)):
		c.replyLast(socksBadCommand)
	case errors.Is(err, errBadAddress):
		c.replyLast(socksBadAddress)
	default:
		return req, err == nil
	}
	return req, false
}

// reply sends an answer; its bound address is 0.0.0.0:0 (NET-42).
func (c *client) reply(r socksReply) bool {
	return c.write(socksVersion, byte(r), 0, addressIPv4, 0, 0, 0, 0, 0, 0)
}

// replyLast sends an answer after which the connection is closed.
func (c *client) replyLast(r socksReply) {
	if c.reply(r) {
		lingerClose(c.conn)
	}
}

// serveSOCKSRequest serves the request of a client that is admitted: it is decided and routed like CONNECT.
func (c *client) serveSOCKSRequest() {
	req, ok := c.nextSOCKSRequest()
	if !ok {
		return
	}
	_ = c.conn.SetReadDeadline(time.Time{})
	if req.port == 0 { // no TCP port: nobody is asked about it, and dialling it would be guesswork
		c.refusePortZero(req)
		return
	}
	t, err := c.decideTunnel(req.authority)
	switch {
	case err != nil:
	case !t.verdict.Allowed:
		c.reportVerdict(t.verdict, req.host, req.port, c.key)
		c.replyLast(socksRefused)
	default:
		c.openSOCKS(t, req)
	}
}

// refusePortZero answers a request for port 0.
func (c *client) refusePortZero(req socksRequest) {
	if v := c.policy().Decide(req.host, 0); !v.Allowed {
		c.reportVerdict(v, req.host, 0, c.key)
		c.replyLast(socksRefused)
		return
	}
	c.replyLast(socksFailed)
}

// openSOCKS opens the tunnel and relays. It is never terminated (TLS-22), and refused where tunnels must be read (REQ-4).
func (c *client) openSOCKS(t *opening, req socksRequest) {
	if v, refused := c.opaqueRefusal(t.rules, t.verdict.Host, req.port, violation.ReasonOpaqueTunnel); refused {
		_ = t.cancel()
		c.report(violation.SOCKSTunnel, violation.HostPort(req.host, req.port), v, c.key)
		c.replyLast(socksFailed)
		return
	}
	upstream, toClient, toUpstream, err := t.open()
	if errors.Is(err, errClientGone) {
		return
	}
	if err != nil {
		c.replyLast(socksReplyFor(err))
		return
	}
	if !c.reply(socksGranted) {
		c.forget(upstream)
		return
	}
	c.handed = true
	c.join(c.conn, upstream, toClient, toUpstream)
}

// socksReplyFor maps a failure to open a tunnel to an answer (NET-42).
func socksReplyFor(err error) socksReply {
	var resolved *ResolvedError
	var lookup lookupError
	switch {
	case errors.As(err, &resolved):
		return socksRefused
	case errors.Is(err, errInternal):
		return socksFailed
	case errors.As(err, &lookup), errors.Is(err, errParentRefused), errors.Is(err, errHostUnreachable):
		return socksHostUnreachable
	case errors.Is(err, errNetworkUnreachable):
		return socksNetworkUnreachable
	case errors.Is(err, errConnectionRefused):
		return socksConnectionRefused
	case isTimeout(err):
		return socksTimedOut
	}
	return socksHostUnreachable
}
