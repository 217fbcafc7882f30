package runtime

import (
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	goruntime "runtime"
	"slices"
	"strings"
	"syscall"

	"github.com/srt-sandbox/srt/runtime/config"
	"github.com/srt-sandbox/srt/runtime/policy"
)

// The getters of LIB-36. They answer for the configuration in force, or after Close for the last one, and for a command that
// starts in the caller's working directory with the caller's home. They ask nothing of the disk but for the names of those
// two, and no slice of an answer is nil unless it says so.

// ReadPolicy is what may not be read: absolute paths and patterns.
type ReadPolicy struct {
	// DenyOnly cannot be read, but for what AllowWithinDeny names within.
	DenyOnly        []string `json:"denyOnly"`
	AllowWithinDeny []string `json:"allowWithinDeny"`
	// Literal are those of both lists that are names, whatever characters are in them; the others are patterns.
	Literal []string `json:"literal"`
	// Credentials are those of DenyOnly that stand for credential files; nothing re-opens them.
	Credentials []string `json:"credentials"`
}

// WritePolicy is what may be written, the default write paths included: absolute paths and patterns.
type WritePolicy struct {
	AllowOnly       []string `json:"allowOnly"`
	DenyWithinAllow []string `json:"denyWithinAllow"`
}

// NetworkPolicy is which hosts may be reached, as configured.
type NetworkPolicy struct {
	AllowedDomains []string `json:"allowedDomains"`
	DeniedDomains  []string `json:"deniedDomains,omitempty"` // nil if there are none
}

// ProxyInfo is how commands reach the proxies of the session.
type ProxyInfo struct {
	// HTTPPort and SOCKSPort are the ports on the loopback addresses of a command. 0: there is no such proxy.
	HTTPPort, SOCKSPort int
	// Token is the password, shown to sandboxed commands alone (LIB-5). Empty beside an external HTTP proxy and after Close.
	Token string
}

// ReadPolicy gives the read rules in force. The error is that of a command whose paths cannot be resolved, a
// *policy.PathError.
func (s *Sandbox) ReadPolicy() (ReadPolicy, error) {
	cfg, home, rules, err := s.rules()
	if err != nil {
		return ReadPolicy{}, err
	}
	read, _ := policy.Views(cfg.Filesystem.Disabled, home, rules)
	p := ReadPolicy{DenyOnly: read.DenyOnly, AllowWithinDeny: read.AllowWithinDeny, Literal: []string{}, Credentials: []string{}}
	if cfg.Filesystem.Disabled {
		return p, nil
	}
	for _, list := range [][]policy.PathRule{rules.DenyRead, rules.CredentialDeny, rules.AllowRead} {
		for _, r := range list {
			if !r.Pattern && !slices.Contains(p.Literal, r.Path) {
				p.Literal = append(p.Literal, r.Path)
			}
		}
	}
	for _, r := range rules.CredentialDeny {
		if !slices.Contains(p.Credentials, r.Path) {
			p.Credentials = append(p.Credentials, r.Path)
		}
	}
	return p, nil
}

// WritePolicy gives the write rules in force. Its error is that of ReadPolicy.
func (s *Sandbox) WritePolicy() (WritePolicy, error) {
	cfg, home, rules, err := s.rules()
	if err != nil {
		return WritePolicy{}, err
	}
	_, write := policy.Views(cfg.Filesystem.Disabled, home, rules)
	return WritePolicy(write), nil
}

// NetworkPolicy gives the lists of hosts in force. Lists of single commands are in no getter (LIB-31).
func (s *Sandbox) NetworkPolicy() NetworkPolicy {
	n := &s.current().cfg.Network
	p := NetworkPolicy{AllowedDomains: list(n.AllowedDomains)}
	if len(n.DeniedDomains) > 0 {
		p.DeniedDomains = list(n.DeniedDomains)
	}
	return p
}

// Warnings are the entries of the settings that are not enforced in full on this system, as configured (FS-64).
func (s *Sandbox) Warnings() []string {
	cfg := s.current().cfg
	in, disabled := pathInput(cfg), cfg.Filesystem.Disabled
	if disabled {
		return []string{}
	}
	return list(policy.GlobPatternWarnings(in, judgesLater()))
}

