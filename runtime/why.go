package runtime

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/srt-sandbox/srt/runtime/config"
	"github.com/srt-sandbox/srt/runtime/policy"
	"github.com/srt-sandbox/srt/runtime/violation"
)

// QueryKind is what a [Query] is about. The texts are part of the interface.
type QueryKind string

// The kinds.
const (
	QueryRead    QueryKind = "read"    // Target: a path
	QueryWrite   QueryKind = "write"   // Target: a path, of something that exists or is to be made
	QueryRemove  QueryKind = "remove"  // Target: a path, whose last name is to be removed or renamed; a link there is meant itself
	QueryConnect QueryKind = "connect" // Target: host, host:port, [v6] or [v6]:port
	QueryUnix    QueryKind = "unix"    // Target: the path of a Unix socket
)

// pathQueries are the kinds whose target is a path.
var pathQueries = [...]QueryKind{QueryRead, QueryWrite, QueryRemove, QueryUnix}

// Query is one question to [Sandbox.Why].
type Query struct {
	Kind QueryKind
	// Target is as a person would write it. A path may be relative to the directory in which a command would start, and begin
	// with "~/" for its home.
	Target string
}

// Verdict is the answer to a [Query]. Its JSON is part of the interface: keys are only ever added.
type Verdict struct {
	Kind   QueryKind `json:"kind"`
	Target string    `json:"target"`
	// Allowed says that the settings do not refuse it. For a host without a port: on at least one.
	Allowed bool `json:"allowed"`
	// Access is what was judged of a path: "read", "write" for a change of what exists, "create" for the making of
	// the name, "remove".
	Access string `json:"access,omitempty"`
	// Path is the path without links, as a command sees it; for a socket its location on the host.
	Path string `json:"path,omitempty"`
	// Host is the canonical host (NET-8) and Port the port, 0 if the question had none; then Ports says in words on which it can
	// be reached.
	Host  string `json:"host,omitempty"`
	Port  uint16 `json:"port,omitempty"`
	Ports string `json:"ports,omitempty"`
	// Rule is the place in the settings that decided, Entry the entry there as written (see violation.Event). Both may be
	// empty for what is allowed because nothing refuses it.
	Rule  string `json:"rule,omitempty"`
	Entry string `json:"entry,omitempty"`
	// Reason is a sentence for a person, without the rule.
	Reason string `json:"reason,omitempty"`
	// Advice says which setting would change a refusal.
	Advice string `json:"advice,omitempty"`
	// Notes are sentences about what decides beside the settings.
	Notes []string `json:"notes,omitempty"`

	modes string // as in violation.Event
}

// String is the verdict as one line: `write /home/me/.bashrc: denied by filesystem.denyWrite.2 ("~/.bashrc"): ...`. It is
// clean (VIO-20), whatever the names in it hold.
func (v *Verdict) String() string {
	text := string(v.Kind) + " " + v.Target
	if v.Path != "" && v.Path != v.Target {
		text += " (" + v.Path + ")"
	}
	word := "denied"
	if v.Allowed {
		word = "allowed"
	}
	text += ": " + word
	if v.Rule != "" {
		text += " by " + v.Rule
		if v.Entry != "" {
			text += " (" + strconv.Quote(v.Entry) + ")"
		}
	}
	if v.Reason != "" {
		text += ": " + v.Reason
	}
	return violation.Clean(text)
}

// Why says whether a command that is launched now, without an override or a list of its own, could do something, and which
// rule decides. It launches nothing, dials nothing and looks up no name; it looks at the disk as a launch does, and its
// answers come from what a launch enforces. Safe for concurrent use.
//
// The error is about the question (an unknown kind, a target that names nothing) or the settings; a refusal is a Verdict.
func (s *Sandbox) Why(ctx context.Context, q Query) (Verdict, error) {
	list, err := s.WhyAll(ctx, []Query{q})
	if err != nil {
		return Verdict{}, err
	}
	return list[0], nil
}

// WhyAll is [Sandbox.Why] for several questions, which are answered by one plan and in their order.
func (s *Sandbox) WhyAll(ctx context.Context, queries []Query) ([]Verdict, error) {
	if err := s.begunIn(ctx); err != nil {
		return nil, err
	}
	var files pathJudge
	defer func() {
		if files != nil {
			files.release()
		}
	}()
	list := make([]Verdict, 0, len(queries))
	for _, q := range queries {
		v := Verdict{Kind: q.Kind, Target: q.Target}
		var err error
		switch {
		case q.Target == "":
			err = fmt.Errorf("the question about %q names nothing", q.Kind)
		case q.Kind == QueryConnect:
			err = s.whyConnect(&v)
		case slices.Contains(pathQueries[:], q.Kind):
			if files == nil {
				if files, err = s.Command(ctx, "true").pathJudge(); err != nil {
					return nil, err
				}
			}
			err = files.why(&v)
		default:
			err = fmt.Errorf("%q is no kind of question: ask about read, write, remove, connect or unix", q.Kind)
		}
		if err != nil {
			return nil, err
		}
		v.advise()
		list = append(list, v)
	}
	return list, nil
}

