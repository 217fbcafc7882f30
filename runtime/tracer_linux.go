package runtime

import (
	"errors"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/srt-sandbox/srt/bpf"
	"github.com/srt-sandbox/srt/fsview"
	"github.com/srt-sandbox/srt/ns"
	"github.com/srt-sandbox/srt/probe"
	"github.com/srt-sandbox/srt/seccomp/broker"
)

// sharedTracer is the one tracer of this process: each costs every system call of the host something, for as long as it is
// loaded. It goes with its last user.
var sharedTracer tracerHolder

type tracerHolder struct {
	mu     sync.Mutex
	tracer *bpf.Tracer
	users  int
}

// acquire gives the tracer, and loads it for the first user.
func (h *tracerHolder) acquire() (*bpf.Tracer, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.tracer == nil {
		if err := probe.BPF.Withheld(); err != nil {
			return nil, err
		}
		t, err := bpf.LoadTracer()
		if err != nil {
			return nil, err
		}
		h.tracer = t
	}
	h.users++
	return h.tracer, nil
}

// release ends a use.
func (h *tracerHolder) release() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.users--; h.users > 0 {
		return nil
	}
	t := h.tracer
	h.tracer = nil
	return t.Close()
}

// sessionTracing is a session's use of the tracer: from its first command that is to be watched to the end of the session,
// or of the last such command where that is later. The zero value is ready; all methods are safe for concurrent use.
type sessionTracing struct {
	warned atomic.Bool // that nobody tells what the kernel refuses

	confined atomic.Bool // it has been said what mode confined does not hide

	mu     sync.Mutex
	asked  bool
	closed bool
	tracer *bpf.Tracer // nil unless in use
	used   int         // commands
	err    error       // why there is none
}

// available loads the tracer, unless that was done or tried before or nothing is to change, and tells why there is none.
func (s *sessionTracing) available(dry bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.asked:
		return s.err
	case s.closed:
		return ErrClosed
	case dry:
		return errors.Join(probe.BPF.Withheld(), bpf.TracingSupported())
	}
	s.asked = true
	s.tracer, s.err = sharedTracer.acquire()
	return s.err
}

// begin gives the tracer to a command, which must end its use.
func (s *sessionTracing) begin() (*bpf.Tracer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.tracer == nil {
		return nil, errors.Join(ErrClosed, s.err)
	}
	s.used++
	return s.tracer, nil
}

// end ends the use by one command.
func (s *sessionTracing) end() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used--
	return s.releaseUnused()
}

// close ends the session's use: what has been killed may live a moment longer.
func (s *sessionTracing) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	return s.releaseUnused()
}

func (s *sessionTracing) releaseUnused() error {
	if !s.closed || s.used > 0 || s.tracer == nil {
		return nil
	}
	s.tracer = nil
	return sharedTracer.release()
}

// tracedCommand is the tracing of one command.
type tracedCommand struct {
	launch          *launch
	trace           *bpf.Trace
	root, namespace *os.File // what the sandbox sees of the file system
	told            toldRefusals

	mu    sync.Mutex // of what follows
	names changedNames
	work  pastWork
	aside []*refusedCall // by time
	again *time.Timer    // nil while nothing is set aside
}

// armTracer begins the tracing of a sandbox that has its namespaces and no command yet. A command that cannot be traced
// runs all the same: nothing holds it less.
func (l *launch) armTracer(process *ns.Prepared) {
	if l.watch != watchTraced {
		return
	}
	if err := l.beginTrace(process); err != nil {
		l.watchNothing(errors.Join(err, l.endTrace()))
	}
}

func (l *launch) beginTrace(process *ns.Prepared) error {
	s := l.cmd.sandbox
	tracer, err := s.tracing.begin()
	if err != nil {
		return err
	}
	c := &tracedCommand{launch: l}
	l.traced = c
	if c.root, c.namespace, err = process.View(); err != nil {
		return err
	}
	namespace, err := process.UserNamespace()
	if err != nil {
		return err
	}
	defer namespace.Close()
	c.trace, err = tracer.Trace(namespace, bpf.TraceOptions{Reads: s.opts.monitor == MonitorAll, Hides: hidesSomething(l.plan)}, c.tell)
	return err
}

// hidesSomething tells whether a call can be refused by not finding what it is about.
func hidesSomething(plan *fsview.Plan) bool {
	for i := range plan.Steps {
		switch plan.Steps[i].Kind {
		case fsview.HideDir, fsview.HideFile, fsview.EmptyDir:
			return true
		}
	}
	return false
}

// endTrace ends the tracing, once everything that was refused has been reported. The sandbox has ended, or never began.
func (l *launch) endTrace() error {
	c, s := l.traced, l.cmd.sandbox
	if c == nil {
		return nil
	}
	l.traced = nil
	var err error
	if c.trace != nil {
		var lost uint64
		if lost, err = c.trace.Close(); lost > 0 {
			s.noteLost(lost)
		}
		c.lookAgain(true)
	}
	for _, f := range []*os.File{c.root, c.namespace} {
		if f != nil {
			f.Close()
		}
	}
	return errors.Join(err, s.tracing.end())
}

// monotonicNow is the clock that the kernel's programs read.
func monotonicNow() time.Duration {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		return 0
	}
	return time.Duration(now.Nano())
}

// wallTime is when something was, by the time of day.
func wallTime(monotonic time.Duration) time.Time { return time.Now().Add(monotonic - monotonicNow()) }

// refusing notes what the broker refuses and reports, before the caller gets its answer: the kernel's own report of the same
// call comes after that. It is nil where nobody else reports.
func (l *launch) refusing() func(broker.Denial) {
	c := l.traced
	if c == nil {
		return nil
	}
	return func(d broker.Denial) {
		if d.Err == nil {
			c.told.note(d.PID, d.Call, monotonicNow())
		}
	}
}

// toldRefusals are the calls that the broker has refused and reported. A thread makes one call at a time: the refused call
// that a thread returns from next is the one that the broker refused last. All methods are safe for concurrent use.
type toldRefusals struct {
	mu      sync.Mutex
	threads map[int][]toldRefusal
}

type toldRefusal struct {
	call string
	at   time.Duration
}

// How much is remembered of refusals that the kernel has not reported, and may never: of one thread, and of how many. What is
// forgotten may be reported twice.
const (
	maxToldCalls   = 1024
	maxToldThreads = 4096
)

func (t *toldRefusals) note(thread int, call string, at time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	list, known := t.threads[thread]
	if !known && len(t.threads) >= maxToldThreads || t.threads == nil {
		t.threads = map[int][]toldRefusal{}
	}
	if len(list) >= maxToldCalls {
		list = list[1:]
	}
	t.threads[thread] = append(list, toldRefusal{call, at})
}

// has tells whether a call that returned at a time is one that was told, and forgets it and all before it.
func (t *toldRefusals) has(thread int, call string, at time.Duration) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	list := t.threads[thread]
	last := -1
	for i := range list {
		if list[i].at <= at {
			last = i
		}
	}
	if last < 0 {
		return false
	}
	same := list[last].call == call
	if list = list[last+1:]; len(list) == 0 {
		delete(t.threads, thread)
	} else {
		t.threads[thread] = list
	}
	return same
}
