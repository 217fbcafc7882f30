package policy

import (
	"encoding/base64"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/srt-sandbox/srt/runtime/violation"
)

// EnvironInput is what the environment of a command is made from. All paths are absolute.
type EnvironInput struct {
	// Base is srt's own environment, as os.Environ gives it.
	Base []string
	// HTTPPort and SOCKSPort are the ports of the two proxies as the command reaches them on localhost. 0: there is no
	// such proxy, and no variable names it.
	HTTPPort, SOCKSPort int
	// Token is the session's proxy password (NET-18). Empty: no credentials anywhere.
	Token string
	// User is the proxy user, see ProxyUser. Empty counts as "srt": the proxy wants one (NET-20).
	User string
	// Restricted says that the network is restricted. Without it no proxy variable is set and inherited ones pass (NET-2).
	Restricted bool
	// TMPDIR is the directory for temporary files, see TempDir. Empty: the inherited one stays (filesystem.disabled).
	TMPDIR string
	// Debug adds SRT_DEBUG=true unless the inherited one is set to something (CLI-2).
	Debug bool
	// Unset names the inherited variables that the command must not see (credentials.envVars with mode deny, CRED-3).
	Unset []string
	// Replace holds what the command sees in the place of inherited values, by name (credentials.envVars with mode mask). A
	// variable that is not inherited stays unset (CRED-4), and so does one that Unset names.
	Replace map[string]string
	// Trust are variables that lead programs to the certificates to be trusted (TLS-14). They are generated: inherited ones,
	// denied or not, give way to them.
	Trust []Variable
	// SafeDirectories holds git.safeDirectories (NET-93).
	SafeDirectories []string
	// SSHCommand is the whole value of GIT_SSH_COMMAND, see SSHCommand. Empty: the variable is left alone.
	SSHCommand string
	// JavaAgent is the absolute path of an agent that every JVM loads, from javaAgentJarPath. Empty: none (NET-92).
	JavaAgent string
	// JavaOptions are further options for every JVM, parted by blanks and quoted as it reads them. Empty: none.
	JavaOptions string
	// AWSKey says that an AWS key is among Replace (CRED-27). AWS_REQUEST_CHECKSUM_CALCULATION then is when_required unless
	// something else is inherited or Unset names it.
	AWSKey bool
	// PWD is the working directory of the command. Empty: the inherited variable stays.
	PWD string
}

// Variable is an environment variable: a name without '=', and its value.
type Variable struct{ Name, Value string }

// noProxy keeps clients from asking the proxy for what is not beyond it. Connections to the private ranges are caught
// where they are made, and judged there.
const noProxy = "localhost,127.0.0.1,::1,169.254.0.0/16,10.0.0.0/8,172.16.0.0/12,192.168.0.0/16"

// proxyURL is what a proxy variable holds.
type proxyURL uint8

const (
	viaHTTP          proxyURL = iota + 1 // the HTTP proxy
	viaHTTPElseSOCKS                     // the HTTP proxy, or the SOCKS proxy if there is no other
	viaSOCKS                             // the SOCKS proxy
)

// proxyVariables are the variables that hold a URL with credentials (table "Environment of the command", MAC-12). No
// other variable but CLOUDSDK_PROXY_PASSWORD ever holds the token.
var proxyVariables = [...]struct {
	name string
	via  proxyURL
}{
	{"HTTP_PROXY", viaHTTP}, {"http_proxy", viaHTTP},
	{"HTTPS_PROXY", viaHTTP}, {"https_proxy", viaHTTP},
	{"ALL_PROXY", viaHTTPElseSOCKS}, {"all_proxy", viaHTTPElseSOCKS},
	{"GRPC_PROXY", viaHTTPElseSOCKS}, {"grpc_proxy", viaHTTPElseSOCKS},
	{"FTP_PROXY", viaSOCKS}, {"ftp_proxy", viaSOCKS},
	{"DOCKER_HTTP_PROXY", viaHTTPElseSOCKS}, {"DOCKER_HTTPS_PROXY", viaHTTPElseSOCKS},
}

// otherProxyVariables are generated too, and therefore never inherited when the network is restricted.
var otherProxyVariables = [...]string{
	"NO_PROXY", "no_proxy", "RSYNC_PROXY", "CLOUDSDK_PROXY_TYPE", "CLOUDSDK_PROXY_ADDRESS", "CLOUDSDK_PROXY_PORT",
	"CLOUDSDK_PROXY_USERNAME", "CLOUDSDK_PROXY_PASSWORD",
}

