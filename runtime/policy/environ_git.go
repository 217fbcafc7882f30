package policy

import (
	"errors"
	"net"
	"net/netip"
	"strconv"
	"strings"
)

// proxyAuthBasic keeps git from first asking the proxy without credentials, as libcurl does when it may choose among
// methods. Git reads the value as quoted by its own sq_quote.
const proxyAuthBasic = "'http.proxyAuthMethod=basic'"

// git sets the variables that lead git to the proxies.
func (e *environ) git(in EnvironInput) {
	if in.SSHCommand != "" {
		e.generated["GIT_SSH_COMMAND"] = in.SSHCommand
	}
	if in.Token == "" || in.HTTPPort <= 0 {
		return
	}
	value := e.inherits("GIT_CONFIG_PARAMETERS")
	// The last setting of a key wins, so it is appended, unless a sandbox around this one has done so.
	if !strings.HasSuffix(value, proxyAuthBasic) {
		value = strings.TrimLeft(value+" "+proxyAuthBasic, " ")
	}
	e.generated["GIT_CONFIG_PARAMETERS"] = value
}

const (
	// maxSafeDirectories is how many directories are listed one by one; beyond it all are safe (NET-93).
	maxSafeDirectories = 8
	// maxGitConfigCount bounds an inherited GIT_CONFIG_COUNT. Git itself refuses more than INT_MAX entries.
	maxGitConfigCount = 1 << 30
)

// safeDirectories appends safe.directory settings to those of an inherited GIT_CONFIG_COUNT (NET-93, MAC-17). A count of
// 0 says "set nothing". One that git cannot read stays as it is: git reports it, as it does outside.
func (e *environ) safeDirectories(directories []string) {
	values := safeDirectoryValues(directories)
	inherited := e.inherits("GIT_CONFIG_COUNT")
	first, ok := parseCount(inherited)
	if len(values) == 0 || !ok || inherited != "" && first == 0 {
		return
	}
	for i, value := range values {
		n := strconv.Itoa(first + i)
		e.generated["GIT_CONFIG_KEY_"+n] = "safe.directory"
		e.generated["GIT_CONFIG_VALUE_"+n] = value
	}
	e.generated["GIT_CONFIG_COUNT"] = strconv.Itoa(first + len(values))
}

// parseCount reads a GIT_CONFIG_COUNT; unset and empty are 0.
func parseCount(s string) (int, bool) {
	if s == "" {
		return 0, true
	}
	if strings.Trim(s, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.Atoi(s)
	return n, err == nil && n <= maxGitConfigCount
}

// safeDirectoryValues gives D and D/* for each distinct directory, or one * for more than maxSafeDirectories. Trailing
// slashes go, the root stays. A name that no path can have (empty, or with a NUL byte) is left out.
func safeDirectoryValues(directories []string) []string {
	var values []string
	seen := map[string]bool{}
	for _, dir := range directories {
		if trimmed := strings.TrimRight(dir, "/"); dir != "" && trimmed == "" {
			dir = "/"
		} else {
			dir = trimmed
		}
		if dir == "" || seen[dir] || strings.IndexByte(dir, 0) >= 0 {
			continue
		}
		seen[dir] = true
		values = append(values, dir, strings.TrimSuffix(dir, "/")+"/*")
	}
	if len(seen) > maxSafeDirectories {
		return []string{"*"}
	}
	return values
}

// SSHCommand is the value of GIT_SSH_COMMAND that leads ssh through the proxy with a helper program: ssh runs
// "<helper> __ssh-connect <host> <port>" and talks through its standard streams (NET-91). The helper is an absolute path
// of any characters but NUL. The value holds no credentials: the helper takes them from its environment, so that no
// argument list shows them.
//
// Connection sharing is off: a master left over from another command would carry this one past its own attribution.
func SSHCommand(helper string) string {
	proxyCommand := quoteProxyCommand(helper) + " __ssh-connect %h %p"
	return "ssh -o ControlMaster=no -o ControlPath=none -o ProxyCommand=" + quotePOSIX(proxyCommand)
}

// quoteProxyCommand makes a path one word of an ssh_config(5) ProxyCommand. Three readers see it: the tokenizer of ssh,
// which wants quotes in pairs or behind backslashes; its %-expansion; and the user's login shell, which need not be a
// POSIX one. A backslash before each special character is the one form that sh, csh and fish all read alike. A newline
// behind a backslash would vanish, so it is quoted.
func quoteProxyCommand(path string) string {
	var b strings.Builder
	for _, c := range []byte(path) {
		switch {
		case c == '\n':
			b.WriteString("'\n'")
		case c == '%':
			b.WriteString(`\%%`)
		case plainInShell(c):
			b.WriteByte(c)
		default:
			b.WriteByte('\\')
			b.WriteByte(c)
		}
	}
	return b.String()
}

// plainInShell tells bytes that no shell reads as anything but themselves. Those of a multi-byte character are among
// them.
func plainInShell(c byte) bool {
	return c >= 0x80 || isAlphanumeric(c) || strings.IndexByte("/._-+,:@", c) >= 0
}

func isAlphanumeric(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
}

// quotePOSIX quotes text for the shell with which git runs GIT_SSH_COMMAND.
func quotePOSIX(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// The errors of SSHTarget. Their texts are the lines that the helper prints before it exits with 1 (NET-91).
var (
	ErrSSHHost = errors.New("sandbox proxy: bad host")
	ErrSSHPort = errors.New("sandbox proxy: bad port")
)

// SSHTarget checks the two arguments that ssh hands to the helper (%h and %p) and joins them to the target of a CONNECT
// request, an IPv6 address in brackets (NET-91). The result holds nothing but "A-Za-z0-9._:-[]", so it is safe in a
// request line. Errors are ErrSSHHost and ErrSSHPort.
func SSHTarget(host, port string) (string, error) {
	for _, c := range []byte(host) {
		if !isAlphanumeric(c) && strings.IndexByte("._:-", c) < 0 {
			return "", ErrSSHHost
		}
	}
	if host == "" {
		return "", ErrSSHHost
	}
	if strings.Contains(host, ":") {
		if addr, err := netip.ParseAddr(host); err != nil || !addr.Is6() {
			return "", ErrSSHHost
		}
	}
	if port == "" || strings.Trim(port, "0123456789") != "" {
		return "", ErrSSHPort
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return "", ErrSSHPort
	}
	return net.JoinHostPort(host, port), nil
}
