package fsview

import (
	"bytes"
	"strings"
)

// The files by which a program inside finds the sandbox's own resolver, and nothing else. What asks another way (nscd,
// systemd-resolved, mDNS) would learn addresses that stand for no name, so that no rule about the name could hold (NET-7).
const (
	resolvConf  = "/etc/resolv.conf"
	nsswitch    = "/etc/nsswitch.conf"
	hosts       = "/etc/hosts"
	hostnameKey = "/proc/sys/kernel/hostname" // uts_namespaces(7): the sandbox's has the same name
)

// resolverConfig is the sandbox's resolv.conf (resolv.conf(5)).
//
// The host's search domains are left out: each would be asked for after a name that does not exist, and reported, and a
// name would mean another host on another machine. A search list must still be given, since without one glibc takes the
// domain of the host's own name: the root, which adds nothing. ndots:0 has every name asked for as it is first: musl makes
// of a name without dots and the root a malformed question.
//
// Nothing else is set. single-request would part the questions for A and AAAA, which the resolver answers together.
// trust-ad would have programs believe that answers are validated. edns0 serves answers that are longer than any here. And
// timeout and attempts stay as they are: the resolver answers out of memory and ends with the sandbox, so that a shorter
// wait only makes lookups fail on a busy machine.
const resolverConfig = "# The resolver of the sandbox; it answers by the policy and asks nobody.\n" +
	"nameserver 127.0.0.1\nsearch .\noptions ndots:0\n"

// localHosts are the entries of /etc/hosts that every sandbox has (RFC 6761 section 6.3).
const localHosts = "127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n"

// ResolverFiles are the files that lead a command's lookups to the sandbox's own resolver, on 127.0.0.1: for
// Input.Supplied. read gives a file of the host whole, by its absolute path; errors count as "not there".
//
//   - /etc/resolv.conf names that resolver alone.
//   - /etc/nsswitch.conf is the host's, but for the sources of hosts and networks. Where the host has none there is none:
//     libc then does the same by itself.
//   - /etc/hosts has localhost and the machine's own name. Other entries of the host's would show addresses where the
//     policy has to see names.
func ResolverFiles(read func(path string) ([]byte, error)) []SuppliedFile {
	list := []SuppliedFile{{Path: resolvConf, Content: []byte(resolverConfig)}}
	if text, err := read(nsswitch); err == nil {
		list = append(list, SuppliedFile{Path: nsswitch, Content: localSources(text)})
	}
	name := ""
	if text, err := read(hostnameKey); err == nil {
		name = string(bytes.TrimSpace(text))
	}
	return append(list, SuppliedFile{Path: hosts, Content: []byte(localHosts + ownNameEntry(name))})
}

// ResolverPaths are the absolute paths of those files.
func ResolverPaths() []string { return []string{resolvConf, nsswitch, hosts} }

// localDatabases are the databases of nsswitch.conf(5) that lookups of hosts use, and the line that each gets.
var localDatabases = [...]struct{ name, line string }{{"hosts", "hosts: files dns\n"}, {"networks", "networks: files\n"}}

// localSources gives an nsswitch.conf with the lines of localDatabases in the place of the first of their own, or at the
// end, and every other line as it was. Of repeated lines the last counts (nss_database.c of glibc), so that all go.
func localSources(text []byte) []byte {
	out := make([]byte, 0, len(text)+64)
	var done [len(localDatabases)]bool
	for len(text) > 0 {
		line := text
		if end := bytes.IndexByte(text, '\n'); end >= 0 {
			line = text[:end+1]
		}
		text = text[len(line):]
		switch i := localDatabase(line); {
		case i < 0:
			out = append(out, line...)
		case !done[i]:
			out, done[i] = append(out, localDatabases[i].line...), true
		}
	}
	for i, db := range localDatabases {
		if done[i] {
			continue
		}
		if len(out) > 0 && out[len(out)-1] != '\n' {
			out = append(out, '\n')
		}
		out = append(out, db.line...)
	}
	return out
}

// localDatabase is the index in localDatabases of what a line is about, or -1.
//
// It reads a line as glibc does (process_line in nss_database.c), or takes more for one of ours, never less: a comment
// starts anywhere, the name ends at white space or a colon, whichever comes first, and other readers ignore letter case.
// No line continues another.
func localDatabase(line []byte) int {
	if comment := bytes.IndexByte(line, '#'); comment >= 0 {
		line = line[:comment]
	}
	name := bytes.TrimLeft(line, whitespace)
	if end := bytes.IndexAny(name, whitespace+":"); end >= 0 {
		name = name[:end]
	}
	for i, db := range localDatabases {
		if len(name) == len(db.name) && strings.EqualFold(string(name), db.name) { // letters of ASCII alone
			return i
		}
	}
	return -1
}

// whitespace is what isspace(3) knows in the C locale.
const whitespace = " \t\n\v\f\r"

// ownNameEntry is the line of /etc/hosts for the machine's own name, which programs look up (sudo, Java), with its first
// label as an alias; or "" for what is no name that a program could look up.
//
// It stands for 127.0.0.1, not for 127.0.1.1: a server that listens at its own name and a client that asks for localhost
// meet, and clients that leave out proxies for 127.0.0.1 alone connect directly. In a line of its own it stays the
// canonical name of itself (hostname -f), and the first line keeps that of the address: localhost.
func ownNameEntry(name string) string {
	name = strings.TrimSuffix(name, ".")
	const longest = 253 // RFC 1035 section 2.3.4, as text
	labels := strings.Split(name, ".")
	if len(name) > longest || strings.EqualFold(name, "localhost") {
		return ""
	}
	for _, l := range labels {
		if l == "" || strings.ContainsFunc(l, func(c rune) bool { return !nameByte(c) }) {
			return ""
		}
	}
	if strings.Trim(labels[len(labels)-1], "0123456789") == "" {
		return "" // read as an address
	}
	if len(labels) > 1 && !strings.EqualFold(labels[0], "localhost") && strings.Trim(labels[0], "0123456789") != "" {
		name += " " + labels[0]
	}
	return "127.0.0.1 " + name + "\n"
}

// nameByte reports whether a character may stand in a label of a host's name: RFC 952 and RFC 1123, and the underscore,
// which machines do have.
func nameByte(c rune) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_'
}
