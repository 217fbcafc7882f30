package proxy

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/srt-sandbox/srt/runtime/policy"
)

// The messages of a SOCKS client.
func socksLogin(user, password string) string {
	return fmt.Sprintf("\x05\x01\x02\x01%c%s%c%s", len(user), user, len(password), password)
}

func socksName(command byte, host string, port int) string {
	return string([]byte{5, command, 0, 3, byte(len(host))}) + host + string(binary.BigEndian.AppendUint16(nil, uint16(port)))
}

func socksAddr(addr string, port int) string {
	a := netip.MustParseAddr(addr)
	kind := byte(1)
	if a.Is6() {
		kind = 4
	}
	return string([]byte{5, 1, 0, kind}) + string(a.AsSlice()) + string(binary.BigEndian.AppendUint16(nil, uint16(port)))
}

func socksAnswer(code byte) string { return string([]byte{5, code, 0, 1, 0, 0, 0, 0, 0, 0}) }

const socksAdmitted = "\x05\x02\x01\x00"

func TestNET40_41_42_43_SOCKSAnswers(t *testing.T) {
	_, port := echo(t)
	closed := closedPort(t)
	rules := policy.NetworkRules{
		AllowedDomains: []string{"127.0.0.1", "localhost", "*.wild.test:8080", "name.test"}, DeniedDomains: []string{"evil.test", "*:22"},
	}
	login := socksLogin("srt", testToken)
	for _, tc := range []struct{ name, sent, answer, line string }{
		{"granted", login + socksName(1, "127.0.0.1", port), socksAdmitted + socksAnswer(0), ""},
		{"IPv4", login + socksAddr("127.0.0.1", port), socksAdmitted + socksAnswer(0), ""},
		{"Case9 mapped IPv6", login + socksAddr("::ffff:127.0.0.1", port), socksAdmitted + socksAnswer(0), ""},
		{"a name may spell a literal", login + socksName(1, "2130706433", port), socksAdmitted + socksAnswer(0), ""},
		{"user srt.x", socksLogin("srt.QQ==", testToken) + socksName(1, "127.0.0.1", port), socksAdmitted + socksAnswer(0), ""},
		{"Case7 NUL", login + socksName(1, "evil.com\x00.a.wild.test", 8080), socksAdmitted + socksAnswer(2), "deny network-outbound evil.com .a.wild.test:8080 (malformed host)"},
		{"Case7 CRLF", login + socksName(1, "a\r\nb.wild.test", 8080), socksAdmitted + socksAnswer(2), "deny network-outbound a b.wild.test:8080 (malformed host)"},
		{"Case7 zone", login + socksName(1, "::ffff:1.2.3.4%x.wild.test", 8080), socksAdmitted + socksAnswer(2), "deny network-outbound ::ffff:1.2.3.4%x.wild.test:8080 (malformed host)"},
		{"Case7 empty", login + socksName(1, "", 8080), socksAdmitted + socksAnswer(2), "deny network-outbound :8080 (malformed host)"},
		{"denied", login + socksName(1, "evil.test", 443), socksAdmitted + socksAnswer(2), "deny network-outbound evil.test:443 (host is on the deny list)"},
		{"IPv6 not listed", login + socksAddr("2001:db8::1", 443), socksAdmitted + socksAnswer(2), "deny network-outbound 2001:db8::1:443 (host is not on the allow list)"},
		{"resolved", login + socksName(1, "name.test", 443), socksAdmitted + socksAnswer(2), "deny network-outbound name.test:443 (resolved to a loopback address)"},
		{"port 0", login + socksAddr("127.0.0.1", 0), socksAdmitted + socksAnswer(1), ""},
		{"Case8 user bob", socksLogin("bob", testToken), "\x05\x02\x01\x01", ""},
		{"Case8 user srtx", socksLogin("srtx", testToken), "\x05\x02\x01\x01", ""},
		{"Case8 wrong token", socksLogin("srt", "f"+testToken[1:]), "\x05\x02\x01\x01", ""},
		{"empty token", socksLogin("srt", ""), "\x05\x02\x01\x01", ""},
		{"Case9 BIND", login + socksName(2, "127.0.0.1", port), socksAdmitted + socksAnswer(7), ""},
		{"Case9 UDP ASSOCIATE", login + socksAddr("127.0.0.1", port)[:1] + "\x03" + socksAddr("127.0.0.1", port)[2:], socksAdmitted + socksAnswer(7), ""},
		{"unknown command", login + socksName(9, "127.0.0.1", port), socksAdmitted + socksAnswer(7), ""},
		{"unknown address type", login + "\x05\x01\x00\x02abcdef", socksAdmitted + socksAnswer(8), ""},
		{"Case9 SOCKS4", "\x04\x01\x00\x50\x7f\x00\x00\x01\x00", "", ""},
		{"version in the request", login + "\x04\x01\x00\x01\x7f\x00\x00\x01\x00\x50", socksAdmitted, ""},
		{"version of the login", "\x05\x01\x02\x05\x03srt\x00", "\x05\x02", ""},
		{"no methods", "\x05\x00", "\x05\xff", ""},
		{"other methods", "\x05\x02\x01\x03", "\x05\xff", ""},
		{"129 methods", "\x05\x81" + strings.Repeat("\x02", 129), "", ""},
		{"128 methods", "\x05\x80" + strings.Repeat("\x02", 128) + login[3:] + socksName(1, "127.0.0.1", port), socksAdmitted + socksAnswer(0), ""},
		{"Case15 closed port", login + socksAddr("127.0.0.1", closed), socksAdmitted + socksAnswer(5), ""},
		{"no such name", login + socksName(1, "a.wild.test", 8080), socksAdmitted + socksAnswer(4), ""},
		{"Case10 no authentication", "\x05\x01\x00" + socksAddr("127.0.0.1", port), "\x05\x00" + socksAnswer(2), ""},
		{"NET43 malformed", "\x05\x01\x00" + socksName(1, "a\x00b", 22), "\x05\x00" + socksAnswer(2), ""},
		{"NET43 BIND", "\x05\x01\x00" + socksName(2, "a.test", 22), "\x05\x00" + socksAnswer(7), ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			h := start(t, rules, func(o *Options) { o.Resolver = resolves("name.test", "127.0.0.9") })
			p := h.dial()
			p.send("%s", tc.sent)
			if strings.HasSuffix(tc.answer, socksAnswer(0)) {
				p.want(tc.answer)
				p.send("hello")
				p.want("hello")
			} else if got := p.rest(); got != tc.answer {
				t.Errorf("\n got %q\nwant %q", got, tc.answer)
			}
			if tc.line == "" {
				h.wantLines()
			} else {
				h.wantLines(tc.line)
			}
		})
	}
}

