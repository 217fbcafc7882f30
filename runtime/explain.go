package runtime

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/srt-sandbox/srt/runtime/config"
)

// Explanation is what a command would run under. It holds no secret: the token shows as <token>. It can be marshalled
// to JSON.
type Explanation struct {
	Mode        string              `json:"mode"`
	Directory   string              `json:"directory"`
	Mounts      []PlannedMount      `json:"mounts"`
	Later       []PlannedLater      `json:"later,omitempty"`
	LaterBy     *PlannedMechanism   `json:"laterBy,omitempty"`
	Landlock    []PlannedRule       `json:"landlock"`
	Filters     []PlannedCall       `json:"filters"`
	Network     PlannedNetwork      `json:"network"`
	Credentials []PlannedCredential `json:"credentials,omitempty"`
	Environment []string            `json:"environment"`
	Warnings    []string            `json:"warnings,omitempty"`
	Notes       []string            `json:"notes,omitempty"`
}

// PlannedMount is one step of the file system's view, in the order they are made.
type PlannedMount struct {
	Kind   string `json:"kind"`
	Path   string `json:"path"`
	Source string `json:"source,omitempty"`
	Why    string `json:"why"`
}

// PlannedLater is a rule about what does not exist yet: it is judged when the command makes or opens something.
type PlannedLater struct {
	Kind string `json:"kind"`
	Path string `json:"path"`
	Why  string `json:"why"`
}

// PlannedMechanism is what holds the rules about what does not exist yet.
type PlannedMechanism struct {
	// Name is "kernel" for hooks in the kernel (BPF), "broker" where srt judges and performs such system calls itself, and
	// "placeholders" where neither can be had and empty files stand for the names while the command runs (FS-54).
	Name string `json:"name"`
	// Why says why it is none of those before it. Empty for the kernel.
	Why string `json:"why,omitempty"`
}

// mechanismTexts name the mechanisms for people.
var mechanismTexts = [...][2]string{
	{"kernel", "hooks in the kernel (BPF)"},
	{"broker", "srt itself, which performs such system calls (broker)"},
	{"placeholders", "empty files that stand for the names while the command runs (placeholders)"},
}

func (m *PlannedMechanism) text() string {
	text := m.Name
	for _, t := range mechanismTexts {
		if t[0] == m.Name {
			text = t[1]
		}
	}
	if m.Why != "" {
		text += ", because " + m.Why
	}
	return text
}

// PlannedRule is one Landlock rule.
type PlannedRule struct {
	Path   string `json:"path"`
	Rights string `json:"rights"`
	// Note is what they are about where that is not the host's object. Empty: it is.
	Note string `json:"note,omitempty"`
}

// PlannedCall is one rule of a system call filter.
type PlannedCall struct {
	Filter    string `json:"filter"`
	Call      string `json:"call"`
	Condition string `json:"condition,omitempty"`
	Action    string `json:"action"`
	Why       string `json:"why"`
}

// PlannedNetwork are the destination lists as they are in force.
type PlannedNetwork struct {
	Proxies []string `json:"proxies"`
	// Captured says that programs that ignore the proxies reach what is allowed all the same, and that names resolve. NotCaptured
	// says why not.
	Captured    bool   `json:"captured"`
	NotCaptured string `json:"notCaptured,omitempty"`
	// UnixSockets are the paths of sockets of the host that may be connected to, links followed; AllUnixSockets says that all may.
	UnixSockets             []string `json:"unixSockets"`
	AllUnixSockets          bool     `json:"allUnixSockets"`
	Parent                  string   `json:"parent,omitempty"`
	AllowedDomains          []string `json:"allowedDomains"`
	DeniedDomains           []string `json:"deniedDomains"`
	DeniedResolvedAddresses []string `json:"deniedResolvedAddresses"`
	StrictAllowlist         bool     `json:"strictAllowlist"`
	// RequestRules are network.requestRules, each as a line, in the order in which they are asked.
	RequestRules []string `json:"requestRules,omitempty"`
	// TLS says how TLS is terminated. Nil: it is not.
	TLS *PlannedTLS `json:"tls,omitempty"`
}

// PlannedTLS is how TLS is terminated.
type PlannedTLS struct {
	// Authority is the subject of the certificate that commands are told to trust, and CertPath the file it was read from; empty
	// for one that is made for the session.
	Authority string `json:"authority"`
	CertPath  string `json:"certPath,omitempty"`
	// Bundle is the file of certificates to be trusted, absolute.
	Bundle string `json:"bundle"`
	// ExcludeDomains are hosts whose tunnels are passed on unread.
	ExcludeDomains []string `json:"excludeDomains"`
	// External says that the commands' HTTP proxy is not srt's (network.httpProxyPort): then srt ends no TLS and puts no credentials in,
	// and that proxy may have the authority (TLS-4).
	External bool `json:"external,omitempty"`
}

