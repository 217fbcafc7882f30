package test

import (
	"net"
	"os"
	"strconv"
	"strings"
	"testing"
)

// hostsFile is what /etc/hosts says in these tests.
const hostsFile = `127.0.0.1 localhost
127.0.0.1 loop.test
169.254.169.254 meta.test
10.1.1.1 x.localhost private.test
127.0.0.2 two.test
10.9.8.7 two.test
127.0.0.2 owt.test
10.9.8.7 owt.test
64:ff9b::7f00:1 nat64.test
2002:7f00:1:: sixtofour.test
::ffff:127.0.0.2 mapped.test
64:ff9b:1::7f00:1 other64.test
100.100.100.200 cloud.test
0.0.0.0 zero.test
224.0.0.1 multi.test
255.255.255.255 broad.test
`

// withHosts runs srt in a mount namespace in which /etc/hosts is this text.
func (b *box) withHosts(c cfg, hosts string, args ...string) result {
	b.t.Helper()
	b.file(b.dir+"/hosts", hosts)
	id := strconv.Itoa(b.who.uid)
	unshare, drop := []string{"unshare", "-m"}, []string{"setpriv", "--reuid", id, "--regid", strconv.Itoa(b.who.gid), "--clear-groups"}
	if os.Getuid() != 0 {
		unshare, drop = []string{"unshare", "-c", "--keep-caps", "-m"}, []string{"setpriv", "--inh-caps=-all", "--ambient-caps=-all"}
	}
	line := append(unshare, "sh", "-c", `mount --bind "$0" /etc/hosts && exec "$@"`, b.dir+"/hosts")
	cmd := b.command(append(append(line, drop...), b.srt(c, args...)...)...)
	cmd.SysProcAttr.Credential = nil // setpriv drops it after the mount
	return b.finish(cmd)
}

func TestNet_case16_21_ResolvedAddresses(t *testing.T) {
	eachAlong(t, func(t *testing.T, b *box) {
		web := b.web()
		hosts := hostsFile
		own := ownAddress(t)
		if own != "" {
			hosts += own + " own.test\n"
		}
		refusal := func(name, class string) exchange {
			return exchange{"refused: " + name, connectTo(name + ":@"), []string{"403 resolved to " + class + "\r\n",
				"X-Proxy-Error: blocked-by-sandbox-runtime", "Connection to " + name + " blocked: resolved to " + class}, "169.254"}
		}
		names := list{"x.localhost", "localhost"}
		for _, n := range strings.Fields(hosts) {
			if strings.HasSuffix(n, ".test") {
				names = append(names, n)
			}
		}
		c := cfg{allow: append(names, "127.0.0.1:"+web.port), deny: list{"10.9.8.7"}}
		cases := []exchange{
			refusal("meta.test", "a link-local address"),
			refusal("two.test", "a deny-listed address / a loopback address"),
			refusal("owt.test", "a deny-listed address / a loopback address"),
			refusal("x.localhost", "a non-loopback address"),
			refusal("nat64.test", "a loopback address"),
			refusal("sixtofour.test", "a loopback address"),
			refusal("mapped.test", "a loopback address"),
			refusal("cloud.test", "a cloud metadata address"),
			refusal("zero.test", "an unspecified address"),
			refusal("multi.test", "a multicast address"),
			refusal("broad.test", "the broadcast address"),
			{"case 17", connectTo("loop.test:@") + "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", []string{"200 Connection", "hello"}, ""},
			{"case 17", connectTo("loop.test:1"), []string{"403 resolved to a loopback address"}, ""},
			{"case 19", connectTo("other64.test:@"), []string{"502 Bad Gateway"}, ""},
			{"case 16", "GET http://meta.test/ HTTP/1.1\r\nHost: x\r\n$AUTH\r\nConnection: close\r\n\r\n",
				[]string{"403 Forbidden", "blocked-by-sandbox-runtime", "resolved to a link-local address\n"}, "169.254"},
		}
		if own != "" {
			cases = append(cases, refusal("own.test", "one of this host's addresses"))
		}
		run := func(c cfg) func(args ...string) result {
			return func(args ...string) result { b.t.Helper(); return b.withHosts(c, hosts, args...) }
		}
		b.exchangesWith(run(c), "3128", web.port, cases)
		c.net = object{"deniedResolvedAddresses": list{"10.0.0.0/8"}}
		b.exchangesWith(run(c), "3128", web.port, []exchange{refusal("private.test", "a listed address"),
			refusal("two.test", "a deny-listed address / a loopback address / a listed address")})
	})
}

// ownAddress is an address of this host beyond loopback and link-local, or "".
func ownAddress(t *testing.T) string {
	t.Helper()
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range addrs {
		if n, ok := a.(*net.IPNet); ok && n.IP.IsGlobalUnicast() {
			return n.IP.String()
		}
	}
	return ""
}
