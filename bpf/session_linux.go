package bpf

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"

	"golang.org/x/sys/unix"
)

// Session is the rules of one sandbox. Safe for concurrent use.
type Session struct {
	e         *Enforcer
	id        uint64
	namespace *os.File // keeps the number of the namespace its own
	lineage   []uint32 // its number, and those of the namespaces that hold it
	report    func(Refusal)

	mu     sync.Mutex
	closed bool
	failed error // of an Add: there may be rules that do not hold
	count  int   // rules
	dirs   map[dirKey]dirValue
	names  map[nameKey]struct{}
}

type dirValue struct{ token, kinds uint32 }

// Session begins the rules of the sandbox whose processes have a user namespace, or one made from it by whatever depth.
// namespace stays the caller's to close, and the command must not run before its rules are added. report, if not nil, is
// called with each refusal, one at a time. It must not block for long and must use neither the Session nor the Enforcer.
func (e *Enforcer) Session(namespace *os.File, report func(Refusal)) (*Session, error) {
	own, lineage, err := sandboxNamespace(namespace)
	if err != nil {
		return nil, fmt.Errorf("rules of a sandbox in the kernel: %w", err)
	}
	s := &Session{e: e, namespace: own, lineage: lineage, report: report, dirs: map[dirKey]dirValue{}, names: map[nameKey]struct{}{}}
	if err := e.begin(s); err != nil {
		own.Close()
		return nil, fmt.Errorf("begin the rules of a sandbox in the kernel: %w", err)
	}
	return s, nil
}

// nested tells from the lineages of two sandboxes, their own namespaces first, whether they are one or one lies in the other.
func nested(a, b []uint32) bool { return slices.Contains(a, b[0]) || slices.Contains(b, a[0]) }

func (e *Enforcer) begin(s *Session) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return ErrClosed
	}
	for _, other := range e.sessions {
		if nested(other.lineage, s.lineage) {
			return fmt.Errorf("it has rules already, or lies in a sandbox with rules or around one: %w", ErrNamespace)
		}
	}
	wanted := uint32(0)
	if s.report != nil {
		wanted = 1
		if e.reader == nil {
			r, err := newReader(e.set.loader.maps[mapRefusals], ringSize, e.deliver)
			if err != nil {
				return err
			}
			e.reader = r
		}
	}
	s.id = e.lastID + 1
	value := append(le.AppendUint64(nil, s.id), words(wanted, 0)...)
	if err := element(cmdMapUpdate, e.set.loader.maps[mapSessions], words(s.lineage[0]), value); err != nil {
		return full(err)
	}
	e.lastID = s.id
	e.sessions[s.id] = s
	return nil
}

// Add adds rules, which hold from when it returns. A rule for what another one already refuses changes nothing. After an
// error some of these rules may not hold: every later Add gives the same error, and the command must not run with this
// session. Errors: ErrRule, ErrMoved, ErrFull, ErrClosed, or of the kernel.
func (s *Session) Add(rules []Rule) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return ErrClosed
	}
	if s.failed == nil {
		s.failed = s.add(rules)
	}
	return s.failed
}

func (s *Session) add(rules []Rule) error {
	known, err := s.e.set.identifyAll(rules)
	if err != nil {
		return err
	}
	add := additions{session: s, dirs: map[dirKey]dirValue{}}
	for i := range rules {
		spellings, err := rules[i].spellings()
		if err != nil {
			return err
		}
		place := known[i]
		place.session = s.id
		if err := add.rule(place, spellings, rules[i].Fold, uint32(s.count+i)); err != nil {
			return err
		}
	}
	if err := add.install(); err != nil {
		return fmt.Errorf("add %d rules to the kernel: %w", len(rules), full(err))
	}
	s.count += len(rules)
	return nil
}

// additions is what one Add puts into the maps.
type additions struct {
	session    *Session
	dirs       map[dirKey]dirValue
	keys       []byte
	values     []byte
	namesCount int
}