func TestNET40_Open(t *testing.T) {
	_, port := echo(t)
	h := start(t, baseRules, func(o *Options) { o.Token, o.Open = "", true })
	p := h.dial()
	p.send("\x05\x02\x00\x02%sdata with the request", socksAddr("127.0.0.1", port))
	p.want("\x05\x00" + socksAnswer(0) + "data with the request")
	p = h.dial()
	p.send("\x05\x01\x02")
	if got := p.rest(); got != "\x05\xff" {
		t.Errorf("%q", got)
	}
	p = h.dial()
	p.send("CONNECT 127.0.0.1:%d HTTP/1.1\r\n\r\n", port)
	p.want(established)
}

func TestNET38_SOCKS(t *testing.T) {
	h := start(t, baseRules, func(o *Options) { o.RefuseOpaqueTunnels = true })
	p := h.dial()
	p.send("%s%s", socksLogin("srt", testToken), socksAddr("127.0.0.1", 443))
	if got := p.rest(); got != socksAdmitted+socksAnswer(1) {
		t.Errorf("%q", got)
	}
	h.wantLines("deny socks-tunnel 127.0.0.1:443 (refuseOpaqueTunnels)")
}

// TestNET23_SOCKSHandshakeLimit: a client that stays silent is closed, in each of the states of the handshake.
func TestNET23_SOCKSHandshakeLimit(t *testing.T) {
	h := start(t, baseRules, func(o *Options) {
		o.Limits = Limits{FirstByte: 50 * time.Millisecond, Head: 50 * time.Millisecond, Idle: 50 * time.Millisecond,
			SOCKSHandshake: 50 * time.Millisecond, SOCKSRefusal: 50 * time.Millisecond}
	})
	for _, tc := range []struct{ sent, answer string }{
		{"", ""}, {"\x05", ""}, {"\x05\x01\x02", "\x05\x02"}, {socksLogin("srt", testToken), socksAdmitted},
		{"\x05\x01\x00", "\x05\x00"}, {"CONNECT", ""},
	} {
		p := h.dial()
		p.send("%s", tc.sent)
		if got := p.rest(); got != tc.answer {
			t.Errorf("%q: %q", tc.sent, got)
		}
	}
}