// PlannedCredential is a source of credentials that is kept from the command. What is in it is told nowhere.
type PlannedCredential struct {
	// Kind is "file" or "variable", and Name the path or the name, as configured.
	Kind string `json:"kind"`
	Name string `json:"name"`
	// Mode is "deny" or "mask".
	Mode string `json:"mode"`
	// Hosts are where the real value is put into requests that hold the fake. Empty: nowhere.
	Hosts []string `json:"hosts,omitempty"`
}

// plannedCredentials are what a configuration says about credentials.
func plannedCredentials(cfg *config.Config) (list []PlannedCredential) {
	if cfg.Credentials == nil {
		return nil
	}
	add := func(kind, name string, c *config.Credential) {
		p := PlannedCredential{Kind: kind, Name: name, Mode: c.Mode}
		if c.Mode == config.ModeMask {
			if p.Hosts = c.InjectHosts; p.Hosts == nil {
				p.Hosts = cfg.Network.AllowedDomains
			}
		}
		list = append(list, p)
	}
	for i := range cfg.Credentials.Files {
		add("file", cfg.Credentials.Files[i].Path, &cfg.Credentials.Files[i].Credential)
	}
	for i := range cfg.Credentials.EnvVars {
		add("variable", cfg.Credentials.EnvVars[i].Name, &cfg.Credentials.EnvVars[i].Credential)
	}
	return list
}

// plannedRequests is a rule about requests as a line.
func plannedRequests(r *config.RequestRule) string {
	line := r.Action + " " + every(r.Methods, "any method") + " " + strings.Join(r.Hosts, ", ") + " " + every(r.Paths, "any path")
	if r.Reason != "" {
		line += ": " + r.Reason
	}
	return line
}

// every is a list, or what stands for one that is not there.
func every(l []string, all string) string {
	if len(l) == 0 {
		return all
	}
	return strings.Join(l, ", ")
}

// plannedTLS is how a session terminates TLS under a configuration in force.
func (s *Sandbox) plannedTLS(cfg *config.Config) *PlannedTLS {
	ca := s.CA()
	if ca == nil {
		return nil
	}
	p := &PlannedTLS{Authority: s.trust.ca.Certificate().Subject.String(), CertPath: s.begun.Network.TLSTerminate.CACertPath,
		Bundle: ca.Bundle, ExcludeDomains: []string{}, External: s.begun.Network.HTTPProxyPort != 0}
	if t := cfg.Network.TLSTerminate; t != nil {
		p.ExcludeDomains = list(t.ExcludeDomains)
	}
	return p
}

// Explain compiles the settings as for a command that is launched now, and launches nothing.
func (s *Sandbox) Explain(ctx context.Context) (*Explanation, error) {
	if err := s.begunIn(ctx); err != nil {
		return nil, err
	}
	c := s.Command(ctx, "true")
	e, err := c.explain()
	if err != nil {
		return nil, err
	}
	for i, v := range e.Environment {
		if token := s.secret(); token != "" {
			e.Environment[i] = strings.ReplaceAll(v, token, "<token>")
		}
	}
	n := &c.state.cfg.Network
	e.Network.AllowedDomains, e.Network.DeniedDomains = list(n.AllowedDomains), list(n.DeniedDomains)
	e.Network.DeniedResolvedAddresses, e.Network.StrictAllowlist = list(n.DeniedResolvedAddresses), n.StrictAllowlist
	for _, r := range n.RequestRules {
		e.Network.RequestRules = append(e.Network.RequestRules, plannedRequests(&r))
	}
	e.Network.TLS, e.Credentials = s.plannedTLS(c.state.cfg), plannedCredentials(c.cfg)
	return e, nil
}

// list keeps an empty list from becoming null in JSON.
func list(l []string) []string { return append([]string{}, l...) }

