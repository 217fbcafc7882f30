package violation

import (
	"strings"
	"sync"
)

// The bounds of a [Store].
const (
	// Held is how many records a store keeps (NET-72, VIO-30).
	Held = 100
	// Launches is how many of the latest commands a store knows the text of (VIO-5).
	Launches = 1024
	// textLimit is the length, in UTF-16 units, of the text of a key that was never registered (NET-72).
	textLimit = 100
)

// Record is one refused operation as a store keeps it. It is a value that nothing changes.
type Record struct {
	// Seq numbers the records of a store from 1; a gap between two of them is records that are no longer held.
	Seq uint64
	// Repeats is how many equal refusals of files to the same command came before this one: the same call, target and rule,
	// by whichever process, as far as they were held when this one came. It is 0 for the network.
	Repeats uint64
	// Event is what was reported. Its texts are not cleaned.
	Event Event
	// Line is the cleaned line (NET-70, NET-75).
	Line string
	// Key is the carrier form of the attribution key, see [Carrier]; empty if the event is unattributed.
	Key string
	// Command is the text of the command: as registered, or, for a key that this process did not hand out, the decoded
	// key itself, cleaned and cut to 100 UTF-16 units (NET-72, VIO-5). Empty if unattributed.
	Command string
}

// Ignore is ignoreViolations: for each part of a command's text, or "*" for every event, the parts of lines that are
// dropped (NET-73, VIO-25). Case counts, and an empty pattern is part of everything. Nil drops nothing.
type Ignore map[string][]string

// Drops reports whether a line is dropped. command is the text of a registered command, empty if there is none.
func (i Ignore) Drops(line, command string) bool {
	for key, patterns := range i {
		if key != "*" && (command == "" || !strings.Contains(command, key)) {
			continue
		}
		for _, p := range patterns {
			if strings.Contains(line, p) {
				return true
			}
		}
	}
	return false
}

// Store keeps the latest records of one session, and of each command that runs the latest of its own, so that a command
// with many does not take another's from it. Equal refusals of files to one command are held as one, the latest, which
// counts them (Record.Repeats): a program that tries the same thing a thousand times does not push out what else was
// refused. Total counts each of them, feeds give each, and subscribers are called for each. The zero value is ready. All methods may be called from any goroutine, from
// within the functions of subscribers too; no method waits for a reader.
type Store struct {
	mu       sync.Mutex
	ignore   Ignore
	held     ring
	total    uint64
	cleared  uint64 // total when Clear was last called
	lost     uint64
	commands commands
	feeds    map[*Feed]struct{}
	subs     []*subscription
	closed   bool
}

// SetIgnore replaces the ignore rules, from the next event on (NET-16). The store keeps rules, which nothing may change
// any more.
func (s *Store) SetIgnore(rules Ignore) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ignore = rules
}

// Register notes that a command with an attribution key and a text is about to start: until Unregister, what is refused
// to it is kept apart. The keys of the latest [Launches] launches are known, and those of all commands that run.
// Several commands may have one key: they are one, with the latest text. An empty key is not noted.
func (s *Store) Register(key, text string) {
	carrier := Carrier(key)
	if carrier == "" {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.commands.register(carrier, text)
}

// Unregister notes that a command has ended, once for each Register, and returns its own latest records, oldest first.
func (s *Store) Unregister(key string) []Record {
	carrier := Carrier(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.commands.unregister(carrier)
}

// Forget drops the text of every command (VIO-5: until close). The records stay readable, those of commands too.
func (s *Store) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.commands.forget()
}

// Add keeps an event unless an ignore rule drops it, and returns its record and whether it was kept. A dropped event is
// not counted and nobody is told (VIO-25).
//
// Only a registered text is matched against the keys of ignore rules: the key of a proxy client is a label of its own
// choosing (NET-21), and a text made of it would let a command choose which of its violations are seen.
func (s *Store) Add(e Event) (r Record, kept bool) {
	r = Record{Event: e, Line: e.Line(), Key: Carrier(e.CommandID)}
	s.mu.Lock()
	defer s.mu.Unlock()
	text, known := s.commands.textOf(r.Key)
	if s.ignore.Drops(e.matched(), text) {
		return r, false
	}
	if r.Command = text; !known {
		r.Command = strings.TrimSpace(CutUTF16(Clean(e.CommandID), textLimit))
	}
	s.total++
	r.Seq = s.total
	r.Repeats = s.held.add(r)
	if from := s.commands.known[r.Key]; from != nil && from.running > 0 {
		r.Repeats = max(r.Repeats, from.tail.add(r))
	}
	for f := range s.feeds {
		f.push(r)
	}
	s.tell(change{record: r})
	return r, true
}

// NoteLost counts events that a source had to drop: the kernel's buffer was full, a queue was. It is never called for what
// an ignore rule drops.
func (s *Store) NoteLost(n uint64) {
	if n == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lost += n
}

// Lost is how many events sources had to drop since the store was made. Nothing is known about them but that there were
// that many; they are not part of Total.
func (s *Store) Lost() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lost
}

// All returns the records that are held, oldest first.
func (s *Store) All() []Record {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.held.all()
}

// Recent returns the newest n records, or as many as are held, oldest first. n below 1 gives none (VIO-30).
func (s *Store) Recent(n int) []Record {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.held.newest(n)
}

// ForKey returns the records of one attribution key, oldest first: those that are held and, while the command runs and for
// a while after it, those of its tail. Keys are compared in carrier form, and no key matches an unattributed record (VIO-32).
func (s *Store) ForKey(key string) []Record {
	carrier := Carrier(key)
	if carrier == "" {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []Record
	if c := s.commands.known[carrier]; c != nil {
		oldest := s.held.oldest()
		out = c.tail.where(func(r *Record) bool { return r.Seq < oldest && r.Seq > s.cleared })
	}
	return append(out, s.held.where(func(r *Record) bool { return r.Key == carrier })...)
}

// Tail returns the latest records of a command that runs, oldest first. Unlike ForKey it does not heed Clear.
func (s *Store) Tail(key string) []Record {
	carrier := Carrier(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.commands.known[carrier]; c != nil {
		return c.tail.all()
	}
	return nil
}

// ForCommand returns the records of commands with exactly this text that are held, oldest first.
func (s *Store) ForCommand(text string) []Record {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.held.where(func(r *Record) bool { return r.Key != "" && r.Command == text })
}

// Len is how many records are held.
func (s *Store) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.held.len()
}

// Total is how many events have been kept since the store was made. It never falls (VIO-30).
func (s *Store) Total() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.total
}

// Clear drops the records that are held, not their count, not the texts of commands and not their tails, and tells
// subscribers (VIO-30). Feeds still deliver what they have not delivered.
func (s *Store) Clear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held, s.cleared = ring{}, s.total
	s.tell(change{clear: true})
}

// Close ends every feed once it has delivered what came before, and every subscription likewise. The records stay readable
// and events are still kept. It does not wait for a subscriber.
func (s *Store) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for f := range s.feeds {
		f.end()
	}
	s.feeds, s.subs = nil, nil
}