// pathJudge answers questions about paths for one launch.
type pathJudge interface {
	why(*Verdict) error
	release()
}

// whyConnect answers a question about a destination.
func (s *Sandbox) whyConnect(v *Verdict) error {
	rules := s.current().network()
	host, port, err := policy.SplitHostPort(v.Target)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	uncaptured := noCapture()
	decided, ports := decideOn(port, host, rules.Decide, rules.DecidePorts)
	byProxy := decided
	if uncaptured == nil {
		decided, ports = decideOn(port, host, rules.DecideDirect, rules.DecideDirectPorts)
	}
	v.Port, v.Ports = port, ports
	v.Allowed, v.Rule, v.Entry, v.Host = decided.Allowed, decided.Rule, decided.Entry, decided.Host.Name
	v.Reason = decided.Reason
	switch {
	case v.Allowed && v.Ports != "":
		v.Reason = "on " + v.Ports
	case v.Allowed || decided.Denied || decided.Malformed:
	case rules.Strict():
		v.Reason += ", and network.strictAllowlist lets nothing else allow it"
	case s.opts.ask.call != nil && policy.IsLoopback(decided.Host):
		v.Notes = append(v.Notes, "of a program that puts it to the proxy, whoever is asked about undecided hosts may allow it")
	case s.opts.ask.call != nil:
		v.Notes = append(v.Notes, "nothing refuses it for good: whoever is asked about undecided hosts may allow it")
	}
	if policy.IsLoopback(decided.Host) {
		v.noteLoopback(byProxy.Allowed, uncaptured)
	} else {
		v.noteNames(rules, decided.Host)
	}
	if n := &s.current().cfg.Network; n.HTTPProxyPort != 0 || n.SOCKSProxyPort != 0 {
		v.Notes = append(v.Notes, "a proxy of the host's (network.httpProxyPort, network.socksProxyPort) decides by itself for programs that use it")
	}
	return nil
}

// decideOn decides about a host on a port; port 0: on every one, and ports says in words on which it can be reached.
func decideOn(port uint16, host string, decide func(string, uint16) policy.Verdict, each func(string) []policy.PortVerdict) (v policy.Verdict, ports string) {
	if port != 0 {
		return decide(host, port), ""
	}
	list := each(host)
	return mainVerdict(list), policy.PortsText(list)
}

// noteNames says what becomes of a name: what is left to decide when an allowed one is dialled, and that a refused one
// resolves all the same.
func (v *Verdict) noteNames(rules *policy.Network, host config.Host) {
	switch text := rules.AddressesText(host); {
	case text == "":
	case v.Allowed:
		v.Notes = append(v.Notes, text)
	default:
		v.Notes = append(v.Notes, "where names resolve in the sandbox this one does, to an address that stands for it; connections to that are what is refused")
	}
}

// mainVerdict is the verdict about a host without a port: that which allows it somewhere, else that of most ports. A refusal
// by the list of what is denied tells more than that nothing allows the rest.
func mainVerdict(list []policy.PortVerdict) policy.Verdict {
	best := list[0].Verdict
	for _, v := range list {
		if v.Allowed {
			return v.Verdict
		}
		if v.Denied && !best.Denied && !best.Malformed {
			best = v.Verdict
		}
	}
	return best
}

// advise says which setting would change a refusal, as the report of an event would.
func (v *Verdict) advise() {
	if v.Allowed {
		return
	}
	e := violation.Event{Target: v.Path, Rule: v.Rule, Entry: v.Entry, Reason: v.Reason, Modes: v.modes}
	switch v.Kind {
	case QueryRead:
		e.Operation, e.Kind = "openat", violation.KindFileRead
	case QueryWrite:
		e.Operation, e.Kind, e.Creates = "openat", violation.KindFileWrite, v.Access == "create"
	case QueryRemove:
		e.Operation, e.Kind = "unlinkat", violation.KindFileWrite
	case QueryUnix:
		e.Operation, e.Kind = "connect", violation.KindUnixSocket
	case QueryConnect:
		e.Operation, e.Target = violation.NetworkOutbound, violation.HostPort(v.Host, v.Port)
	}
	v.Advice = e.Advice()
}
