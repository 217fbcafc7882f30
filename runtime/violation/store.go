package violation

import (
	"slices"
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

// Store keeps the latest records of one session. The zero value is ready. All methods may be called from any goroutine.
type Store struct {
	mu      sync.Mutex
	ignore  Ignore
	records []Record // at most Held, oldest first
	total   uint64

	texts    map[string]string // carrier form to text
	launches []string          // the carriers of texts, the one registered last at the end
}

// SetIgnore replaces the ignore rules, from the next event on (NET-16). The store keeps rules, which nothing may change
// any more.
func (s *Store) SetIgnore(rules Ignore) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ignore = rules
}

// Register notes that the attribution key was handed out to a command with a text. The latest [Launches] keys are known;
// registering one again makes it the latest. An empty key is not noted.
func (s *Store) Register(key, text string) {
	carrier := Carrier(key)
	if carrier == "" {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.texts == nil {
		s.texts = map[string]string{}
	}
	if _, known := s.texts[carrier]; known {
		if i := slices.Index(s.launches, carrier); i >= 0 {
			s.launches = slices.Delete(s.launches, i, i+1)
		}
	} else if len(s.launches) == Launches {
		delete(s.texts, s.launches[0])
		s.launches = slices.Delete(s.launches, 0, 1)
	}
	s.texts[carrier] = text
	s.launches = append(s.launches, carrier)
}

// Forget drops every text of a command (VIO-5: until close). The records stay readable.
func (s *Store) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.texts, s.launches = nil, nil
}

// Add keeps an event unless an ignore rule drops it, and returns its record and whether it was kept. A dropped event is
// not counted (VIO-25).
//
// Only a registered text is matched against the keys of ignore rules: the key of a proxy client is a label of its own
// choosing (NET-21), and a text made of it would let a command choose which of its violations are seen.
func (s *Store) Add(e Event) (r Record, kept bool) {
	r = Record{Event: e, Line: e.Line(), Key: Carrier(e.CommandID)}
	s.mu.Lock()
	defer s.mu.Unlock()
	text, known := s.texts[r.Key]
	if s.ignore.Drops(e.matched(), text) {
		return r, false
	}
	if r.Command = text; !known {
		r.Command = strings.TrimSpace(CutUTF16(Clean(e.CommandID), textLimit))
	}
	s.total++
	r.Seq = s.total
	if len(s.records) == Held {
		copy(s.records, s.records[1:])
		s.records = s.records[:Held-1]
	}
	s.records = append(s.records, r)
	return r, true
}

// All returns the records that are held, oldest first.
func (s *Store) All() []Record {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.records)
}

// Recent returns the newest n records, or as many as are held, oldest first. n below 1 gives none (VIO-30).
func (s *Store) Recent(n int) []Record {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n = min(n, len(s.records)); n < 1 {
		return nil
	}
	return slices.Clone(s.records[len(s.records)-n:])
}

// ForKey returns the records of one attribution key that are held, oldest first. Keys are compared in carrier form, and
// no key matches an unattributed record (VIO-32).
func (s *Store) ForKey(key string) []Record {
	carrier := Carrier(key)
	if carrier == "" {
		return nil
	}
	return s.filter(func(r Record) bool { return r.Key == carrier })
}

// ForCommand returns the records of commands with exactly this text that are held, oldest first.
func (s *Store) ForCommand(text string) []Record {
	return s.filter(func(r Record) bool { return r.Key != "" && r.Command == text })
}

func (s *Store) filter(keep func(Record) bool) []Record {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []Record
	for _, r := range s.records {
		if keep(r) {
			out = append(out, r)
		}
	}
	return out
}

// Len is how many records are held.
func (s *Store) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.records)
}

// Total is how many events have been kept since the store was made. It never falls (VIO-30).
func (s *Store) Total() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.total
}

// Clear drops the records, not their count and not the texts of commands.
func (s *Store) Clear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.records = nil
}
