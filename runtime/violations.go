package runtime

import (
	"context"
	"encoding/json"
	"iter"
	"log/slog"
	goruntime "runtime"
	"slices"
	"time"

	"github.com/srt-sandbox/srt/runtime/violation"
)

// Kind is what a violation is about.
type Kind = violation.Kind

// The kinds of violations.
const (
	KindFileRead   = violation.KindFileRead   // Path: what was to be read, listed, executed or entered
	KindFileWrite  = violation.KindFileWrite  // Path: what was to be changed, made or removed
	KindNetwork    = violation.KindNetwork    // Host and Port
	KindDNS        = violation.KindDNS        // Host: a name that was looked up
	KindUnixSocket = violation.KindUnixSocket // Path: the socket
	KindRequest    = violation.KindRequest    // an HTTP request, or a tunnel for what is not let through; Host and Port if known
	KindSOCKS      = violation.KindSOCKS      // Host and Port
	KindOther      = violation.KindOther
)

// Violation is one refused operation: its line and the parts of it. It is a value, and comparable. Texts other than Line
// and Command come as they were: what is not shown to a person through Line is to be cleaned first.
//
// What a sandboxed process can choose (Path, Host, Process) is untrusted: a violation is a report, never a reason to allow
// something (VIO-7). json.Marshal gives the documented form of docs/violations.md.
type Violation struct {
	// Seq numbers the violations of a session from 1. A gap in what a reader sees is violations that it missed (LIB-52).
	Seq uint64
	// Repeats is how many equal refusals of files to the same command came before: the same Op, Path and Rule, by whichever
	// process. Lists hold them as one, the latest; Watch gives each.
	Repeats uint64
	Time    time.Time
	Kind    Kind
	// Line is what is shown: "deny openat /etc/shadow", cleaned (VIO-20).
	Line string
	// Key is the attribution key of the command, as Cmd.Key gives it; empty if unattributed (VIO-1).
	Key string
	// Command is the text of the command (VIO-5).
	Command string
	// Op is the operation: the name of a system call, or "network-outbound", "http-request", "socks-tunnel", "dns-query".
	Op string
	// Path is the absolute path, of files and Unix sockets.
	Path string
	// Host is as the client spelled it, without brackets; Port is 0 if there is none.
	Host string
	Port uint16
	// Reason is the text in parentheses of the line.
	Reason string
	// Rule is the place in the settings that decided, such as "filesystem.denyRead.0", the list that lacks an entry, such as
	// "network.allowedDomains", or the name of one of srt's own protections. Entry is that entry as written.
	Rule, Entry string
	// PID is the process in the host's numbering and Process its name, if known.
	PID     int
	Process string

	target         string
	creates, apart bool
	other, modes   string // as in violation.Event
}

// newViolation takes the parts of a record apart.
func newViolation(r violation.Record) Violation {
	e := r.Event
	v := Violation{Seq: r.Seq, Repeats: r.Repeats, Time: e.Time, Kind: e.KindOf(), Line: r.Line, Key: e.CommandID, Command: r.Command,
		Op: string(e.Operation), Reason: e.Reason, Rule: e.Rule, Entry: e.Entry, PID: e.PID, Process: e.Process,
		target: e.Target, creates: e.Creates, apart: e.Apart, other: e.Other, modes: e.Modes}
	v.Path, v.Host, v.Port = e.Object()
	return v
}

// record is the other way round.
func (v Violation) record() violation.Record {
	return violation.Record{Seq: v.Seq, Repeats: v.Repeats, Line: v.Line, Command: v.Command, Key: violation.Carrier(v.Key), Event: violation.Event{
		Time: v.Time, PID: v.PID, Process: v.Process, Operation: violation.Operation(v.Op), Target: v.target, Kind: v.Kind,
		Creates: v.creates, Apart: v.apart, Other: v.other, Modes: v.modes, Rule: v.Rule, Entry: v.Entry, Reason: v.Reason, CommandID: v.Key}}
}

// Advice says which setting would allow it, as text for a person: `network.allowedDomains: add "example.com"`. It is never
// empty: where nothing allows it, it says so.
func (v Violation) Advice() string { return v.record().Event.Advice() }

// AppendJSON appends the violation as one line of JSON without its line end, in the schema of docs/violations.md.
func (v Violation) AppendJSON(b []byte) []byte { return violation.AppendJSON(b, v.record()) }

var _ json.Marshaler = Violation{}

// MarshalJSON gives the same object as AppendJSON. It never fails.
func (v Violation) MarshalJSON() ([]byte, error) { return v.AppendJSON(nil), nil }

// Violations is what a session has refused: the newest hundred, and what readers and subscribers are told. All methods are
// safe for concurrent use, also after the session is closed. The zero value holds nothing, as if its session were closed.
type Violations struct {
	store *violation.Store
	log   *slog.Logger
}

// Violations gives the violations of the session.
func (s *Sandbox) Violations() *Violations { return &Violations{&s.store, s.opts.logger} }

// from is where they are held.
func (v *Violations) from() *violation.Store {
	if v.store != nil {
		return v.store
	}
	var none violation.Store
	none.Close()
	return &none
}

