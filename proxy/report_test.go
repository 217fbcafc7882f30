package proxy

import (
	"fmt"
	"testing"

	"github.com/srt-sandbox/srt/runtime/policy"
)

// Who shows no token is not told of, but for a host on the deny list, and then of nobody; what cannot be reached is no
// refusal. Illegal bytes in a host are: NET-7 refuses them, and an attempt to smuggle is worth a line (where VIO-16 would
// leave them out for SOCKS alone).
func TestVIO16_WhatIsNotRecorded(t *testing.T) {
	rules := policy.NetworkRules{AllowedDomains: []string{"127.0.0.1", "*.wild.test"}, DeniedDomains: []string{"evil.test"}}
	closed := closedPort(t)
	for _, tc := range []struct{ name, sent, line string }{
		{"407", "CONNECT evil.test:443 HTTP/1.1\r\n\r\n", ""},
		{"407, plain", "GET http://evil.test/ HTTP/1.1\r\nHost: evil.test\r\nConnection: close\r\n\r\n", ""},
		{"invalid authority", "CONNECT evil.test HTTP/1.1\r\n" + auth + "\r\n", ""},
		{"upstream failure", fmt.Sprintf("CONNECT 127.0.0.1:%d HTTP/1.1\r\n%s\r\n", closed, auth), ""},
		{"no such name", "CONNECT a.wild.test:443 HTTP/1.1\r\n" + auth + "\r\n", ""},
		{"SOCKS without a token, not listed", "\x05\x01\x00" + socksName(1, "other.test", 443), ""},
		{"SOCKS without a token, denied", "\x05\x01\x00" + socksName(1, "evil.test", 443), "deny network-outbound evil.test:443 (host is on the deny list)"},
		{"SOCKS with illegal bytes", socksLogin("srt.QQ==", testToken) + socksName(1, "a\x00b.wild.test", 443), "deny network-outbound a b.wild.test:443 (malformed host)"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			h := start(t, rules, func(o *Options) { o.Resolver = &fakeResolver{} })
			p := h.dial()
			p.send("%s", tc.sent)
			_ = p.CloseWrite()
			p.rest()
			if tc.line == "" {
				h.wantLines()
				return
			}
			h.wantLines(tc.line)
			if unattributed := h.events[0].CommandID == ""; unattributed != (tc.name != "SOCKS with illegal bytes") {
				t.Errorf("%+v", h.events[0])
			}
		})
	}
}

// Each refusal names the place in the settings that is behind it.
func TestReportsNameTheirRule(t *testing.T) {
	for _, tc := range []struct {
		name, sent, rule, entry string
		change                  func(*Options)
	}{
		{"deny list", "CONNECT evil.test:443 HTTP/1.1\r\n" + auth + "\r\n", "network.deniedDomains.0", "evil.test", func(*Options) {}},
		{"allow list", "CONNECT other.test:443 HTTP/1.1\r\n" + auth + "\r\n", "network.allowedDomains", "", func(*Options) {}},
		{"malformed", "CONNECT *.test:443 HTTP/1.1\r\n" + auth + "\r\n", "", "", func(*Options) {}},
		{"opaque CONNECT", "CONNECT 127.0.0.1:443 HTTP/1.1\r\n" + auth + "\r\n", "network.refuseOpaqueTunnels", "", func(o *Options) { o.RefuseOpaqueTunnels = true }},
		{"opaque SOCKS", socksLogin("srt", testToken) + socksAddr("127.0.0.1", 443), "network.refuseOpaqueTunnels", "", func(o *Options) { o.RefuseOpaqueTunnels = true }},
		{"host mismatch", "GET http://127.0.0.1/ HTTP/1.1\r\nHost: other\r\nConnection: close\r\n" + auth + "\r\n", "network.requireHostMatch", "", func(o *Options) { o.RequireHostMatch = true }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			h := start(t, policy.NetworkRules{AllowedDomains: []string{"127.0.0.1"}, DeniedDomains: []string{"evil.test"}}, tc.change)
			p := h.dial()
			p.send("%s", tc.sent)
			_ = p.CloseWrite()
			p.rest()
			if h.lines(); len(h.events) != 1 || h.events[0].Rule != tc.rule || h.events[0].Entry != tc.entry {
				t.Errorf("%+v, want the rule %q and the entry %q", h.events, tc.rule, tc.entry)
			}
		})
	}
}
