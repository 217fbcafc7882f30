package violation

import "strings"

// Kind is what an event is about. The texts are part of the interface: they stand in the JSON lines.
type Kind string

// The kinds.
const (
	KindFileRead   Kind = "file-read"    // reading, listing, executing or entering something
	KindFileWrite  Kind = "file-write"   // changing something, its name or its metadata
	KindNetwork    Kind = "network"      // a destination, as host and port
	KindDNS        Kind = "dns"          // a name that was looked up
	KindUnixSocket Kind = "unix-socket"  // a Unix socket, by path or by type
	KindRequest    Kind = "http-request" // one request, or a tunnel that carries what is not let through
	KindSOCKS      Kind = "socks-tunnel" // a SOCKS tunnel that nothing can look into
	KindOther      Kind = "other"        // any other system call
)

// kindsOfRules are the kinds that a place in the settings stands for, whatever the call.
var kindsOfRules = [...]struct {
	prefix string
	kind   Kind
}{
	{"filesystem.denyRead", KindFileRead},
	{"filesystem.allowRead", KindFileRead},
	{"credentials.files", KindFileRead},
	{"filesystem.denyWrite", KindFileWrite},
	{"filesystem.allowWrite", KindFileWrite},
	{"protected name", KindFileWrite},
	{"network.allowUnixSockets", KindUnixSocket},
}

// KindOf is the event's kind: Kind if it is set, else what the operation and the rule say.
func (e Event) KindOf() Kind {
	if e.Kind != "" {
		return e.Kind
	}
	switch e.Operation {
	case NetworkOutbound:
		return KindNetwork
	case HTTPRequest:
		return KindRequest
	case SOCKSTunnel:
		return KindSOCKS
	case DNSQuery:
		return KindDNS
	}
	for _, r := range kindsOfRules {
		if strings.HasPrefix(e.Rule, r.prefix) {
			return r.kind
		}
	}
	return kindOfCall(string(e.Operation))
}

// kindOfCall is what a system call does by its name. open and openat are taken for reading: a source knows better.
func kindOfCall(call string) Kind {
	switch call {
	case "open", "openat", "openat2", "open_by_handle_at", "opendir", "readlink", "readlinkat", "execve", "execveat", "chdir", "fchdir", "stat",
		"newfstatat", "lstat", "statx", "access", "faccessat", "faccessat2", "getxattr", "lgetxattr", "listxattr", "llistxattr":
		return KindFileRead
	case "creat", "unlink", "unlinkat", "rmdir", "mkdir", "mkdirat", "mknod", "mknodat", "link", "linkat", "symlink", "symlinkat",
		"rename", "renameat", "renameat2", "truncate", "chmod", "fchmodat", "fchmodat2", "chown", "lchown", "fchownat",
		"utime", "utimes", "futimesat", "utimensat", "setxattr", "lsetxattr", "removexattr", "lremovexattr", "setxattrat", "removexattrat",
		"ioctl":
		return KindFileWrite
	case "connect", "bind", "socket", "socketpair", "sendto", "sendmsg", "sendmmsg":
		return KindUnixSocket
	}
	return KindOther
}

// RuleOf turns the reason that a plan of the file system or the broker gives, "filesystem.denyRead.0 (FS-22)" or
// `protected name .bashrc (FS-7, as at "/a")`, into a [Event.Rule]: what stands before the number of the rule of the
// specification, or the place in the settings that a sentence begins with. Any other text comes back as it is.
func RuleOf(why string) string {
	for head := why; strings.HasSuffix(why, ")"); { // what is in the text may have parentheses, too
		i := strings.LastIndex(head, " (")
		if i < 0 {
			break
		}
		head = why[:i]
		number, _, _ := strings.Cut(strings.TrimSuffix(why[i+len(" ("):], ")"), ", ")
		if numbered(number) {
			return head
		}
	}
	if place, _, found := strings.Cut(why, " "); found && (strings.HasPrefix(place, "network.") || strings.HasPrefix(place, "filesystem.")) {
		return place
	}
	return why
}

// numbered tells whether s is the number of a rule: capital letters, a hyphen, digits.
func numbered(s string) bool {
	chapter, number, found := strings.Cut(s, "-")
	return found && chapter != "" && number != "" &&
		strings.Trim(chapter, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") == "" && strings.Trim(number, "0123456789") == ""
}