// WriteText writes the explanation for people.
func (e *Explanation) WriteText(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintf(t, "Mode: %s\nDirectory: %s\n", e.Mode, e.Directory)
	fmt.Fprintf(t, "\nFile system, in this order:\n")
	for _, m := range folded(e.Mounts) {
		path := m.Path
		if m.Source != "" && m.Source != m.Path {
			path += " from " + m.Source
		}
		fmt.Fprintf(t, "  %s\t%s\t%s\n", m.Kind, path, unnumbered(m.Why))
	}
	if len(e.Later) > 0 {
		fmt.Fprintf(t, "\nWhat does not exist yet, judged when it is made or opened:\n")
	}
	if e.LaterBy != nil {
		fmt.Fprintf(t, "  held by %s\n", e.LaterBy.text())
	}
	for _, r := range e.Later {
		fmt.Fprintf(t, "  %s\t%s\t%s\n", r.Kind, r.Path, unnumbered(r.Why))
	}
	fmt.Fprintf(t, "\nLandlock:\n")
	for _, r := range e.Landlock {
		note := ""
		if r.Note != "" {
			note = ", " + r.Note
		}
		fmt.Fprintf(t, "  %s\t%s%s\n", r.Path, r.Rights, note)
	}
	fmt.Fprintf(t, "\nSystem calls refused:\n")
	for _, f := range e.Filters {
		fmt.Fprintf(t, "  %s\t%s\t%s\t%s\t%s\n", f.Filter, f.Call, f.Condition, f.Action, f.Why)
	}
	e.Network.write(t)
	if len(e.Credentials) > 0 {
		fmt.Fprintf(t, "\nCredentials:\n")
	}
	for _, c := range e.Credentials {
		hosts := ""
		if c.Mode == config.ModeMask {
			hosts = "real value for " + orNone(c.Hosts)
		}
		fmt.Fprintf(t, "  %s %s\t%s\t%s\n", c.Kind, strconv.Quote(c.Name), c.Mode, hosts)
	}
	fmt.Fprintf(t, "\nEnvironment:\n")
	for _, v := range e.Environment {
		fmt.Fprintf(t, "  %s\n", strings.ReplaceAll(v, "\n", `\n`))
	}
	for _, v := range e.Warnings {
		fmt.Fprintf(t, "\nWarning: %s", v)
	}
	if len(e.Warnings) > 0 {
		fmt.Fprintln(t)
	}
	return t.Flush()
}

// write writes the part of an explanation that is about the network.
func (n *PlannedNetwork) write(t io.Writer) {
	fmt.Fprintf(t, "\nNetwork: through %s", strings.Join(n.Proxies, ", "))
	if n.Captured {
		fmt.Fprintf(t, ", and for programs that ignore them by srt's own connections")
	} else {
		fmt.Fprintf(t, "; programs that ignore them reach nothing, because %s", n.NotCaptured)
	}
	sockets := orNone(n.UnixSockets)
	if n.AllUnixSockets {
		sockets = "all"
	}
	fmt.Fprintf(t, "\n  Unix sockets of the host\t%s", sockets)
	fmt.Fprintf(t, "\n  allowed\t%s\n  denied\t%s\n", orNone(n.AllowedDomains), orNone(n.DeniedDomains))
	fmt.Fprintf(t, "  denied addresses\t%s\n", orNone(n.DeniedResolvedAddresses))
	if tls := n.TLS; tls != nil && tls.External {
		fmt.Fprintf(t, "  TLS\tis not ended by srt beside httpProxyPort, and no credentials are put in\n  trusted\t%s, with %s\n", tls.Bundle, tls.Authority)
	} else if tls != nil {
		fmt.Fprintf(t, "  TLS ended by\t%s\n  but not for\t%s\n  trusted\t%s\n", tls.Authority, orNone(tls.ExcludeDomains), tls.Bundle)
	}
	for i, r := range n.RequestRules {
		fmt.Fprintf(t, "  request rule %d\t%s\n", i, r)
	}
}

// procMountsShown is how many mounts of one kind in /proc, for one reason, are named for people. There are as many as the kernel
// has entries, some fifty, and the rules of the settings would be lost among them.
const procMountsShown = 3

// folded puts mounts in /proc that differ in their name alone into one line.
func folded(mounts []PlannedMount) (out []PlannedMount) {
	for i := 0; i < len(mounts); {
		m, n := mounts[i], 1
		for i+n < len(mounts) && mounts[i+n].Kind == m.Kind && mounts[i+n].Why == m.Why && strings.HasPrefix(mounts[i+n].Path, "/proc/") {
			n++
		}
		if strings.HasPrefix(m.Path, "/proc/") && n > procMountsShown {
			m.Path = fmt.Sprintf("%s and %d more in /proc (--json names them)", m.Path, n-1)
			out = append(out, m)
		} else {
			out = append(out, mounts[i:i+n]...)
		}
		i += n
	}
	return out
}

// unnumbered is a reason without the number of the rule in the specification that srt was built from, which says nothing to
// people. JSON has it.
func unnumbered(why string) string {
	i := strings.LastIndex(why, " (")
	if i < 0 || !strings.HasSuffix(why, ")") {
		return why
	}
	prefix, number, found := strings.Cut(why[i+2:len(why)-1], "-")
	if !found || number == "" || strings.Trim(number, "0123456789") != "" || strings.Trim(prefix, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") != "" {
		return why
	}
	return why[:i]
}

func orNone(l []string) string {
	if len(l) == 0 {
		return "(none)"
	}
	return strings.Join(l, ", ")
}
