package credential

import (
	"errors"
	"slices"
	"sync"

	"github.com/srt-sandbox/srt/runtime/config"
)

var (
	// ErrControl is returned for a value that cannot be part of a header field (CRED-24).
	ErrControl = errors.New("a masked credential holds a control character and cannot be sent in a header")
	// ErrChanged is returned by the reader of a body when the value that it was writing went away halfway: another
	// launch changed it, or the session ended. The request must not look complete.
	ErrChanged = errors.New("a masked credential changed while it was being sent; send the request again")
)

// Injection puts real values in the place of the sentinels of one request to one host (CRED-20 to CRED-34). It belongs
// to that request: its methods are not safe for concurrent use. It holds no value itself; each is read from the store at
// the moment it is written.
type Injection struct {
	store *Store
	host  config.Host
	*scanner
	kept bool // LengthKept has promised that no length changes
}

// At returns what may be injected into a request to host, whatever its port (CRED-21). host is that of the connection,
// never what a Host field or a TLS server name says. nil: nothing may, and the request goes out as it is.
func (s *Store) At(host config.Host) *Injection {
	list := s.at(host)
	if len(list) == 0 {
		return nil
	}
	return &Injection{store: s, host: host, scanner: s.scanners.of(list)}
}

// LengthKept reports whether every value injectable here is as long as its sentinel, so that the declared length of a
// body holds (CRED-26). After it has said so, a value that a later launch makes longer or shorter is no longer put into
// the bodies of this request: its sentinel goes out.
func (i *Injection) LengthKept() bool {
	i.kept = lengthsKept(i.list)
	return i.kept
}

// MaxPayload is how many bytes a body of length bytes, -1 if that is not known, has at most once Body has replaced what is in
// it, as far as values stay as they are now: [MaxSigned] if nothing less is sure.
func (i *Injection) MaxPayload(length int64) int64 {
	if length < 0 || length > MaxSigned || !i.neverLonger() {
		return MaxSigned
	}
	return length
}

// Names returns the names of the credentials that may be injected, each once.
func (i *Injection) Names() []string {
	var names []string
	for _, x := range i.list {
		if !slices.Contains(names, x.name) {
			names = append(names, x.name)
		}
	}
	return names
}

func lengthsKept(list []*secret) bool {
	for _, x := range list {
		if x.size() != len(x.sentinel) {
			return false
		}
	}
	return true
}

// neverLonger reports whether no value injectable here is longer than its sentinel, so that no body grows. Values of today are
// what counts; a later launch may make one longer.
func (i *Injection) neverLonger() bool {
	return !slices.ContainsFunc(i.list, func(x *secret) bool { return x.size() > len(x.sentinel) })
}

// InTarget returns the names of the credentials whose sentinel a request target holds (CRED-22): none is replaced there,
// which the debug log should tell. target is the path and query that go out.
func (i *Injection) InTarget(target string) []string {
	var names []string
	b := []byte(target)
	for from := 0; from < len(b); {
		pos, x := i.find(b, from)
		if x == nil {
			break
		}
		names = append(names, x.name)
		from = pos + len(x.sentinel)
	}
	return names
}

// scanners keeps one scanner per list of what is injectable at hosts. The zero value is empty.
type scanners struct {
	mu     sync.Mutex
	byList map[**secret]*scanner // by the address of the first element
}

// of returns the scanner for a list that Store.at returned. The store hands out the same list until something is masked, so
// that its first element's address tells whether it is still that one.
func (c *scanners) of(list []*secret) *scanner {
	c.mu.Lock()
	defer c.mu.Unlock()
	if known := c.byList[&list[0]]; known != nil {
		return known
	}
	if c.byList == nil || len(c.byList) >= maxLists {
		c.byList = make(map[**secret]*scanner)
	}
	made := newScanner(list)
	c.byList[&list[0]] = made
	return made
}
