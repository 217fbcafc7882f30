package credential

import (
	"errors"
	"hash/maphash"
	"slices"
	"sync"

	"github.com/srt-sandbox/srt/runtime/config"
)

// ErrClosed says that a session's credentials are gone.
var ErrClosed = errors.New("the session is closed, its credentials are gone")

// Store holds the credentials of a session: what stands for each value, and at which hosts the value may take its place
// again. All that a launch adds stays until Close (CRED-6): a command that runs keeps its fakes. Methods may be called
// by any number of goroutines.
type Store struct {
	mu      sync.RWMutex
	closed  bool
	region  region
	secrets []*secret           // all there ever were
	groups  map[groupKey]*group // what is masked, and what stands for it
	pairs   []pair              // newest first (CRED-27)
	byHost  map[config.Host][]*secret
	lists   [][]*secret // the different ones in byHost, none empty

	seed      maphash.Seed // of the names of sources; zero: not made yet
	sentinels sentinels
	programs  programs
	scanners  scanners // of the lists in byHost; with a lock of its own
}

// maxHosts bounds how many hosts at remembers its answer for; a command may ask for any number.
const maxHosts = 1024

// NewStore returns an empty store. It costs nothing until something is masked.
func NewStore() (*Store, error) { return &Store{}, nil }

// Close overwrites every value and gives the memory back. Whatever is asked of the store afterwards finds nothing, and
// Mask returns ErrClosed. A second Close does nothing.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	for _, x := range s.secrets {
		x.slot.view = nil
	}
	s.secrets, s.groups, s.pairs, s.byHost, s.lists = nil, nil, nil, nil, nil
	return s.region.destroy()
}

// slot is the place of a value. Fakes that stand for one credential share it.
type slot struct{ view []byte } // in the region; nil after Close

// secret is one sentinel and the value it stands for. Its fields never change; the value may (CRED-6), and is therefore
// only seen under the lock of the store, by the methods below.
type secret struct {
	store    *Store
	slot     *slot
	sentinel string          // what the command sees
	hosts    []config.Domain // where the value may take its place (CRED-21)
	name     string          // for logs: the entry of the settings
	whole    bool            // it is the whole value of a variable, undecoded (CRED-27)
}

// use calls f with the value and reports whether there still is one. The view is valid during the call alone: f copies
// what it needs, never into a string, and must not call the store.
func (x *secret) use(f func(value []byte)) bool {
	x.store.mu.RLock()
	defer x.store.mu.RUnlock()
	if x.slot.view == nil {
		return false
	}
	f(x.slot.view)
	return true
}

// appendTo appends the value to dst and reports whether there still is one. Who owns dst overwrites it after use.
func (x *secret) appendTo(dst []byte) ([]byte, bool) {
	ok := x.use(func(value []byte) { dst = append(dst, value...) })
	return dst, ok
}

// size is the length of the value in bytes, -1 if there is none any more. A later launch may change it.
func (x *secret) size() int {
	size := -1
	x.use(func(value []byte) { size = len(value) })
	return size
}

// at returns the secrets whose value may be sent to a host (CRED-21), whatever the port. The caller must not change the
// list. It is remembered until something else is masked.
func (s *Store) at(host config.Host) []*secret {
	s.mu.RLock()
	list, known := s.byHost[host]
	s.mu.RUnlock()
	if known {
		return list
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, x := range s.secrets {
		if x.injectable(host) {
			list = append(list, x)
		}
	}
	if s.byHost == nil || len(s.byHost) >= maxHosts {
		s.byHost, s.lists = make(map[config.Host][]*secret), nil
	}
	list = s.shared(list)
	s.byHost[host] = list
	return list
}

// maxLists bounds with how many lists a new one is compared.
const maxLists = 64

// shared returns the list that was made before for another host, if it is equal: a command may ask for any number of names
// that one wildcard covers, and a list and its scanner are as large as all that is masked.
func (s *Store) shared(list []*secret) []*secret {
	if len(list) == 0 {
		return nil
	}
	for _, known := range s.lists {
		if slices.Equal(known, list) {
			return known
		}
	}
	if len(s.lists) >= maxLists {
		s.byHost, s.lists = make(map[config.Host][]*secret), nil
	}
	s.lists = append(s.lists, list)
	return list
}

// injectable reports whether the value may be sent to host.
func (x *secret) injectable(host config.Host) bool {
	return slices.ContainsFunc(x.hosts, func(d config.Domain) bool { return d.Matches(host, 0) })
}
