package hostile

import (
	"fmt"
	"strings"
	"testing"

	"github.com/srt-sandbox/srt/test/programs/stage"
)

// TestNET7_NamesCarryNothingOut: no query leaves a sandbox, whatever is asked of whom; the host's name server hears of a
// name only when a connection to it is allowed. An address that no answer carried stands for nothing.
func TestNET7_NamesCarryNothingOut(t *testing.T) {
	w := newWorld(t)
	stage.Each(t, func(s *stage.Stage) {
		w.names.take()
		w.silentBut(s.T, func() {
			r := w.run(s, rules{Allow: []string{goodName + ":7"}}, "/usr/bin/python3", w.dir+"/names.py")
			wantLines(s.T, r, nameGames())
		})
		asked := w.names.take()
		if asked[goodName+"."] == 0 {
			s.T.Error("the host's name server was not asked for the allowed name: it would not have seen others either")
		}
		for name := range asked {
			if name != goodName+"." {
				s.T.Errorf("ESCAPE: the host's name server was asked for %q", name)
			}
		}
	})
}

func nameGames() string {
	var b strings.Builder
	for _, server := range []string{serverNet, "8.8.8.8", "1.1.1.1", "10.203.255.1", "169.254.169.253"} {
		for _, way := range []string{"udp", "tcp", "tls", "https"} {
			fmt.Fprintf(&b, "%s %s EACCES\n", way, server)
		}
	}
	b.WriteString("good " + good + ":7\nits other port EACCES\nunlisted EACCES\ngood by IPv6 True\ngood, mapped True\n")
	for _, a := range []string{"198.18.0.0", "198.18.77.77", "198.19.255.254", "198.18.0.255"} {
		b.WriteString("never answered " + a + " EACCES\nnever answered, mapped " + a + " EACCES\n")
	}
	for _, tail := range []string{"::", "::1:ffff", ":0:1:0:1", ":ffff:ffff:ffff:ffff", "::dead"} {
		b.WriteString("never answered, six " + tail + " EACCES\n")
	}
	b.WriteString("embedded EACCES\ncompatible EACCES\n6to4 EACCES\nreverse (0, 3, 3, 0)\nport 53 is taken from nobody []\n")
	return b.String()
}

// silentBut is silent where the host may ask its name server, and what the allowed name leads to may be reached.
func (w *world) silentBut(t *testing.T, attack func()) {
	t.Helper()
	w.silent(t, attack, good+":7", "["+good6+"]:7", serverNet+":53")
}

// TestNET51_Resolvers: NET-50 to NET-57 and case 22 for connections that no proxy was asked for: a name leads to no
// address that its host may not, however often the resolver changes its mind.
func TestNET51_Resolvers(t *testing.T) {
	w := newWorld(t)
	names := []string{"loop.test", "mapped.test", "sixtofour.test", "nat.test", "meta.test", "unspecified.test", "own.test", "listed.test"}
	stage.Each(t, func(s *stage.Stage) {
		w.silent(s.T, func() {
			r := w.python(s, rules{Allow: append(names, "flip.test"), Network: map[string]any{"deniedResolvedAddresses": []string{bad}}}, `
for n in sys.argv[1:]:
    for family in (INET, INET6):
        for port in (7, 5432):
            try: tcp(n, port, family); print("connected", n)
            except OSError as e:
                if e.errno not in (errno.EACCES, errno.EHOSTUNREACH, errno.ENETUNREACH): print(n, family, name(e))
            try: settled(nonblocking(n, port, family)); print("connected", n)
            except OSError as e:
                if e.errno not in (errno.EACCES, errno.EHOSTUNREACH, errno.ENETUNREACH): print(n, family, name(e))
seen = {}
for i in range(60):
    try: r = banner(tcp("flip.test"))
    except OSError as e: r = name(e)
    seen[r] = seen.get(r, 0) + 1
print(sorted(seen))
done()`, names...)
			wantLines(s.T, r, "['"+good+":7', 'EACCES']")
		}, good+":7", serverNet+":53")
	})
}

// TestNET8_SpellingsOfLiterals: however an address is written in a call, it is one address: the deny list is not passed by
// a spelling, and the allow list admits no other.
func TestNET8_SpellingsOfLiterals(t *testing.T) {
	w := newWorld(t)
	const attack = `
for host in ("10.203.2.1", "::ffff:10.203.2.1", "::10.203.2.1", "64:ff9b::10.203.2.1", "2002:acb:201::", "::ffff:0:10.203.2.1", "64:ff9b:1::10.203.2.1", "fd5a:203:1::bad",
             "10.203.255.1", "fd5a:203::1", "255.255.255.255", "240.0.0.1", "0.1.2.3", "0.0.0.1", "224.0.0.1", "fe80::1", "fe80::1%1", "::2", "ff02::1", "127.0.0.1", "::1", "::ffff:127.0.0.1", "0.0.0.0", "::", "169.254.169.254"):
    family = INET6 if ":" in host else INET
    for port in (7, 80, 0, 65535):
        for make in (tcp, lambda *a: settled(nonblocking(*a))):
            try: make(host, port, family); print("connected", host, port)
            except OSError as e:
                if e.errno not in (errno.EACCES, errno.ECONNREFUSED, errno.ENETUNREACH, errno.EINVAL): print(host, port, name(e))
for text in ("10.203.513", "0xacb0201", "181076481", "012.0313.02.01", "10.203.2.1.", "0x0a.0xcb.0x02.0x01", "[10.203.2.1]", "10.203.2.1%lo", "１０.203.2.1"):
    try: socket.create_connection((text, 7), 20); print("connected", text)
    except (OSError, UnicodeError): pass
done()`
	stage.Each(t, func(s *stage.Stage) {
		denied := []string{bad, "10.203.255.1", "[" + bad6 + "]", "127.0.0.1", "[::1]", "169.254.169.254"}
		for _, r := range []rules{{Allow: []string{good + ":7", "*.leak.test"}}, {Allow: append(denied, good), Deny: denied}, {Allow: []string{good}, Deny: []string{"*"}}} {
			w.silent(s.T, func() { wantLines(s.T, w.python(s, r, attack), "") })
		}
	})
}
