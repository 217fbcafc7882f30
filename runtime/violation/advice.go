package violation

import (
	"encoding/json"
	"path"
	"strconv"
	"strings"

	"github.com/srt-sandbox/srt/runtime/config"
)

// The places in the settings that advice names.
const (
	allowedDomains = "network.allowedDomains"
	deniedDomains  = "network.deniedDomains"
	allowRead      = "filesystem.allowRead"
	allowWrite     = "filesystem.allowWrite"
	unixSockets    = "network.allowUnixSockets"
	requestRules   = "network.requestRules"
)

// ruleAdvice is what to do about a refusal by its rule: the first row whose prefix the rule begins with counts. In a text
// {rule} is the rule with the entry it has, {path} the path as an entry of the settings, {place} likewise what has to be
// writable (the directory for a new name), {host} the destination as an entry.
var ruleAdvice = [...]struct{ prefix, text string }{
	{"filesystem.denyRead", "{rule} refuses it: remove that entry, or add {path} to " + allowRead},
	{"credentials.files", "{rule} refuses it: remove that entry; no list lifts the deny of a credential"},
	{"filesystem.denyWrite", "{rule} refuses it: remove that entry"},
	{"filesystem.allowWrite.", "{rule} stays in place, because a path that is listed by itself cannot be renamed or removed: " +
		"list the directory that holds it instead"},
	{allowWrite, allowWrite + ": add {place}"},
	{"filesystem.allowRead.", "{rule} gives reading alone: add {place} to " + allowWrite},
	{allowRead, allowRead + ": add {path}"},
	{deniedDomains, "{rule} refuses it: remove that entry; no list lifts it"},
	{allowedDomains, allowedDomains + ": add {host}"},
	{unixSockets + ".", "{rule} names it already: in a place that the command may write, only a socket counts that is there when it " +
		"starts and has no other name"},
	{unixSockets, unixSockets + ": add {path}"},
	{"network.refuseOpaqueTunnels", "network.refuseOpaqueTunnels: set it to false to let tunnels through that cannot be inspected"},
	{"network.requireHostMatch", "network.requireHostMatch: set it to false to let requests name another host than the one connected to"},
	{"network.ambiguousRequestTarget", "network.ambiguousRequestTarget decides about targets that servers read in different ways"},
	{"network.requestRules.", "{rule} refuses it: change that entry, or put one that allows the request before it"},
	{requestRules, requestRules + ": add an entry that allows the request"},
	{"network.deniedResolvedAddresses", "{rule} refuses it: remove that entry, or list the address itself in " + allowedDomains},
	{"protected name .git/config", "filesystem.allowGitConfig: set it to true"},
	{"protected name", "nothing in the settings allows it but filesystem.disabled: {rule} cannot be changed by commands"},
	{"srt's own", "nothing in the settings allows it: {rule} is not for commands"},
}

// requestAdvice is what to do about a request that the rules as a whole refuse, by the reason.
var requestAdvice = [...]struct{ prefix, text string }{
	{requestRules + " names this host, and this tunnel cannot be read", requestRules + ": at a host that an entry names, only requests " +
		"that srt can read go on: those over http, and those over https with network.tlsTerminate"},
	{"ambiguous request-target", requestRules + ": write the paths of its entries so that every way to read the request decides alike " +
		`("/a/**" has all that lies below "/a/", "/a/*" only one name), or send a path without "%", "\", ";" and "//"`},
	{"ambiguous method", requestRules + ": both the method of the request and the one that its header names have to be allowed"},
}

// reasonAdvice is the same by the reason, for what no rule stands for.
var reasonAdvice = [...]struct{ prefix, text string }{
	{"host is not on the allow list", allowedDomains + ": add {host}"},
	{"user denied", "it was refused when asked; " + allowedDomains + ": add {host} to allow it without asking"},
	{"permission prompt failed", "it could not be asked about; " + allowedDomains + ": add {host} to allow it without asking"},
	{"malformed host", "nothing in the settings allows it: no server has such a name"},
	{"sandbox policy unavailable", "nothing in the settings allows it: the session was not ready, or is closed"},
	{"resolved to a deny-listed address", deniedDomains + " names the address that the name leads to: remove that entry"},
	{"resolved to ", "the name leads to an address that names may not lead to: list that address itself in " + allowedDomains +
		`, with or without a port, such as "10.0.0.7:443"`},
	{"refuseOpaqueTunnels", "network.refuseOpaqueTunnels: set it to false"},
	{"this proxy does not tunnel CONNECTs it cannot inspect", "network.refuseOpaqueTunnels: set it to false"},
	{"UDP is not forwarded", "nothing in the settings allows it: UDP does not leave the sandbox; names resolve, and TCP is let through by " +
		allowedDomains},
}

// callAdvice is what is said where neither rule nor reason has a row.
var callAdvice = map[Kind]string{
	KindFileRead:   allowRead + ": add {path}",
	KindFileWrite:  allowWrite + ": add {place}",
	KindUnixSocket: unixSockets + ": add {path}",
	KindRequest:    "the request itself was refused; no list allows it",
}

