package violation

import "testing"

func TestLine(t *testing.T) {
	for _, test := range []struct {
		name string
		in   Event
		want string
	}{
		{"NET-70 refused host", Event{Operation: NetworkOutbound, Target: HostPort("EVIL.test.", 443), Reason: "host is on the deny list"},
			"deny network-outbound EVIL.test.:443 (host is on the deny list)"},
		{"VIO-11 case 8 refused IPv6 literal", Event{Operation: NetworkOutbound, Target: HostPort("::1", 443), Reason: "host is on the deny list"},
			"deny network-outbound ::1:443 (host is on the deny list)"},
		{"NET-52 resolved address", Event{Operation: NetworkOutbound, Target: HostPort("a.test", 80), Reason: "resolved to a deny-listed address / a loopback address"},
			"deny network-outbound a.test:80 (resolved to a deny-listed address / a loopback address)"},
		{"NET-70 refused request", Event{Operation: HTTPRequest, Target: Request("GET", "http://a.test/b?tok=1"), Reason: "denied by sandbox policy"},
			"deny http-request GET http://a.test/b?… (denied by sandbox policy)"},
		{"VIO-11 VIO-15 refused tunnel", Event{Operation: HTTPRequest, Target: Tunnel("fe80::2", 443), Reason: "tunnel carries no TLS and cannot be inspected"},
			"deny http-request CONNECT [fe80::2]:443 (tunnel carries no TLS and cannot be inspected)"},
		{"NET-70 SOCKS tunnel", Event{Operation: SOCKSTunnel, Target: HostPort("a.test", 22), Reason: ReasonOpaqueTunnel},
			"deny socks-tunnel a.test:22 (refuseOpaqueTunnels)"},
		{"VIO-10 file system", Event{Operation: "openat", Target: "/etc/passwd"}, "deny openat /etc/passwd"},
		{"VIO-13 request that was not understood", Event{Operation: HTTPRequest, Target: Request("", ""), Reason: "malformed request-target"},
			"deny http-request - (malformed request-target)"},
		{"network case 11", Event{Operation: NetworkOutbound, Target: HostPort("evil.test", 443), Reason: "No <b>evil</b>\nplease é ✓"},
			"deny network-outbound evil.test:443 (No bevil/b please é ✓)"},
		{"NET-75 a path with control characters", Event{Operation: "openat", Target: "/t/a\n\x1b[2Jb<c>"}, "deny openat /t/a [2Jbc"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := test.in.Line(); got != test.want {
				t.Errorf("got  %q\nwant %q", got, test.want)
			}
		})
	}
}

// The reason of a settings file is not cut in a line, only in a status phrase (VIO-21, NET-74).
func TestLineDoesNotCut(t *testing.T) {
	long := make([]byte, 3*PhraseLimit)
	for i := range long {
		long[i] = 'a'
	}
	e := Event{Operation: NetworkOutbound, Target: "a.test:1", Reason: string(long)}
	if got, want := e.Line(), "deny network-outbound a.test:1 ("+string(long)+")"; got != want {
		t.Errorf("a line of %d bytes, want %d", len(got), len(want))
	}
}

func TestRawLineIsWhatIgnoreRulesMatch(t *testing.T) {
	e := Event{Operation: NetworkOutbound, Target: "a\x01.test:1", Reason: "<r>"}
	if got, want := e.RawLine(), "deny network-outbound a\x01.test:1 (<r>)"; got != want {
		t.Errorf("VIO-26: got %q, want %q", got, want)
	}
}

func TestHostPort(t *testing.T) {
	for _, test := range []struct{ in, want, tunnel string }{
		{"evil.test.", "evil.test.:7", "evil.test.:7"},
		{"::1", "::1:7", "[::1]:7"},
		{"[::1]", "::1:7", "[::1]:7"},
		{"[::1%lo]", "::1%lo:7", "[::1%lo]:7"},
		{"::1%lo", "::1%lo:7", "[::1%lo]:7"},
		{"127.1", "127.1:7", "127.1:7"},
		{"*.test", "*.test:7", "*.test:7"},
		{"[half", "[half:7", "[half:7"},
		{"[name]", "[name]:7", "[name]:7"},
		{"", ":7", ":7"},
	} {
		if got := HostPort(test.in, 7); got != test.want {
			t.Errorf("VIO-11: HostPort(%q) = %q, want %q", test.in, got, test.want)
		}
		if got := Tunnel(test.in, 7); got != "CONNECT "+test.tunnel {
			t.Errorf("VIO-15: Tunnel(%q) = %q, want CONNECT %s", test.in, got, test.tunnel)
		}
	}
}
