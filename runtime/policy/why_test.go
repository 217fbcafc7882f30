package policy

import (
	"fmt"
	"strings"
	"testing"

	"github.com/srt-sandbox/srt/runtime/config"
)

// TestDecidePorts_NET7: what is said without a port agrees with what is decided for each.
func TestDecidePorts_NET7(t *testing.T) {
	n := mustNetwork(t, NetworkRules{
		AllowedDomains: []string{"a.test", "*.a.test:8080", "b.test:443", "b.test:8443", "c.test", "[::1]:80"},
		DeniedDomains:  []string{"*:22", "c.test", "x.a.test:8080", "b.test:8443"},
	})
	for _, test := range []struct{ host, ports string }{
		{"a.test", "every port but 22"},
		{"A.test.", "every port but 22"},
		{"y.a.test", "port 8080"},
		{"x.a.test", "no port"},
		{"b.test", "port 443"},
		{"c.test", "no port"},
		{"none.test", "no port"},
		{"a b", "no port"},
		{"::1", "port 80"},
	} {
		t.Run(test.host, func(t *testing.T) {
			list := n.DecidePorts(test.host)
			if got := PortsText(list); got != test.ports {
				t.Errorf("%q, want %q", got, test.ports)
			}
			said := map[uint16]Verdict{}
			for _, v := range list {
				said[v.Port] = v.Verdict
			}
			for _, port := range []uint16{1, 22, 80, 443, 8080, 8443, 65535} {
				want := n.Decide(test.host, port)
				got, own := said[port]
				if !own {
					got = said[0]
				}
				if got != want {
					t.Errorf("port %d: %+v, want %+v", port, got, want)
				}
			}
		})
	}
	if got := PortsText((*Network)(nil).DecidePorts("a.test")); got != "no port" {
		t.Errorf("without a policy: %q", got)
	}
}

// TestOtherPort: a list that names every port leaves none for the rest.
func TestOtherPort(t *testing.T) {
	all := make([]uint16, 65535)
	for i := range all {
		all[i] = uint16(i + 1)
	}
	for _, test := range []struct {
		ports []uint16
		want  uint16
	}{{nil, 1}, {[]uint16{1, 2, 22}, 3}, {[]uint16{22}, 1}, {all, 0}, {all[:65534], 65535}} {
		if got := otherPort(test.ports); got != test.want {
			t.Errorf("after %d ports: %d, want %d", len(test.ports), got, test.want)
		}
	}
}

// TestAddressesText_NET50 names what cannot be known before a name is looked up.
func TestAddressesText_NET50(t *testing.T) {
	n := mustNetwork(t, NetworkRules{AllowedDomains: []string{"a.test"}, DeniedResolvedAddresses: []string{"10.0.0.0/8"}})
	for host, part := range map[string]string{
		"a.test": "network.deniedResolvedAddresses (10.0.0.0/8)", "x.localhost": "must lead to loopback", "10.1.1.1": "", "[::1]": "",
	} {
		h, err := config.CanonicalHost(host)
		if err != nil {
			t.Fatal(err)
		}
		if got := n.AddressesText(h); part == "" && got != "" || !strings.Contains(got, part) {
			t.Errorf("%s: %q", host, got)
		}
	}
}

// TestSocketRule_NET80 finds the entry behind an allowed socket, and agrees with SocketAllowed.
func TestSocketRule_NET80(t *testing.T) {
	rules, err := ResolveSockets([]string{"~/none", "/run/a.sock", "dir"}, PathInput{Cwd: "/w"})
	if err != nil || len(rules) != 2 {
		t.Fatalf("%+v, %v", rules, err)
	}
	for location, want := range map[string]string{
		"/run/a.sock": `network.allowUnixSockets.1 "/run/a.sock"`, "/w/dir/x/y": `network.allowUnixSockets.2 "dir"`, "/run/a.socket": "",
	} {
		got := ""
		if r := SocketRule(rules, location); r != nil {
			got = fmt.Sprintf("%s %q", r.Key, r.Entry)
		}
		if got != want || (got != "") != SocketAllowed([]string{rules[0].Path, rules[1].Path}, location) {
			t.Errorf("%s: %q, want %q", location, got, want)
		}
	}
	if _, err := ResolveSockets([]string{"/x", ""}, PathInput{Cwd: "/w"}); err == nil || !strings.Contains(err.Error(), "network.allowUnixSockets.1") {
		t.Errorf("the error does not name the entry: %v", err)
	}
}

func TestSplitHostPort(t *testing.T) {
	for text, want := range map[string]string{
		"a.test": "a.test 0", "a.test:443": "a.test 443", "::1": "::1 0", "[::1]": "[::1] 0", "[::1]:80": "[::1] 80", "10.1.1.1:1": "10.1.1.1 1",
		"a.test:": "error", "a.test:0": "error", "a.test:65536": "error", "[::1": "error", "[::1]80": "error", "a:b": "error", "": " 0",
	} {
		host, port, err := SplitHostPort(text)
		got := fmt.Sprint(host, " ", port)
		if err != nil {
			got = "error"
		}
		if got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