// All gives the violations that are held, oldest first.
func (v *Violations) All() iter.Seq[Violation] { return each(v.from().All) }

// Recent gives the newest n, oldest first; none for n below 1 (VIO-30).
func (v *Violations) Recent(n int) []Violation { return parsed(v.from().Recent(n)) }

// ForKey gives those of one command, oldest first: the ones that are held and, while the command runs and for a while after
// it, the newest hundred of its own. Only the first 100 UTF-16 units of a key count (VIO-2, VIO-32).
func (v *Violations) ForKey(key string) iter.Seq[Violation] {
	return each(func() []violation.Record { return v.from().ForKey(key) })
}

// ForCommand gives those that are held of commands with exactly this text, oldest first.
func (v *Violations) ForCommand(text string) iter.Seq[Violation] {
	return each(func() []violation.Record { return v.from().ForCommand(text) })
}

// WatchOption changes one thing about a Watch.
type WatchOption func(*int)

// WatchBuffer lets a reader lag by n violations before it misses the oldest; the default is what the store holds, 100. It
// costs memory only for those that wait.
func WatchBuffer(n int) WatchOption { return func(limit *int) { *limit = n } }

// Watch gives the violations that are held and then each new one, until ctx ends or the session is closed, after which what
// came before is still delivered. Watching begins with the call, not with the loop. A reader that lags misses the oldest,
// which shows as a gap in Seq; it never slows the sandbox (LIB-52). The sequence is for one loop. A nil ctx never ends.
func (v *Violations) Watch(ctx context.Context, opts ...WatchOption) iter.Seq[Violation] {
	limit := violation.Held
	for _, o := range opts {
		o(&limit)
	}
	if ctx == nil {
		ctx = context.Background()
	}
	feed := v.from().Feed(limit)
	unused := context.AfterFunc(ctx, feed.Stop) // a sequence that is never read
	return func(yield func(Violation) bool) {
		defer unused()
		defer feed.Stop()
		for {
			r, ok := feed.Next(ctx)
			if !ok || !yield(newViolation(r)) {
				return
			}
		}
	}
}

// Subscribe calls f with the violations that are held, before it returns, and then with the whole list after each new one
// and each Clear, in order and one call at a time, until cancel is called or the session is closed (VIO-31). No lock is held
// and the list is f's to keep. A panic in f is contained and logged. A subscriber that lags by more than a thousand changes
// is not called for each of them.
func (v *Violations) Subscribe(f func([]Violation)) (cancel func()) {
	return v.from().Subscribe(func(list []violation.Record) { f(parsed(list)) }, func(recovered any) {
		v.log.Error("a subscriber to violations panicked; it stays subscribed", "panic", recovered)
	})
}

// Len is how many violations are held, at most 100 (VIO-30).
func (v *Violations) Len() int { return v.from().Len() }

// Total is how many there have been since the session started. It never falls.
func (v *Violations) Total() uint64 { return v.from().Total() }

// Lost is how many refusals were not recorded because a source had to drop them: the buffer between the kernel and srt was
// full. They are not part of Total.
func (v *Violations) Lost() uint64 { return v.from().Lost() }

// Clear drops what is held, and tells subscribers. Total stays.
func (v *Violations) Clear() { v.from().Clear() }

// Annotate appends the violations of one command to what it wrote to standard error, for a model that is to read both
// (VIO-33). Without any, stderr comes back unchanged.
func (s *Sandbox) Annotate(key, stderr string) string {
	eol := "\n"
	if goruntime.GOOS == "windows" {
		eol = "\r\n"
	}
	return violation.Annotate(stderr, s.store.ForKey(key), eol)
}

// Violations gives what was refused to this command, the newest hundred, oldest first: while it runs, and after its end. It
// is its own list, which others with many violations do not shorten and Clear does not touch. It may be called from any
// goroutine; before Start there is nothing.
func (c *Cmd) Violations() iter.Seq[Violation] {
	return each(func() []violation.Record {
		c.mu.Lock()
		defer c.mu.Unlock()
		switch {
		case c.left:
			return c.refused
		case c.process == nil:
			return nil
		}
		return c.sandbox.store.Tail(c.Key())
	})
}

// keepViolations takes the command's own list from the store: the command has ended.
func (c *Cmd) keepViolations() {
	tail := c.sandbox.store.Unregister(c.Key())
	c.mu.Lock()
	defer c.mu.Unlock()
	c.left, c.refused = true, tail
}

// noteLost counts refusals that a source could not deliver, which is never silent.
func (s *Sandbox) noteLost(n uint64) {
	if n == 0 {
		return
	}
	s.store.NoteLost(n)
	s.opts.logger.Warn("refusals were lost between the kernel and srt, which came faster than they were read", "lost", n)
}

func each(records func() []violation.Record) iter.Seq[Violation] {
	return func(yield func(Violation) bool) {
		for _, r := range records() {
			if !yield(newViolation(r)) {
				return
			}
		}
	}
}

func parsed(records []violation.Record) []Violation {
	out := make([]Violation, 0, len(records))
	for _, r := range records {
		out = append(out, newViolation(r))
	}
	return slices.Clip(out)
}
