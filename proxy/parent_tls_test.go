package proxy

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"testing"
)

// An https parent is verified: by name with SNI, by address without (NET-61).
func TestNET61_VerifiedTLSParent(t *testing.T) {
	pool, cert := authorityFor(t, "127.0.0.1", "parent.test")
	other, _ := authorityFor(t, "127.0.0.1", "parent.test")
	names := make(chan string, 4)
	port := serveEach(t, func(c *net.TCPConn) {
		s := tls.Server(c, &tls.Config{Certificates: []tls.Certificate{cert}})
		defer s.Close()
		if s.Handshake() != nil {
			return
		}
		names <- s.ConnectionState().ServerName
		br := readerAfter(nil, s)
		if _, err := rawRequest(br); err == nil {
			_, _ = io.WriteString(s, "HTTP/1.1 200 OK\r\n\r\n")
			_, _ = io.Copy(s, br)
		}
	}).Port
	for _, tc := range []struct {
		name, host, sni string
		roots           *x509.CertPool
		ok              bool
	}{
		{"by name", "parent.test", "parent.test", pool, true},
		{"by address", "127.0.0.1", "", pool, true},
		{"another name", "other.test", "", pool, false},
		{"another authority", "parent.test", "", other, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := capture(t, parentRules, func(o *Options) {
				o.Parent = mustParent(t, "", fmt.Sprintf("https://%s:%d", tc.host, port), "")
				o.Resolver = &fakeResolver{answers: map[string][][]string{"parent.test": {{"127.0.0.1"}}, "other.test": {{"127.0.0.1"}}}}
			})
			c.srv().roots = tc.roots
			if !tc.ok {
				if got := c.connectTo("far.test:443").rest(); got != failed502 {
					t.Errorf("%q", got)
				}
				return
			}
			p := c.open(c.addresses("far.test", 443)[0])
			p.send("hello")
			p.want("hello")
			if got := <-names; got != tc.sni {
				t.Errorf("SNI %q, want %q", got, tc.sni)
			}
		})
	}
}

// readerAfter reads what was read already, then the rest.
func readerAfter(first []byte, rest io.Reader) *bufio.Reader {
	return bufio.NewReader(io.MultiReader(bytes.NewReader(first), rest))
}
