package fsview

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// StallLimit is how long a file system may take to answer one question before a start is given up.
const StallLimit = 10 * time.Second

// StallError is a file system that does not answer: a network or user-space one whose server is gone. The command must
// not start, since a deny could be missed. It is os.ErrDeadlineExceeded.
type StallError struct {
	Op     string        // what was asked, for example "list" or "inspect"
	Path   string        // absolute
	Waited time.Duration // how long there was no answer
}

// Error says what was asked, where, for how long, and what to do.
func (e *StallError) Error() string {
	return fmt.Sprintf("the file system does not answer: it was asked to %s %q and has been silent for %v, so a deny could be "+
		"missed; bring its server back or unmount it, or take what leads there out of the path lists", e.Op, e.Path, e.Waited)
}

// Unwrap gives os.ErrDeadlineExceeded.
func (e *StallError) Unwrap() error { return os.ErrDeadlineExceeded }

// BuildWithin is Build with an end to waiting: when t answers no question for limit although one is open, the error is a
// *StallError. The goroutine that waits for the answer is left behind; it ends as soon as there is one, and its result
// is dropped. Until then it uses what in refers to, which must not be changed. A limit of 0 is StallLimit.
func BuildWithin(t Tree, in Input, limit time.Duration) (*Plan, error) {
	return within(t, limit, func(t Tree) (*Plan, error) { return Build(t, in) })
}

// ConfineWithin is Confine with the same end to waiting for in.Tree. What lies beside something hidden is looked at there, which
// nothing else of a start may have to do with.
func ConfineWithin(pl *Plan, in ConfineInput, limit time.Duration) (*Confined, error) {
	return within(in.Tree, limit, func(t Tree) (*Confined, error) {
		in.Tree = t
		return Confine(pl, in)
	})
}

// within asks something of a tree that has to keep answering.
func within[T any](t Tree, limit time.Duration, ask func(Tree) (T, error)) (none T, err error) {
	if limit <= 0 {
		limit = StallLimit
	}
	w := &watched{tree: t}
	type answer struct {
		value T
		err   error
	}
	done := make(chan answer, 1)
	go func() {
		value, err := ask(w)
		done <- answer{value, err}
	}()
	// The number of answers is looked at again and again. A machine that was suspended meanwhile does not count that time:
	// a ticker drops what nobody took.
	tick := time.NewTicker(limit / stallLooks)
	defer tick.Stop()
	for silent, before := 0, int64(-1); ; {
		select {
		case a := <-done:
			return a.value, a.err
		case <-tick.C:
		}
		answers, open := w.progress()
		if answers != before || open == (question{}) {
			silent, before = 0, answers
			continue
		}
		if silent++; silent >= stallLooks {
			w.abandoned.Store(true)
			return none, &StallError{Op: open.op, Path: open.path, Waited: limit}
		}
	}
}

// stallLooks is how often within the limit the number of answers is looked at.
const stallLooks = 10

// errAbandoned is the answer to what a goroutine that was left behind still asks.
var errAbandoned = errors.New("the start was given up")

// question is one call of a Tree.
type question struct{ op, path string }

// watched is a Tree that knows which questions are open. Those who ask share no lock: a start asks a thousand questions.
type watched struct {
	tree      Tree
	slots     [4]slot // two goroutines ask at most
	answers   atomic.Int64
	abandoned atomic.Bool
}

// slot holds one open question. It fills a cache line of its own.
type slot struct {
	taken atomic.Bool
	mu    sync.Mutex // against progress
	open  question
	_     [16]byte
}

func (s *slot) set(q question) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open = q
}

// begin records a question, and gives where. It is nil when there is no place left, which no tree's use comes to.
func (w *watched) begin(q question) *slot {
	for i := range w.slots {
		if s := &w.slots[i]; s.taken.CompareAndSwap(false, true) {
			s.set(q)
			return s
		}
	}
	return nil
}

func (w *watched) end(s *slot) {
	w.answers.Add(1)
	if s != nil {
		s.set(question{})
		s.taken.Store(false)
	}
}

// progress gives the number of answers so far, and a question that is open, if there is one.
func (w *watched) progress() (answers int64, open question) {
	for i := range w.slots {
		s := &w.slots[i]
		s.mu.Lock()
		if s.open != (question{}) {
			open = s.open
		}
		s.mu.Unlock()
	}
	return w.answers.Load(), open
}

// ask puts one question to the tree.
func ask[T any](w *watched, op, path string, call func() (T, error)) (T, error) {
	if w.abandoned.Load() {
		var none T
		return none, errAbandoned
	}
	s := w.begin(question{op, path})
	defer w.end(s)
	return call()
}

// Lstat implements Tree.
func (w *watched) Lstat(path string) (Info, error) {
	return ask(w, "inspect", path, func() (Info, error) { return w.tree.Lstat(path) })
}

// Readlink implements Tree.
func (w *watched) Readlink(path string) (string, error) {
	return ask(w, "follow the link", path, func() (string, error) { return w.tree.Readlink(path) })
}

// ReadDir implements Tree.
func (w *watched) ReadDir(path string) ([]DirEntry, error) {
	return ask(w, "list", path, func() ([]DirEntry, error) { return w.tree.ReadDir(path) })
}

// ListTypes is as of the tree, if that has it.
func (w *watched) ListTypes(path string) ([]DirEntry, error) {
	if typed, ok := w.tree.(typedLister); ok {
		return ask(w, "list", path, func() ([]DirEntry, error) { return typed.ListTypes(path) })
	}
	return w.ReadDir(path)
}

// ReadFile implements Tree.
func (w *watched) ReadFile(path string, limit int) ([]byte, error) {
	return ask(w, "read", path, func() ([]byte, error) { return w.tree.ReadFile(path, limit) })
}

// CanCreate implements Tree.
func (w *watched) CanCreate(path string) error {
	_, err := ask(w, "inspect", path, func() (struct{}, error) { return struct{}{}, w.tree.CanCreate(path) })
	return err
}

// IgnoresCase implements Tree.
func (w *watched) IgnoresCase(path string) bool {
	ignores, err := ask(w, "inspect", path, func() (bool, error) { return w.tree.IgnoresCase(path), nil })
	return ignores || err != nil
}

// CanSearch implements Tree.
func (w *watched) CanSearch(path string) error {
	_, err := ask(w, "inspect", path, func() (struct{}, error) { return struct{}{}, w.tree.CanSearch(path) })
	return err
}