// Advice for what no rule's text fits.
const (
	modesAdvice = "no setting would help: the file modes of {modes} refuse it to this user as well"
	apartAdvice = "each path is allowed, by entries of their own ({rule} is one), and a rename or link does not lead from one to another: add {place} to " +
		allowWrite + ", which holds both, or copy"
	hiddenAdvice = "{rule} refuses it: remove that entry, or add {place} to " + allowWrite
	wideAdvice   = "a rename or link stays within one entry of " + allowWrite + ", and no directory below the root holds both paths: copy instead"
)

// Advice says which setting would allow the event, as text that a person can act on and partly paste:
// `network.allowedDomains: add "example.com:8443"`. It is one line, clean (see [Clean]) and never empty: where nothing in
// the settings allows it, it says so. What it proposes is the narrowest setting, not one that is safe: that is for whoever
// reads it.
func (e Event) Advice() string {
	text := e.adviceText()
	if strings.Contains(text, "{host}") {
		entry, ok := e.hostEntry()
		if !ok {
			text = "nothing in the settings allows it: no entry can name such a host"
		}
		text = strings.ReplaceAll(text, "{host}", entry)
	}
	rule := e.Rule
	if e.Entry != "" {
		rule += " (" + quoted(e.Entry) + ")"
	}
	file, _, _ := e.Object()
	return Clean(strings.NewReplacer("{rule}", rule, "{path}", pathEntry(file), "{place}", pathEntry(e.place(file)),
		"{modes}", quoted(e.Modes)).Replace(text))
}

func (e Event) adviceText() string {
	switch {
	case e.Modes != "":
		return modesAdvice
	case e.Rule == unixSockets && e.Reason == ReasonNoSocket:
		return "nothing in the settings allows it: " + ReasonNoSocket
	case e.Other != "" && (e.Apart || e.Rule == allowWrite) && e.place(e.Target) == "/" && path.Dir(e.Target) != path.Dir(e.Other):
		return wideAdvice
	case e.Apart:
		return apartAdvice
	case e.Kind == KindFileWrite && strings.HasPrefix(e.Rule, "filesystem.denyRead."):
		return hiddenAdvice // allowRead would give reading alone
	}
	if e.Rule == requestRules {
		for _, a := range requestAdvice {
			if strings.HasPrefix(e.Reason, a.prefix) {
				return a.text
			}
		}
	}
	if e.Rule != "" {
		for _, a := range ruleAdvice {
			if strings.HasPrefix(e.Rule, a.prefix) && !(e.Rule == allowedDomains && asked(e.Reason)) {
				return a.text
			}
		}
	}
	for _, a := range reasonAdvice {
		if e.Reason != "" && strings.HasPrefix(e.Reason, a.prefix) {
			return a.text
		}
	}
	// The reason of a callback is in its own words.
	if e.Operation == NetworkOutbound || e.Operation == DNSQuery {
		return allowedDomains + ": add {host}"
	}
	if e.Rule == "" {
		if text := callAdvice[e.KindOf()]; text != "" {
			return text
		}
	}
	return "nothing in the settings allows it"
}

// asked tells whether a person, or what stands for one, was asked and has not allowed it.
func asked(reason string) bool {
	return reason == "user denied" || reason == "permission prompt failed"
}

// place is what has to be writable: the directory, for a call that makes or takes a name, and for one with two paths what
// holds both, since the kernel lets no name go from what one entry grants to what another does.
func (e Event) place(file string) string {
	if e.Other != "" {
		dir, other := path.Dir(file), path.Dir(e.Other)
		for dir != "/" && dir != "." && other != dir && !strings.HasPrefix(other, dir+"/") {
			dir = path.Dir(dir)
		}
		return dir
	}
	if !e.Creates {
		switch e.Operation {
		case "creat", "unlink", "unlinkat", "rmdir", "mkdir", "mkdirat", "mknod", "mknodat", "link", "linkat", "symlink", "symlinkat",
			"rename", "renameat", "renameat2", "bind":
		default:
			return file
		}
	}
	return path.Dir(file)
}

// hostEntry is the destination as an entry of allowedDomains. The ports of the web go without saying.
func (e Event) hostEntry() (string, bool) {
	_, host, port := e.Object()
	h, err := config.CanonicalHost(host)
	if err != nil {
		return "", false
	}
	entry := h.Name
	if h.Addr.Is6() {
		entry = "[" + entry + "]"
	}
	if port != 0 && port != 80 && port != 443 {
		entry += ":" + strconv.Itoa(int(port))
	}
	if _, err := config.ParseDomain(entry, config.DomainForm{Port: true}); err != nil {
		return "", false
	}
	return quoted(entry), true
}

// pathEntry is a path as an entry of the settings: marked as literal if it would be a pattern otherwise (FS-2).
func pathEntry(p string) string {
	if (config.PathEntry{Path: p}).IsPattern("linux") {
		return `{"path": ` + quoted(p) + `, "literal": true}`
	}
	return quoted(p)
}

// quoted is a JSON string in ASCII where that matters: what does not belong in a line is escaped, '<' and '>' are not, and
// a text that only Clean makes fit stays what it is.
func quoted(s string) string {
	b, _ := json.Marshal(s) // a string can always be marshalled
	return string(escapeUnsafe(nil, b))
}