// readSSH reads what follows the identification line and checks the packet of RFC 4253 section 6.
func readSSH(t *testing.T, s string) (description string) {
	t.Helper()
	packet, ok := strings.CutPrefix(s, "SSH-2.0-policy_refusal\r\n")
	if !ok || len(packet) < 5 {
		t.Fatalf("%q", s)
	}
	length, padding := binary.BigEndian.Uint32([]byte(packet)), int(packet[4])
	if int(length) != len(packet)-4 || len(packet)%8 != 0 || padding < 4 || padding > 11 ||
		strings.Trim(packet[len(packet)-padding:], "\x00") != "" {
		t.Fatalf("packet of %d bytes: length %d, padding %d", len(packet), length, padding)
	}
	payload := packet[5 : len(packet)-padding]
	if payload[0] != 1 || binary.BigEndian.Uint32([]byte(payload[1:])) != 1 {
		t.Fatalf("payload %q", payload)
	}
	n := binary.BigEndian.Uint32([]byte(payload[5:]))
	if rest := payload[9+n:]; rest != "\x00\x00\x00\x00" {
		t.Fatalf("after the description: %q", rest)
	}
	return payload[9 : 9+n]
}

func TestCase10_NET44_SSHRefusal(t *testing.T) {
	long := strings.Repeat("é", 1500)
	rules := policy.NetworkRules{
		AllowedDomains:      []string{"allowed.test"},
		DeniedDomains:       []string{"github.com", "why.test", "long.test"},
		DeniedDomainReasons: map[string]string{"why.test": "use\r\n\u009bthe é mirror", "long.test": long},
	}
	for _, tc := range []struct{ host, description, line string }{
		{"github.com", "host is on the deny list", "deny network-outbound github.com:22 (host is on the deny list)"},
		{"why.test", "use the é mirror", "deny network-outbound why.test:22 (use the é mirror)"},
		{"long.test", long[:2000], "deny network-outbound long.test:22 (" + long + ")"},
		{"allowed.test", noAuthentication, ""},
		{"other.test", noAuthentication, ""},
	} {
		h := start(t, rules)
		p := h.dial()
		p.send("\x05\x01\x00%sSSH-2.0-client\r\n", socksName(1, tc.host, 22))
		_ = p.CloseWrite()
		got := p.rest()
		prefix := "\x05\x00" + socksAnswer(0)
		if !strings.HasPrefix(got, prefix) {
			t.Errorf("%s: %q", tc.host, got)
			continue
		}
		if d := readSSH(t, got[len(prefix):]); d != tc.description {
			t.Errorf("%s: %q, want %q", tc.host, d, tc.description)
		}
		if tc.line == "" {
			h.wantLines()
		} else {
			h.wantLines(tc.line)
			if h.events[0].CommandID != "" {
				t.Error("the line is attributed")
			}
		}
	}
}

func FuzzSOCKS(f *testing.F) {
	for _, s := range []string{
		"", "\x05\x01\x02", socksLogin("srt", testToken), socksName(1, "a.test", 443), socksAddr("2001:db8::1", 22),
		"\x05\x01\x00\x02", "\x05\x03\x00\x03\x00\x00\x00", "\x05\x80\x02",
	} {
		f.Add([]byte(s))
	}
	network, err := policy.NewNetwork(policy.NetworkRules{AllowedDomains: []string{"a.test"}})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if methods, err := readMethods(bytes.NewReader(data)); err == nil && len(methods) > maxMethods {
			t.Errorf("%d methods", len(methods))
		}
		if user, password, err := readPassword(bytes.NewReader(data)); err == nil && len(user)+len(password)+3 > len(data) {
			t.Errorf("credentials longer than the message")
		}
		r := bufio.NewReader(bytes.NewReader(data))
		req, err := readSOCKSRequest(r)
		if err != nil {
			return
		}
		left, _ := io.ReadAll(r)
		consumed := data[:len(data)-len(left)]
		if !bytes.HasSuffix(consumed, binary.BigEndian.AppendUint16(nil, req.port)) || data[0] != socksVersion {
			t.Errorf("%+v from %q", req, consumed)
		}
		// Nothing that is not exactly the allowed host gets through.
		if v := network.Decide(req.host, req.port); v.Allowed && !strings.EqualFold(strings.TrimSuffix(req.host, "."), "a.test") {
			t.Errorf("%q is allowed", req.host)
		}
		if d := sshDescription(req.host); strings.ContainsFunc(d, func(r rune) bool { return r < 0x20 || r == 0x7f }) {
			t.Errorf("description %q", d)
		}
	})
}
