package runtime

import "fmt"

// AllowDomains lets the command with an attribution key reach what domains name, in the grammar of allowedDomains, beyond
// the session's allowedDomains (LIB-31, NET-15). It is for commands that the caller spawns itself, and for lists that
// change while a command runs; other commands have [Cmd.AllowDomains]. A list never stands before deniedDomains, is void
// under strictAllowlist and beside an external HTTP proxy (network.httpProxyPort), and exempts no resolved address.
//
// A list under the key of another one replaces it. remove takes away this very list, not one that has replaced it; it may
// be called from any goroutine and more than once, and after Close does nothing.
//
// The key must be impossible to guess, since commands could present each other's (LIB-32): at least 22 random characters
// among its first 100 UTF-16 units, never derived from a command, a counter or the time. A shorter one is
// policy.ErrShortCommandID, a malformed entry a config error, a closed session [ErrClosed]; no error holds the key, and
// nothing has changed after one.
func (s *Sandbox) AllowDomains(key string, domains []string) (remove func(), err error) {
	if !s.isBegun() {
		return nil, errNotBegun
	}
	s.mu.Lock()
	defer s.mu.Unlock() // Close drops all lists once it has said that the session is closed
	if s.closing {
		return nil, ErrClosed
	}
	return s.lists.Register(key, domains)
}

// allowDomains puts the command's own list in force, unless Prepare has.
func (c *Cmd) allowDomains() error {
	if len(c.AllowDomains) == 0 || c.disallow != nil {
		return nil
	}
	remove, err := c.sandbox.AllowDomains(c.Key(), c.AllowDomains)
	if err != nil {
		return fmt.Errorf("AllowDomains: %w", err)
	}
	c.disallow = remove
	return nil
}

// disallowDomains takes the list away again. The command has ended, or was never started. The list of one that was prepared
// is in force until its launch is released.
func (c *Cmd) disallowDomains() {
	if c.disallow != nil && c.prepared == nil {
		c.disallow()
	}
}
