package mitm

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
)

// maxPlainName and maxLabel bound a plain name and its labels, in bytes (TLS-25, RFC 1035 2.3.4).
const (
	maxPlainName = 253
	maxLabel     = 63
)

// Hello is what a client's ClientHello said about the server that it means.
type Hello struct {
	ServerName string // in lower case and plain (TLS-25); "" if it named none, or none that can be read
	Unreadable bool   // it named one that is not plain
}

// PlainName returns a server name in lower case, and whether it is plain (TLS-25): at most 253 bytes, and each label one
// of letters, digits and inner hyphens. An IPv4 literal is plain; a trailing dot, an underscore and an empty name are not.
func PlainName(s string) (string, bool) {
	if s == "" || len(s) > maxPlainName {
		return "", false
	}
	for label := range strings.SplitSeq(s, ".") {
		if !plainLabel(label) {
			return "", false
		}
	}
	return strings.ToLower(s), true // only of ASCII by now: a Kelvin sign has become no k
}

func plainLabel(label string) bool {
	if label == "" || len(label) > maxLabel || label[0] == '-' || label[len(label)-1] == '-' {
		return false
	}
	for i := range len(label) {
		if c := label[i]; !('a' <= c|0x20 && c|0x20 <= 'z' || '0' <= c && c <= '9' || c == '-') {
			return false
		}
	}
	return true
}

// serverConfig is what all handshakes of an authority share (TLS-23, TLS-24). There is no KeyLogWriter, so SSLKEYLOGFILE
// is of no effect. The keys of session tickets are made by the standard library, are those of this one value, and exist in
// memory alone.
func serverConfig() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		MaxVersion: tls.VersionTLS13,
		NextProtos: []string{"http/1.1"}, // a client that offers others only gets alert 120 (RFC 7301 3.2)
		ClientAuth: tls.NoClientCert,
		// Small records bring the first bytes of a response sooner over slow networks; clients are on this host.
		DynamicRecordSizingDisabled: true,
	}
}

// Handshake is the server's side of a TLS handshake on the connection of a client, whose first bytes have not been read
// (TLS-23 to TLS-25). target is the canonical host of the tunnel. The certificate is for the name that the client gives if
// that is plain, else for the target, and for the target in any case if targetOnly is set (network.requireHostMatch). It
// ends with ctx, whose end afterwards means nothing. The caller closes conn, also on an error; what is known of the Hello
// is returned then too. The text of an error may hold bytes that the client chose.
func (ca *CA) Handshake(ctx context.Context, conn net.Conn, target string, targetOnly bool) (*tls.Conn, Hello, error) {
	var hello Hello
	config := ca.server.Clone()
	config.GetConfigForClient = func(info *tls.ClientHelloInfo) (*tls.Config, error) {
		hello = readHello(info)
		name := target
		if !targetOnly && hello.ServerName != "" {
			name = hello.ServerName
		}
		return ca.configFor(name, info), nil
	}
	tlsConn := tls.Server(conn, config)
	if err := tlsConn.HandshakeContext(ctx); err != nil {
		return nil, hello, fmt.Errorf("the TLS handshake with the client failed: %w", err)
	}
	return tlsConn, hello, nil
}

// readHello judges the server name of a ClientHello.
func readHello(info *tls.ClientHelloInfo) Hello {
	if info.ServerName == "" {
		return Hello{}
	}
	name, ok := PlainName(info.ServerName)
	return Hello{ServerName: name, Unreadable: !ok}
}

// classicalCurves are the key exchanges without a post-quantum part. That part is a third of the work of a handshake, and
// protects what is recorded today from the computers of tomorrow: nothing, on a leg that does not leave the host. A client
// that knows no others still gets it.
var classicalCurves = [...]tls.CurveID{tls.X25519, tls.CurveP256, tls.CurveP384, tls.CurveP521}

func isClassical(id tls.CurveID) bool { return slices.Contains(classicalCurves[:], id) }

// configFor is the configuration of a handshake that shows the certificate for a name. A session is resumed only where
// the certificate would be the one that the client has seen: no certificate is shown then.
func (ca *CA) configFor(name string, info *tls.ClientHelloInfo) *tls.Config {
	name = canonicalLeafName(name)
	config := ca.server.Clone()
	if slices.ContainsFunc(info.SupportedCurves, isClassical) {
		config.CurvePreferences = classicalCurves[:]
	}
	config.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return ca.Leaf(name) }
	config.WrapSession = func(state tls.ConnectionState, session *tls.SessionState) ([]byte, error) {
		session.Extra = append(session.Extra, []byte(name))
		return ca.server.EncryptTicket(state, session)
	}
	config.UnwrapSession = func(identity []byte, state tls.ConnectionState) (*tls.SessionState, error) {
		session, err := ca.server.DecryptTicket(identity, state)
		if session == nil || err != nil {
			return nil, err
		}
		for _, extra := range session.Extra {
			if string(extra) == name {
				return session, nil
			}
		}
		return nil, nil
	}
	return config
}

// canonicalLeafName makes one name of the spellings of an address.
func canonicalLeafName(name string) string {
	if addr, err := netip.ParseAddr(name); err == nil {
		return addr.Unmap().WithZone("").String()
	}
	return name
}