// Environ is the environment of the command on Linux (table "Environment of the command", NET-90 to NET-93). Inherited
// variables come first, in their order, then generated ones, sorted. Each name occurs once: of repeated inherited ones
// the last counts, and a generated value replaces an inherited one even if Unset names it (NET-90). An inherited entry
// that is no variable (no name, no '=', or a NUL byte) is left out.
//
// JAVA_TOOL_OPTIONS is inherited unchanged unless there is an agent or option: every JVM tells that it is set, and
// connections of a JVM are caught without it.
func Environ(in EnvironInput) []string {
	if in.User == "" {
		in.User = ProxyUser("")
	}
	e := environ{inherited: inheritedVariables(in.Base, in.Unset), generated: map[string]string{}}
	e.replace(in.Replace)
	if in.Restricted {
		e.generated["SANDBOX_RUNTIME"] = "1"
		e.proxies(in)
		e.git(in)
		e.java(in.JavaAgent, in.JavaOptions)
		for _, v := range in.Trust {
			e.generated[v.Name] = v.Value
		}
		if in.AWSKey && e.inherits(awsChecksums) == "" && !slices.Contains(in.Unset, awsChecksums) {
			e.generated[awsChecksums] = "when_required"
		}
	}
	e.safeDirectories(in.SafeDirectories)
	if in.TMPDIR != "" {
		e.generated["TMPDIR"] = in.TMPDIR
	}
	if in.PWD != "" {
		e.generated["PWD"] = in.PWD
	}
	if in.Debug && e.inherits("SRT_DEBUG") == "" {
		e.generated["SRT_DEBUG"] = "true"
	}
	return e.list()
}

// awsChecksums tells the clients of AWS when to send a checksum that nobody has asked for. By default (when_supported) they
// send one after the body, and sign the body chunk by chunk or not at all: a shape that cannot be signed again (CRED-29).
// Otherwise they sign the body as a whole, which guards it no less.
const awsChecksums = "AWS_REQUEST_CHECKSUM_CALCULATION"

// environ is an environment in the making.
type environ struct {
	inherited []variable
	generated map[string]string
}

type variable struct{ name, value string }

// inheritedVariables parses an environment: each name once, the last value at the place of its last occurrence.
func inheritedVariables(base, unset []string) []variable {
	seen := make(map[string]bool, len(base)+len(unset))
	for _, name := range unset {
		seen[name] = true
	}
	out := make([]variable, 0, len(base))
	for _, entry := range slices.Backward(base) {
		name, value, ok := strings.Cut(entry, "=")
		if !ok || name == "" || strings.IndexByte(entry, 0) >= 0 || seen[name] {
			continue
		}
		seen[name] = true
		out = append(out, variable{name, value})
	}
	slices.Reverse(out)
	return out
}

// replace gives inherited variables other values.
func (e *environ) replace(values map[string]string) {
	for i := range e.inherited {
		if value, ok := values[e.inherited[i].name]; ok {
			e.inherited[i].value = value
		}
	}
}

// Lookup gives the value of a variable in an environment, as the command would inherit it: of repeated ones the last counts.
// It is like [os.LookupEnv] for a list like that of [os.Environ].
func Lookup(base []string, name string) (value string, ok bool) {
	if name == "" || strings.IndexByte(name, '=') >= 0 {
		return "", false
	}
	for _, entry := range slices.Backward(base) {
		if value, ok := strings.CutPrefix(entry, name+"="); ok && strings.IndexByte(entry, 0) < 0 {
			return value, true
		}
	}
	return "", false
}

// inherits returns the value of an inherited variable, empty if there is none.
func (e *environ) inherits(name string) string {
	for _, v := range e.inherited {
		if v.name == name {
			return v.value
		}
	}
	return ""
}

// forget drops an inherited variable.
func (e *environ) forget(name string) {
	e.inherited = slices.DeleteFunc(e.inherited, func(v variable) bool { return v.name == name })
}