// Proxy tells how commands reach the session's proxies.
func (s *Sandbox) Proxy() ProxyInfo {
	if !s.isBegun() {
		return ProxyInfo{}
	}
	p := ProxyInfo{Token: s.secret()}
	p.HTTPPort, p.SOCKSPort = insidePorts()
	return p
}

// secret is the token; empty after Close.
func (s *Sandbox) secret() string {
	if token := s.token.Load(); token != nil {
		return *token
	}
	return ""
}

// Backend names what confines commands on this system: "namespaces" on Linux, empty where nothing can.
func (s *Sandbox) Backend() string { return backendName }

// rules are the path lists in force, resolved as for a command that is launched now.
func (s *Sandbox) rules() (cfg *config.Config, home string, rules policy.PathRules, err error) {
	cfg = s.current().cfg
	in := pathInput(cfg)
	if cfg.Filesystem.Disabled {
		return cfg, "", rules, nil
	}
	if in.Cwd, in.Home, err = surroundings("", os.Environ()); err != nil {
		return cfg, "", rules, err
	}
	rules, err = policy.ResolvePaths(in)
	return cfg, in.Home, rules, err
}

// pathInput are the path lists of a configuration.
func pathInput(cfg *config.Config) policy.PathInput {
	f := &cfg.Filesystem
	in := policy.PathInput{DenyRead: f.DenyRead, AllowRead: f.AllowRead, AllowWrite: f.AllowWrite, DenyWrite: f.DenyWrite}
	if cfg.Credentials != nil {
		in.CredentialFiles = cfg.Credentials.Files
	}
	return in
}

// DefaultWritePaths are the absolute paths that commands may write whatever the lists say, existing or not (FS-28), where no
// read deny covers those in the caller's home.
func DefaultWritePaths() []string {
	_, home, err := surroundings("", os.Environ())
	if err != nil {
		home = "" // they have none that could be used
	}
	return policy.DefaultWritePaths(home, policy.PathRules{})
}

// RealPath is an absolute path without links, of as much of it as exists; what does not exist is taken as it is written.
// path may be relative to the working directory.
func RealPath(path string) (string, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("the working directory, which %q is relative to, cannot be told: %w", path, err)
	}
	return withoutLinks(abs), nil
}

// withoutLinks follows the links in as much of a path as exists. The rest may come later: a daemon makes its socket when it
// starts.
func withoutLinks(p string) string {
	for head, tail := p, ""; ; {
		if target, err := filepath.EvalSymlinks(head); err == nil {
			return filepath.Join(target, tail)
		}
		up := filepath.Dir(head)
		if up == head {
			return p
		}
		head, tail = up, filepath.Join(filepath.Base(head), tail)
	}
}

// homeVariable names the home directory (CLI-50).
func homeVariable() string {
	if goruntime.GOOS == "windows" {
		return "USERPROFILE"
	}
	return "HOME"
}

// surroundings are the working directory and the home directory that entries are taken from (CLI-50, FS-5). An empty
// HOME means that there is no home.
func surroundings(dir string, env []string) (cwd, home string, err error) {
	if cwd = dir; cwd == "" {
		if cwd, err = syscall.Getwd(); err != nil { // os.Getwd may give a name with links in it, which is $PWD
			return "", "", fmt.Errorf("the working directory cannot be told: %w", err)
		}
	}
	if !filepath.IsAbs(cwd) {
		return "", "", fmt.Errorf("the working directory %q is not an absolute path", cwd)
	}
	for _, e := range slices.Backward(env) { // of repeated variables the command sees the last (policy.Environ)
		if v, ok := strings.CutPrefix(e, homeVariable()+"="); ok {
			home = v
			if home != "" && !filepath.IsAbs(home) {
				return "", "", fmt.Errorf("%s is %q, which is not an absolute path", homeVariable(), home)
			}
			return cwd, home, nil
		}
	}
	if u, err := user.Current(); err == nil {
		home = u.HomeDir
	}
	return cwd, home, nil
}