func (a *additions) rule(place dirKey, spellings []string, fold bool, rule uint32) error {
	dir, there := a.dirs[place]
	if !there {
		if dir, there = a.session.dirs[place]; !there {
			token, err := a.session.e.newToken()
			if err != nil {
				return err
			}
			dir.token = token
		}
	}
	kind := uint32(namesExact)
	if fold {
		kind = namesFolded
	}
	dir.kinds |= kind
	a.dirs[place] = dir
	for _, name := range spellings {
		key := nameKey{name: name, token: dir.token, kind: kind}
		if _, there := a.session.names[key]; there {
			continue
		}
		a.session.names[key] = struct{}{}
		a.keys, a.values = append(a.keys, key.encode()...), le.AppendUint32(a.values, rule)
		a.namesCount++
	}
	return nil
}

// install puts the names in force before the directories that lead to them.
func (a *additions) install() error {
	maps := a.session.e.set.loader.maps
	if err := wholeBatch(cmdMapUpdateBatch, maps[mapNames], a.namesCount, a.keys, a.values); err != nil {
		return err
	}
	var keys, values []byte
	for place, dir := range a.dirs {
		a.session.dirs[place] = dir
		keys, values = append(keys, place.encode()...), append(values, words(dir.token, dir.kinds)...)
	}
	return wholeBatch(cmdMapUpdateBatch, maps[mapDirs], len(a.dirs), keys, values)
}

func wholeBatch(command uintptr, m *os.File, count int, keys, values []byte) error {
	done, err := batch(command, m, count, keys, values)
	if err == nil && done != count {
		return fmt.Errorf("%d of %d: %w", done, count, unix.EIO)
	}
	return err
}

// full names the kernel's answers to a map that has no room.
func full(err error) error {
	if errors.Is(err, unix.E2BIG) || errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.ENOMEM) {
		return fmt.Errorf("%w (%d at most): %w", ErrFull, maxRules, err)
	}
	return err
}

// newToken numbers a directory. Numbers are not used again, so that what is left of a session that could not be removed
// refuses nothing in another.
func (e *Enforcer) newToken() (uint32, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return 0, ErrClosed
	}
	if e.token == 1<<32-1 {
		return 0, ErrFull
	}
	e.token++
	return e.token, nil
}

// Close ends the rules. Every refusal before it is reported, and none after.
func (s *Session) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return ErrClosed
	}
	s.closed = true
	defer s.namespace.Close()
	return s.e.end(s)
}

func (e *Enforcer) end(s *Session) error {
	e.mu.Lock()
	if e.closed {
		delete(e.sessions, s.id)
		e.mu.Unlock()
		return nil
	}
	maps := e.set.loader.maps
	err := element(cmdMapDelete, maps[mapSessions], words(s.lineage[0]), nil)
	err = errors.Join(err, remove(maps[mapDirs], s.dirs), remove(maps[mapNames], s.names))
	r := e.reader
	e.mu.Unlock()
	if r != nil {
		r.settle()
	}
	e.mu.Lock()
	delete(e.sessions, s.id)
	e.mu.Unlock()
	return err
}

// remove takes keys out of a map. An Add that failed half-way has left some out.
func remove[K interface {
	comparable
	encode() []byte
}, V any](m *os.File, keys map[K]V) (err error) {
	var all []byte
	for key := range keys {
		all = append(all, key.encode()...)
	}
	if wholeBatch(cmdMapDeleteBatch, m, len(keys), all, nil) == nil {
		return nil
	}
	for key := range keys {
		if removal := element(cmdMapDelete, m, key.encode(), nil); !errors.Is(removal, unix.ENOENT) {
			err = errors.Join(err, removal)
		}
	}
	return err
}

// deliver hands a refusal to its session. The reader calls it, one record at a time.
func (e *Enforcer) deliver(record []byte) {
	if len(record) != refusalSize {
		return
	}
	session, refusal := decodeRefusal(record)
	e.mu.Lock()
	s := e.sessions[session]
	e.mu.Unlock()
	if s != nil && s.report != nil {
		s.report(refusal)
	}
}
