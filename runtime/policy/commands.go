package policy

import (
	"errors"
	"fmt"
	"sync"
	"unicode/utf8"

	"github.com/srt-sandbox/srt/runtime/config"
	"github.com/srt-sandbox/srt/runtime/violation"
)

// minCommandID is the least number of characters of a command id that a list may be registered under: 22 characters of
// base64 hold the 128 bits that make an id impossible to guess (NET-15, LIB-32).
const minCommandID = 22

// ErrShortCommandID is returned for a command id that could be guessed. It never holds the id, which is a secret between
// the embedding program and one command.
var ErrShortCommandID = errors.New("the command id is too short to register allowed domains under: " +
	"use at least 22 random characters")

// CommandLists are the lists of destinations that single commands may reach beyond allowedDomains (NET-15). A command is
// known by its attribution key, of which the first 100 UTF-16 units count (VIO-2). The zero value holds no list. All
// methods may be called from any goroutine; a nil *CommandLists answers like an empty one.
type CommandLists struct {
	mu    sync.RWMutex
	lists map[string]*domainList // by what counts of the key
}

// Register makes entries, in the grammar of allowedDomains (NET-10 to NET-12), the list of the command with an id, in
// place of one that it had. Fewer than 22 characters among the first 100 UTF-16 units of the id, not counting U+FFFD and
// bytes that are no UTF-8 (unpaired surrogates), are [ErrShortCommandID]. A malformed entry is an error that names its
// position and wraps what package config says about it. After an error nothing has changed, and no error holds the id.
//
// remove drops this very list: not one that has come in its place, and nothing when it is called again.
func (c *CommandLists) Register(id string, allowedDomains []string) (remove func(), err error) {
	key := commandKey(id)
	counted := 0
	for _, r := range key {
		if r != utf8.RuneError {
			counted++
		}
	}
	if counted < minCommandID {
		return nil, ErrShortCommandID
	}
	list, err := newDomainList("allowedDomains", allowedDomains, config.DomainForm{Port: true})
	if err != nil {
		return nil, fmt.Errorf("the list of a command: %w", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.lists == nil {
		c.lists = map[string]*domainList{}
	}
	c.lists[key] = &list
	return func() { c.remove(key, &list) }, nil
}

func (c *CommandLists) remove(key string, list *domainList) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.lists[key] == list {
		delete(c.lists, key)
	}
}

// Reset drops all lists.
func (c *CommandLists) Reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.lists)
}

// Allows tells whether the list of a command allows a canonical host on a port, and by which entry as written. It is step
// 5 of NET-7: whoever asks has had a verdict of [Network.Decide] that is a refusal, neither Denied nor Malformed, of a
// policy that is not Strict. An empty key has no list.
func (c *CommandLists) Allows(key string, h config.Host, port uint16) (entry string, ok bool) {
	if c == nil || key == "" {
		return "", false
	}
	c.mu.RLock()
	defer c.mu.RUnlock()
	list := c.lists[commandKey(key)]
	if list == nil {
		return "", false
	}
	rule := list.match(h, port)
	if rule == nil {
		return "", false
	}
	return rule.entry, true
}

// Possible tells whether the list of a command could allow a canonical host on some port, or with an empty key whether any
// list could.
func (c *CommandLists) Possible(key string, h config.Host) bool {
	if c == nil {
		return false
	}
	anyPort := func(uint16) bool { return true }
	c.mu.RLock()
	defer c.mu.RUnlock()
	if key != "" {
		list := c.lists[commandKey(key)]
		return list != nil && list.some(h, anyPort)
	}
	for _, list := range c.lists {
		if list.some(h, anyPort) {
			return true
		}
	}
	return false
}

// commandKey is what counts of a key: its first 100 UTF-16 units, a pair that is cut in half as U+FFFD, as is every byte
// that is no UTF-8. It is what a proxy user name carries (see ProxyUser).
func commandKey(key string) string {
	cut := violation.CutUTF16(key, maxKeyUnits)
	halved := len(cut) < len(key) && cut == violation.CutUTF16(key, maxKeyUnits-1)
	cut = string([]rune(cut))
	if halved {
		cut += string(utf8.RuneError)
	}
	return cut
}
