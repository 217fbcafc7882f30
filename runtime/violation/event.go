package violation

import (
	"net"
	"strconv"
	"strings"
	"time"
)

// Operation is what was attempted. It is the second word of a line (NET-70); for the file system it is the name of the
// system call (VIO-10).
type Operation string

// The operations of the proxies.
const (
	NetworkOutbound Operation = "network-outbound" // Target: host:port
	HTTPRequest     Operation = "http-request"     // Target: METHOD url, or CONNECT host:port
	SOCKSTunnel     Operation = "socks-tunnel"     // Target: host:port
	DNSQuery        Operation = "dns-query"        // Target: the name
)

// network tells whether an operation is one of the proxies' and not the name of a system call.
func (o Operation) network() bool {
	switch o {
	case NetworkOutbound, HTTPRequest, SOCKSTunnel, DNSQuery:
		return true
	}
	return false
}

// ReasonOpaqueTunnel is the reason of a SOCKSTunnel event (NET-38, NET-70).
const ReasonOpaqueTunnel = "refuseOpaqueTunnels"

// ReasonNoSocket is the reason where something that is no Unix socket is asked about as one.
const ReasonNoSocket = "what is there is no socket"

// Event is one refused operation. It is a value: nothing changes it once it is made, and it may be shared.
//
// What a sandboxed process can write (Target, and CommandID where it comes from a user name) only informs reports: no
// event ever feeds a decision (VIO-7).
type Event struct {
	// Time is when it was refused.
	Time time.Time
	// PID is the process in the host's pid namespace, 0 if the source does not know it (the proxies see a connection).
	PID int
	// Process is the name of the process, empty if unknown.
	Process string
	// Operation is what was attempted.
	Operation Operation
	// Target is what it was attempted on, in the form that the Operation names: see HostPort, Request and Tunnel. For the
	// file system it is an absolute path.
	Target string
	// Kind is what was refused. Empty: it follows from Operation and Rule (see [Event.KindOf]); a source that knows more than
	// the name of the call says so here.
	Kind Kind
	// Creates is true for a call that would have made a new name: what is to be allowed then is the directory.
	Creates bool
	// Other is the other path of a call with two, a rename or link; empty if there is none or it is not known. What is to be
	// allowed then is a directory that holds both.
	Other string
	// Apart says that both paths are allowed, each by an entry of its own, and only the way from one to the other is not: Rule
	// is that of one of them.
	Apart bool
	// Modes is what the host's own file modes keep the user out of, on the way to Target or at its end: no setting changes
	// those. Empty if they do not, or nobody has asked.
	Modes string
	// Rule is the place in the settings that decided, as a path: "filesystem.denyRead.0", "network.deniedDomains.2". Where
	// nothing allows it, it is the list that lacks an entry: "filesystem.allowWrite", "network.allowedDomains". For srt's own
	// protections it is a short text: "srt's own file", "protected name .bashrc". Empty if no setting had a say.
	Rule string
	// Entry is the entry at Rule as written in the settings, empty if there is none.
	Entry string
	// Reason says why, in the words of NET-39 and VIO-11 to VIO-15. Empty for the file system, whose lines have none.
	Reason string
	// CommandID is the attribution key of the command (VIO-1), empty if unattributed.
	CommandID string
}

// Line is the event in the exact shape of NET-70 and of the table "Violation lines", cleaned (NET-75):
// "deny <operation> <target> (<reason>)", without the parentheses if there is no reason.
func (e Event) Line() string { return Clean(e.RawLine()) }

// RawLine is the line before cleaning. It is not fit for a terminal.
func (e Event) RawLine() string {
	var b strings.Builder
	b.WriteString("deny ")
	b.WriteString(string(e.Operation))
	b.WriteByte(' ')
	b.WriteString(e.Target)
	if e.Reason != "" {
		b.WriteString(" (")
		b.WriteString(e.Reason)
		b.WriteByte(')')
	}
	return b.String()
}

// matched is what ignoreViolations is matched against: the line before cleaning, but the path alone for an event of the
// file system (VIO-26).
func (e Event) matched() string {
	if e.Operation.network() {
		return e.RawLine()
	}
	return e.Target
}

// HostPort is the Target of NetworkOutbound and SOCKSTunnel events: the host as the client spelled it and the port. An
// address, even a malformed one with a zone, has no brackets, whether the client wrote them or not (VIO-11); the port
// stands behind the last colon all the same.
func HostPort(host string, port uint16) string {
	return unbracketed(host) + ":" + strconv.Itoa(int(port))
}

// unbracketed takes the brackets of an IPv6 literal away, those of nothing else.
func unbracketed(host string) string {
	if inner, ok := strings.CutPrefix(host, "["); ok {
		if inner, ok = strings.CutSuffix(inner, "]"); ok && strings.Contains(inner, ":") {
			return inner
		}
	}
	return host
}

// Request is the Target of an HTTPRequest event for a request: method and URL, the latter without its query (NET-71). An
// empty method, of a request that was not understood, is written as "-" (VIO-13).
func Request(method, url string) string {
	if method == "" {
		method = "-"
	}
	if url == "" {
		return method
	}
	return method + " " + RedactURL(url)
}

// Tunnel is the Target of an HTTPRequest event for a tunnel that was refused after it was allowed (VIO-15). Here an
// address has its brackets, as in CONNECT (VIO-11).
func Tunnel(host string, port uint16) string {
	return "CONNECT " + net.JoinHostPort(unbracketed(host), strconv.Itoa(int(port)))
}