func (e *environ) list() []string {
	out := make([]string, 0, len(e.inherited)+len(e.generated))
	for _, v := range e.inherited {
		if _, replaced := e.generated[v.name]; !replaced {
			out = append(out, v.name+"="+v.value)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(e.generated)) {
		out = append(out, name+"="+e.generated[name])
	}
	return out
}

// proxies sets the variables that lead programs to the proxies. What they replace goes even if nothing takes its place:
// an inherited upstream proxy is out of reach, and its password is not the command's business.
func (e *environ) proxies(in EnvironInput) {
	for _, name := range otherProxyVariables {
		e.forget(name)
	}
	if in.HTTPPort > 0 || in.SOCKSPort > 0 {
		e.generated["NO_PROXY"], e.generated["no_proxy"] = noProxy, noProxy
	}
	for _, v := range proxyVariables {
		e.forget(v.name)
		if value := v.via.in(in); value != "" {
			e.generated[v.name] = value
		}
	}
	if in.SOCKSPort > 0 {
		e.generated["RSYNC_PROXY"] = localhostPort(in.SOCKSPort)
	}
	if in.HTTPPort > 0 {
		e.generated["CLOUDSDK_PROXY_TYPE"] = "http"
		e.generated["CLOUDSDK_PROXY_ADDRESS"] = "localhost"
		e.generated["CLOUDSDK_PROXY_PORT"] = strconv.Itoa(in.HTTPPort)
		if in.Token != "" {
			e.generated["CLOUDSDK_PROXY_USERNAME"] = in.User
			e.generated["CLOUDSDK_PROXY_PASSWORD"] = in.Token
		}
	}
}

// java puts an agent and further options before the inherited ones (NET-92). A denied variable is not inherited.
func (e *environ) java(agent, options string) {
	if agent != "" {
		agent = "-javaagent:" + agent
	}
	if strings.ContainsAny(agent, " \t") {
		agent = `"` + agent + `"` // the JVM splits at blanks, but for quotes
	}
	if agent == "" && options == "" {
		return
	}
	words := slices.DeleteFunc([]string{agent, options, e.inherits("JAVA_TOOL_OPTIONS")}, func(w string) bool { return w == "" })
	e.generated["JAVA_TOOL_OPTIONS"] = strings.Join(words, " ")
}

// in returns the URL, empty if there is no such proxy.
func (p proxyURL) in(in EnvironInput) string {
	switch {
	case in.HTTPPort > 0 && p != viaSOCKS:
		return "http://" + userinfo(in) + localhostPort(in.HTTPPort)
	case in.SOCKSPort > 0 && p != viaHTTP:
		return "socks5h://" + userinfo(in) + localhostPort(in.SOCKSPort)
	}
	return ""
}

func localhostPort(port int) string { return "localhost:" + strconv.Itoa(port) }

// userinfo is "USER:TOKEN@", percent-encoded (NET-19), or nothing without a token.
func userinfo(in EnvironInput) string {
	if in.Token == "" {
		return ""
	}
	return percentEncode(in.User) + ":" + percentEncode(in.Token) + "@"
}

// percentEncode escapes all but the unreserved characters of RFC 3986 2.3. url.UserPassword would leave '+' and '=' as
// they are, which some clients decode as a form.
func percentEncode(s string) string { return strings.ReplaceAll(url.QueryEscape(s), "+", "%20") }

// The longest proxy user in bytes, and how much of a key it carries in UTF-16 code units (NET-19, VIO-2).
const (
	maxProxyUser = 255
	maxKeyUnits  = 100
)

// ProxyUser is the proxy user of a command with an attribution key: "srt." and the base64 of the key's first 100 UTF-16
// units as UTF-8, or plain "srt" if the key is empty or the result would be longer than 255 bytes: attribution is then
// lost, the connection works (NET-19, VIO-2, VIO-3). A code point of which only the first half is among the 100 units
// counts as U+FFFD, as does every byte that is no UTF-8.
func ProxyUser(key string) string {
	cut := violation.CutUTF16(key, maxKeyUnits)
	halved := len(cut) < len(key) && cut == violation.CutUTF16(key, maxKeyUnits-1)
	cut = string([]rune(cut))
	if halved {
		cut += "\uFFFD"
	}
	user := "srt." + base64.StdEncoding.EncodeToString([]byte(cut))
	if cut == "" || len(user) > maxProxyUser {
		return "srt"
	}
	return user
}

// defaultTempDir is where temporary files of commands go unless the caller says otherwise (CLI-52).
const defaultTempDir = "/tmp/claude"

// TempDir is the directory for temporary files that srt's own environment asks for: CLAUDE_CODE_TMPDIR, else
// CLAUDE_TMPDIR, else /tmp/claude; a variable set to nothing counts as unset (CLI-52, MAC-10). The text of a variable is
// returned as it is: that it is absolute, exists and is the user's own is for the caller to see to (FS-50).
func TempDir(base []string) string {
	e := environ{inherited: inheritedVariables(base, nil)}
	for _, name := range []string{"CLAUDE_CODE_TMPDIR", "CLAUDE_TMPDIR"} {
		if dir := e.inherits(name); dir != "" {
			return dir
		}
	}
	return defaultTempDir
}
