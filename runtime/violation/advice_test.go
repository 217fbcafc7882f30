package violation

import (
	"strings"
	"testing"
)

func TestAdvice(t *testing.T) {
	host := func(target, rule, entry, reason string) Event {
		return Event{Operation: NetworkOutbound, Target: target, Rule: rule, Entry: entry, Reason: reason}
	}
	notListed := func(target string) Event { return host(target, allowedDomains, "", "host is not on the allow list") }
	for _, tc := range []struct {
		name string
		in   Event
		want string
	}{
		{"not listed, a port of the web", notListed("example.com:443"), `network.allowedDomains: add "example.com"`},
		{"not listed, another port", notListed("example.com:8443"), `network.allowedDomains: add "example.com:8443"`},
		{"not listed, as spelled", notListed("EXAMPLE.com.:22"), `network.allowedDomains: add "example.com:22"`},
		{"not listed, IPv4", notListed("10.1:80"), `network.allowedDomains: add "10.0.0.1"`},
		{"not listed, IPv6", notListed("2001:db8::1:8443"), `network.allowedDomains: add "[2001:db8::1]:8443"`},
		{"no entry names it", notListed("com:443"), "nothing in the settings allows it: no entry can name such a host"},
		{"no rule", host("a.test:443", "", "", "host is not on the allow list"), `network.allowedDomains: add "a.test"`},
		{"deny entry", host("evil.test:443", "network.deniedDomains.2", "*.test", "no"), `network.deniedDomains.2 ("*.test") refuses it: remove that entry; no list lifts it`},
		{"user denied", host("a.test:443", "", "", "user denied"), `it was refused when asked; network.allowedDomains: add "a.test" to allow it without asking`},
		{"user denied, with a rule", host("a.test:443", allowedDomains, "", "user denied"), `it was refused when asked; network.allowedDomains: add "a.test" to allow it without asking`},
		{"prompt failed", host("a.test:81", "", "", "permission prompt failed"), `it could not be asked about; network.allowedDomains: add "a.test:81" to allow it without asking`},
		{"words of a callback", host("a.test:443", "", "", "not on a Friday"), `network.allowedDomains: add "a.test"`},
		{"malformed", host("*.test:443", "", "", "malformed host"), "nothing in the settings allows it: no server has such a name"},
		{"unavailable", host("a.test:443", "", "", "sandbox policy unavailable"), "nothing in the settings allows it: the session was not ready, or is closed"},
		{"resolved", host("a.test:443", "", "", "resolved to a loopback address / a link-local address"),
			`the name leads to an address that names may not lead to: list that address itself in network.allowedDomains, with or without a port, such as "10.0.0.7:443"`},
		{"resolved, deny-listed", host("a.test:443", "", "", "resolved to a deny-listed address"), "network.deniedDomains names the address that the name leads to: remove that entry"},
		{"UDP", host("8.8.8.8:53", "", "", "UDP is not forwarded"),
			"nothing in the settings allows it: UDP does not leave the sandbox; names resolve, and TCP is let through by network.allowedDomains"},
		{"SOCKS", Event{Operation: SOCKSTunnel, Target: "a.test:22", Rule: "network.refuseOpaqueTunnels", Reason: ReasonOpaqueTunnel},
			"network.refuseOpaqueTunnels: set it to false to let tunnels through that cannot be inspected"},
		{"SOCKS, no rule", Event{Operation: SOCKSTunnel, Target: "a.test:22", Reason: ReasonOpaqueTunnel}, "network.refuseOpaqueTunnels: set it to false"},
		{"request", Event{Operation: HTTPRequest, Target: "GET https://a.test/p?…", Reason: "no"}, "the request itself was refused; no list allows it"},
		{"request rule", Event{Operation: HTTPRequest, Target: "PUT https://a.test/p", Rule: "network.requestRules.2", Reason: "no"},
			"network.requestRules.2 refuses it: change that entry, or put one that allows the request before it"},
		{"no request rule", Event{Operation: HTTPRequest, Target: "PUT https://a.test/p", Rule: "network.requestRules", Reason: "no"},
			"network.requestRules: add an entry that allows the request"},
		{"unreadable at a rule's host", Event{Operation: HTTPRequest, Target: "CONNECT a.test:443", Rule: "network.requestRules",
			Reason: "network.requestRules names this host, and this tunnel cannot be read"},
			"network.requestRules: at a host that an entry names, only requests that srt can read go on: those over http, and those over https " +
				"with network.tlsTerminate"},
		{"ambiguous path", Event{Operation: HTTPRequest, Target: "GET https://a.test/p%2fq", Rule: "network.requestRules",
			Reason: "ambiguous request-target: servers read it as different paths, which network.requestRules decides differently"},
			`network.requestRules: write the paths of its entries so that every way to read the request decides alike ("/a/**" has all that lies ` +
				`below "/a/", "/a/*" only one name), or send a path without "%", "\", ";" and "//"`},
		{"ambiguous method", Event{Operation: HTTPRequest, Target: "POST https://a.test/p", Rule: "network.requestRules",
			Reason: "ambiguous method: servers read it as different methods, which network.requestRules decides differently"},
			"network.requestRules: both the method of the request and the one that its header names have to be allowed"},
		{"DNS", Event{Operation: DNSQuery, Target: "Name.test", Rule: allowedDomains}, `network.allowedDomains: add "name.test"`},

		{"hidden", Event{Operation: "openat", Target: "/home/u/.ssh/known_hosts", Rule: "filesystem.denyRead.0", Entry: "~/.ssh"},
			`filesystem.denyRead.0 ("~/.ssh") refuses it: remove that entry, or add "/home/u/.ssh/known_hosts" to filesystem.allowRead`},
		{"hidden, to be written", Event{Operation: "openat", Kind: KindFileWrite, Target: "/s/k", Rule: "filesystem.denyRead.0", Entry: "/s"},
			`filesystem.denyRead.0 ("/s") refuses it: remove that entry, or add "/s/k" to filesystem.allowWrite`},
		{"hidden credential", Event{Operation: "openat", Target: "/k", Rule: "credentials.files.1.path", Entry: "/k"},
			`credentials.files.1.path ("/k") refuses it: remove that entry; no list lifts the deny of a credential`},
		{"read list", Event{Operation: "openat", Target: "/k", Rule: allowRead}, `filesystem.allowRead: add "/k"`},
		{"read-only island", Event{Operation: "openat", Target: "/k", Rule: "filesystem.allowRead.3", Entry: "/k"},
			`filesystem.allowRead.3 ("/k") gives reading alone: add "/k" to filesystem.allowWrite`},
		{"not writable", Event{Operation: "openat", Target: "/etc/x", Rule: allowWrite}, `filesystem.allowWrite: add "/etc/x"`},
		{"not writable, a new name", Event{Operation: "openat", Target: "/etc/x", Rule: allowWrite, Creates: true}, `filesystem.allowWrite: add "/etc"`},
		{"not writable, mkdir", Event{Operation: "mkdirat", Target: "/etc/x", Rule: allowWrite}, `filesystem.allowWrite: add "/etc"`},
		{"write deny", Event{Operation: "unlinkat", Target: "/w/x", Rule: "filesystem.denyWrite.0", Entry: "x"}, `filesystem.denyWrite.0 ("x") refuses it: remove that entry`},
		{"held in place", Event{Operation: "rename", Target: "/w", Rule: "filesystem.allowWrite.0", Entry: "/w"},
			`filesystem.allowWrite.0 ("/w") stays in place, because a path that is listed by itself cannot be renamed or removed: list the directory that holds it instead`},
		{"protected", Event{Operation: "openat", Target: "/w/.bashrc", Rule: "protected name .bashrc"},
			"nothing in the settings allows it but filesystem.disabled: protected name .bashrc cannot be changed by commands"},
		{"protected git configuration", Event{Operation: "openat", Target: "/w/.git/config", Rule: "protected name .git/config"}, "filesystem.allowGitConfig: set it to true"},
		{"srt's own", Event{Operation: "openat", Target: "/w/s", Rule: "srt's own file"}, "nothing in the settings allows it: srt's own file is not for commands"},
		{"no rule, read", Event{Operation: "execve", Target: "/x"}, `filesystem.allowRead: add "/x"`},
		{"no rule, write", Event{Operation: "rmdir", Target: "/x/y"}, `filesystem.allowWrite: add "/x"`},
		{"no rule, explicit kind", Event{Operation: "openat", Kind: KindFileWrite, Target: "/x/y"}, `filesystem.allowWrite: add "/x/y"`},
		{"a pattern in a name", Event{Operation: "openat", Target: "/w/a*b", Rule: allowWrite}, `filesystem.allowWrite: add {"path": "/w/a*b", "literal": true}`},
		{"quotes and what is unsafe", Event{Operation: "openat", Target: "/w/\"\x1b\u202e\U000e0041", Rule: allowWrite}, `filesystem.allowWrite: add "/w/\"\u001b\u202e\udb40\udc41"`},
		{"unix socket", Event{Operation: "connect", Target: "/run/docker.sock", Rule: unixSockets}, `network.allowUnixSockets: add "/run/docker.sock"`},
		{"unix socket, listed", Event{Operation: "connect", Target: "/w/s", Rule: "network.allowUnixSockets.1", Entry: "s"},
			`network.allowUnixSockets.1 ("s") names it already: in a place that the command may write, only a socket counts that is there when it starts and has no other name`},
		{"no unix socket", Event{Operation: "connect", Target: "/w/f", Rule: unixSockets, Reason: ReasonNoSocket}, "nothing in the settings allows it: what is there is no socket"},
		{"rename out", Event{Operation: "rename", Target: "/a/o/f", Other: "/a/p/f", Rule: allowWrite}, `filesystem.allowWrite: add "/a"`},
		{"rename within one directory", Event{Operation: "rename", Target: "/o/f", Other: "/o/g", Rule: allowWrite}, `filesystem.allowWrite: add "/o"`},
		{"rename to what lies deeper", Event{Operation: "rename", Target: "/o/f", Other: "/o/d/e/g", Rule: allowWrite}, `filesystem.allowWrite: add "/o"`},
		{"rename between neighbours of which one begins like the other", Event{Operation: "rename", Target: "/a/o/f", Other: "/a/oo/g", Rule: allowWrite}, `filesystem.allowWrite: add "/a"`},
		{"link", Event{Operation: "link", Target: "/a/o/f", Other: "/a/p/f", Rule: allowWrite}, `filesystem.allowWrite: add "/a"`},
		{"rename with nothing in common", Event{Operation: "rename", Target: "/o/f", Other: "/p/f", Rule: allowWrite},
			"a rename or link stays within one entry of filesystem.allowWrite, and no directory below the root holds both paths: copy instead"},
		{"apart", Event{Operation: "rename", Target: "/a/o/f", Other: "/a/p/f", Apart: true, Rule: "filesystem.allowWrite.1", Entry: "o"},
			`each path is allowed, by entries of their own (filesystem.allowWrite.1 ("o") is one), and a rename or link does not lead from one to another: add "/a" to filesystem.allowWrite, which holds both, or copy`},
		{"apart, with nothing in common", Event{Operation: "rename", Target: "/o/f", Other: "/p/f", Apart: true, Rule: "filesystem.allowWrite.1", Entry: "o"},
			"a rename or link stays within one entry of filesystem.allowWrite, and no directory below the root holds both paths: copy instead"},
		{"rename of what is denied by itself", Event{Operation: "rename", Target: "/o/f", Other: "/p/f", Rule: "filesystem.denyWrite.0", Entry: "f"}, `filesystem.denyWrite.0 ("f") refuses it: remove that entry`},
		{"file modes", Event{Operation: "openat", Target: "/root/a", Rule: allowWrite, Creates: true, Modes: "/root"},
			`no setting would help: the file modes of "/root" refuse it to this user as well`},
		{"unix socket, no rule", Event{Operation: "connect", Target: "/run/x"}, `network.allowUnixSockets: add "/run/x"`},
		{"unknown rule", Event{Operation: "openat", Target: "/proc/kcore", Rule: "kernel mount"}, "nothing in the settings allows it"},
		{"unknown call", Event{Operation: "reboot"}, "nothing in the settings allows it"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := tc.in.Advice(); got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}

func TestRuleOf(t *testing.T) {
	for in, want := range map[string]string{
		"filesystem.denyRead.0 (FS-22)":                         "filesystem.denyRead.0",
		"protected name .bashrc (FS-35)":                        "protected name .bashrc",
		"srt's own file (FS-51)":                                "srt's own file",
		"default write path /tmp/a (b) (FS-28)":                 "default write path /tmp/a (b)",
		`protected name .bashrc (FS-7, as at "/a (b)")`:         "protected name .bashrc",
		`credentials.files.0.path (FS-7, as at "/a, b (FS-3)")`: "credentials.files.0.path",
		"filesystem.allowWrite":                                 "filesystem.allowWrite",
		"network.allowUnixSockets names no such socket":         "network.allowUnixSockets",
		"a (b)": "a (b)", "x (FS-)": "x (FS-)", "x (-1)": "x (-1)", "x (fs-1)": "x (fs-1)", "": "",
	} {
		if got := RuleOf(in); got != want {
			t.Errorf("RuleOf(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestKindOf(t *testing.T) {
	for _, tc := range []struct {
		in   Event
		want Kind
	}{
		{Event{Operation: NetworkOutbound}, KindNetwork},
		{Event{Operation: HTTPRequest}, KindRequest},
		{Event{Operation: SOCKSTunnel}, KindSOCKS},
		{Event{Operation: DNSQuery}, KindDNS},
		{Event{Operation: "openat"}, KindFileRead},
		{Event{Operation: "openat", Rule: "filesystem.denyRead.0"}, KindFileRead},
		{Event{Operation: "openat", Rule: "filesystem.allowWrite"}, KindFileWrite},
		{Event{Operation: "openat", Rule: "filesystem.denyWrite.7"}, KindFileWrite},
		{Event{Operation: "openat", Rule: "protected name .bashrc"}, KindFileWrite},
		{Event{Operation: "openat", Rule: "filesystem.allowWrite", Kind: KindFileRead}, KindFileRead},
		{Event{Operation: "execve"}, KindFileRead},
		{Event{Operation: "renameat2"}, KindFileWrite},
		{Event{Operation: "connect", Rule: unixSockets}, KindUnixSocket},
		{Event{Operation: "connect"}, KindUnixSocket},
		{Event{Operation: "reboot"}, KindOther},
	} {
		if got := tc.in.KindOf(); got != tc.want {
			t.Errorf("%+v: %q, want %q", tc.in, got, tc.want)
		}
	}
	// VIO-10: every call of the rule is known as one that writes, but for open and openat, which may read.
	for call := range strings.FieldsSeq("creat unlink unlinkat rmdir mkdir mkdirat mknod mknodat link linkat symlink symlinkat rename " +
		"renameat renameat2 truncate chmod fchmodat fchmodat2 chown lchown fchownat utime utimes utimensat setxattr") {
		if got := (Event{Operation: Operation(call)}).KindOf(); got != KindFileWrite {
			t.Errorf("VIO-10 %s: %q", call, got)
		}
	}
}

func TestObject(t *testing.T) {
	for _, tc := range []struct {
		name       string
		op         Operation
		target     string
		path, host string
		port       uint16
	}{
		{"host", NetworkOutbound, "a.test:443", "", "a.test", 443},
		{"VIO-11 address", NetworkOutbound, "::1:443", "", "::1", 443},
		{"VIO-11 address with a zone", SOCKSTunnel, "fe80::1%lo:22", "", "fe80::1%lo", 22},
		{"no port", NetworkOutbound, "a.test", "", "a.test", 0},
		{"no number", NetworkOutbound, "a.test:x", "", "a.test:x", 0},
		{"tunnel", HTTPRequest, "CONNECT [fe80::2]:443", "", "fe80::2", 443},
		{"request", HTTPRequest, "GET https://h/p?…", "", "h", 443},
		{"request with a port", HTTPRequest, "GET http://[::1]:81/a", "", "::1", 81},
		{"plain request", HTTPRequest, "POST http://h/", "", "h", 80},
		{"VIO-13 not understood", HTTPRequest, "-", "", "", 0},
		{"relative", HTTPRequest, "GET /a?…", "", "", 0},
		{"DNS", DNSQuery, "a.test", "", "a.test", 0},
		{"file", "openat", "/a:1", "/a:1", "", 0},
	} {
		path, host, port := Event{Operation: tc.op, Target: tc.target}.Object()
		if path != tc.path || host != tc.host || port != tc.port {
			t.Errorf("%s: %q, %q, %d", tc.name, path, host, port)
		}
	}
}
