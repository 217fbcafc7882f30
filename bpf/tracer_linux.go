package bpf

import (
	_ "embed" // the object
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

//go:embed programs/trace.o
var traceObject []byte

// Indices into tracerMaps, the maps of programs/trace.h.
const (
	mapTraced = iota
	mapCalls
	mapMisses
	mapScratch
	mapEvents
	mapQuiet
	tracerMapCount
)

const (
	maxTraced  = 4096 // sandboxes at once
	maxCalls   = 512  // numbers of system calls
	maxMisses  = 4096 // of all sandboxes
	eventsSize = 512 << 10
)

// tracerMaps is a table that the compiler lays out: nothing happens at the start of the process.
var tracerMaps = [tracerMapCount]mapSpec{
	mapTraced:  {"traced", kindHash, 4, tracedSize, maxTraced, noPrealloc},
	mapCalls:   {"calls", kindArray, 4, 8, maxCalls, 0},
	mapMisses:  {"misses", kindLRU, missSize, 8, maxMisses, 0},
	mapScratch: {"scratch", kindPercpuArray, 4, eventSize, 1, 0},
	mapEvents:  {"events", kindRingbuf, 0, 0, eventsSize, 0},
	mapQuiet:   {"quiet", kindArray, 4, 4, 1, 0},
}

// Tracer tells what the kernel refuses to the sandboxes of this process, by one program that sees each system call of the
// host as it returns. Safe for concurrent use.
//
// While a sandbox is traced, and for a second after, every system call of the host takes the kernel's longer way through its
// entry code, by more than 100 ns: the kernel knows no tracepoint there for single processes. A process keeps to one Tracer.
type Tracer struct {
	loader load
	prog   *os.File
	calls  []tracedCall
	byCall [maxCalls]uint16 // index into calls, from 1
	level  uint32           // of this process's pid namespace
	exec   uint32           // by which the kernel tells this program from those that it starts
	reader *reader

	mu     sync.Mutex
	closed bool
	link   *os.File    // nil while the program is attached to nothing
	idle   *time.Timer // of the detaching, nil while a sandbox is traced
	traces map[uint64]*Trace
	lastID uint64
}

// linger is for how long the program stays attached without a sandbox. To attach it takes about a millisecond, which one
// command after another should not.
const linger = time.Second

// TracingSupported reports whether this process may trace sandboxes: nil, or an [*Unsupported] with the reason. It leaves
// nothing loaded, and takes microseconds where the answer is no. Safe for concurrent use.
func TracingSupported() error {
	if err := tracingPrerequisites(); err != nil {
		return err
	}
	m, err := createMap(tracerMaps[mapTraced])
	closeAll(m)
	if err != nil {
		return untraced(mapReason(err), "make a map", err)
	}
	return nil
}

func tracingPrerequisites() error {
	switch {
	case !tracedArchitecture:
		return &Unsupported{what: tracing, Reason: ErrOldKernel, Detail: "The programs are for amd64 and arm64."}
	case !capable():
		return &Unsupported{what: tracing, Reason: ErrNoCapability, Detail: "It takes CAP_BPF and CAP_PERFMON, or CAP_SYS_ADMIN, " +
			"outside of any user namespace; the observer needs neither."}
	}
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil {
		return untraced(ErrOldKernel, "tell the version of the kernel", err)
	}
	if release := unix.ByteSliceToString(name.Release[:]); !atLeast(release, 5, 17) {
		return &Unsupported{what: tracing, Reason: ErrOldKernel, Detail: "This is Linux " + release +
			"; before 5.17 the kernel does not fit programs to its own structures."}
	}
	return nil
}

// tracing is what is not to be had, in an Unsupported.
const tracing = "refused system calls cannot be read from the kernel (eBPF)"

func untraced(reason error, step string, err error) error {
	return &Unsupported{what: tracing, Reason: reason, Err: err, Detail: "It failed to " + step + "; the observer does without."}
}

// mapReason tells a lack of rights from everything else: a map takes the same rights as a program.
func mapReason(err error) error {
	if errors.Is(err, unix.EPERM) {
		return ErrNoCapability
	}
	return ErrRefused
}

// LoadTracer loads the program. It takes milliseconds; from the first Trace on the program is asked. Errors are of type *[Unsupported]. The Tracer must be
// closed; where this process is killed, the kernel lets go of everything with its descriptors.
func LoadTracer() (*Tracer, error) {
	if err := tracingPrerequisites(); err != nil {
		return nil, err
	}
	t := &Tracer{traces: map[uint64]*Trace{}, calls: tracedCalls()}
	if err := t.load(); err != nil {
		t.unload()
		return nil, err
	}
	return t, nil
}

func (t *Tracer) load() error {
	object, err := parseObject(traceObject, tracerMaps[:])
	if err != nil {
		return untraced(ErrRefused, "read the programs of this binary", err)
	}
	t.loader = load{license: object.license, maps: make([]*os.File, tracerMapCount)}
	for i, spec := range tracerMaps {
		if t.loader.maps[i], err = createMap(spec); err != nil {
			return untraced(mapReason(err), "make the map "+spec.name, err)
		}
	}
	if t.loader.btf, err = loadBTF(object.btf); err != nil {
		return untraced(ErrRefused, "load the types of the programs", err)
	}
	if err := t.learn(object); err != nil {
		return untraced(ErrRefused, "ask the kernel how it numbers processes", err)
	}
	if err := t.fillCalls(); err != nil {
		return untraced(ErrRefused, "say which system calls are watched", err)
	}
	if t.reader, err = newReader(t.loader.maps[mapEvents], eventsSize, t.deliver); err != nil {
		return untraced(ErrRefused, "read the kernel's buffer", err)
	}
	return t.loadProgram(object)
}

// learn asks what the programs have to know about this process.
func (t *Tracer) learn(object *object) error {
	ctx := make([]byte, 8)
	if err := t.once(object, "self", ctx); err != nil {
		return err
	}
	t.level, t.exec = le.Uint32(ctx), le.Uint32(ctx[4:])
	return nil
}

// once loads a helping program, runs it on ctx, which it may change, and takes it away.
func (t *Tracer) once(object *object, name string, ctx []byte) error {
	l := t.loader
	l.kind, l.flags = progSyscall, flagSleepable
	prog, err := l.program(name, object.programs[name])
	if err != nil {
		return err
	}
	defer prog.Close()
	runtime.LockOSThread() // it is about the thread that asks
	defer runtime.UnlockOSThread()
	return run(prog, ctx)
}

// fillCalls writes the table of calls: the programs know no number of this architecture.
func (t *Tracer) fillCalls() error {
	var keys, values []byte
	for i, c := range t.calls {
		t.byCall[c.number] = uint16(i + 1)
		keys, values = le.AppendUint32(keys, c.number), append(values, c.encode()...)
	}
	return wholeBatch(cmdMapUpdateBatch, t.loader.maps[mapCalls], len(t.calls), keys, values)
}

func (t *Tracer) loadProgram(object *object) error {
	ctx := make([]byte, findSize)
	copy(ctx, "btf_trace_sys_exit")
	if err := t.once(object, "find_type", ctx); err != nil {
		return untraced(ErrRefused, "load a program", err)
	}
	id := int64(le.Uint64(ctx[findName:]))
	if id <= 0 || id >= 1<<32 {
		return untraced(ErrRefused, "find the tracepoint sys_exit", unix.ENOENT)
	}
	l := t.loader
	l.kind, l.attach, l.attachID = progTracing, attachRawTP, uint32(id)
	var err error
	if t.prog, err = l.program("finished", object.programs["finished"]); err != nil {
		return untraced(ErrRefused, "load the program for sys_exit", err)
	}
	closeAll(t.loader.btf)
	t.loader.btf = nil
	return nil
}

// Trace begins to tell of the sandbox whose processes have a user namespace, or one made from it by whatever depth.
// namespace stays the caller's to close. use is called with each refused call, one at a time and on a goroutine of the
// trace's own: it may take its time, and use everything but Close of this trace. What the sandbox changed about names since
// the call returned is in the History of each. It says whether the call was refused for a
// rule: of those that find nothing, what was none is not told again for a while. What a helper of srt does in the sandbox,
// and what happens before a program is executed there, is not told.
//
// Errors: ErrNamespace, ErrFull, ErrClosed, or of the kernel.
func (t *Tracer) Trace(namespace *os.File, o TraceOptions, use func(Refused) bool) (*Trace, error) {
	own, lineage, err := sandboxNamespace(namespace)
	if err != nil {
		return nil, fmt.Errorf("trace a sandbox: %w", err)
	}
	trace := &Trace{t: t, namespace: own, lineage: lineage, use: use, ended: make(chan struct{})}
	trace.queue.ready.L = &trace.queue.mu
	trace.history.settle, trace.history.askGaps = t.settle, func() { t.readGaps(trace) }
	if err := t.begin(trace, o); err != nil {
		own.Close()
		return nil, fmt.Errorf("trace a sandbox: %w", err)
	}
	go trace.serve()
	return trace, nil
}

func (t *Tracer) begin(trace *Trace, o TraceOptions) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return ErrClosed
	}
	for _, other := range t.traces {
		if nested(other.lineage, trace.lineage) {
			return fmt.Errorf("it is traced already, or lies in a sandbox that is or around one: %w", ErrNamespace)
		}
	}
	if len(t.traces) >= maxTraced {
		return fmt.Errorf("%d sandboxes are traced: %w", len(t.traces), ErrFull)
	}
	if err := t.attach(); err != nil {
		return err
	}
	trace.id = t.lastID + 1
	value := tracedValue{id: trace.id, options: o, level: t.level, exec: t.exec}
	if err := element(cmdMapUpdate, t.loader.maps[mapTraced], words(trace.lineage[0]), value.encode()); err != nil {
		t.rest()
		return full(err)
	}
	t.lastID = trace.id
	t.traces[trace.id] = trace
	return nil
}

// attach has the program asked, unless it is already. The caller holds mu.
func (t *Tracer) attach() (err error) {
	if t.idle != nil {
		t.idle.Stop() // if it is under way, it will find a sandbox
		t.idle = nil
	}
	if t.link == nil {
		t.link, err = attach(t.prog, "")
	}
	return err
}

// rest has the program detached when there has been no sandbox for a while. The caller holds mu.
func (t *Tracer) rest() {
	if !t.closed && len(t.traces) == 0 && t.idle == nil {
		t.idle = time.AfterFunc(linger, t.detach)
	}
}

// detach lets the program be asked no more, if no sandbox is traced.
func (t *Tracer) detach() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.traces) == 0 {
		t.idle = nil
		closeAll(t.link)
		t.link = nil
	}
}

// deliver hands a record to its sandbox. The reader calls it, one record at a time.
func (t *Tracer) deliver(record []byte) {
	e, ok := decodeEvent(record)
	if !ok {
		return
	}
	t.mu.Lock()
	trace := t.traces[e.session]
	t.mu.Unlock()
	if trace == nil || e.problems&eventNowhere != 0 && !t.changes(&e) {
		return
	}
	trace.history.noteGaps(e.gaps)
	if t.changes(&e) {
		trace.history.add(t.change(&e))
		return
	}
	if refused, ok := t.refused(&e); ok {
		refused.History, refused.Since = &trace.history, trace.history.end()
		trace.queue.put(queuedRefusal{refused, e.missed()})
	} else {
		trace.queue.drop(1)
	}
}

// Close takes the program away. Traces that are open end without a word.
func (t *Tracer) Close() error {
	t.mu.Lock()
	if t.closed {
		t.mu.Unlock()
		return ErrClosed
	}
	t.closed = true
	if t.idle != nil {
		t.idle.Stop()
	}
	closeAll(t.link)
	t.link = nil
	t.mu.Unlock()
	t.unload()
	return nil
}

func (t *Tracer) unload() {
	closeAll(t.prog)
	if t.reader != nil {
		t.reader.close()
	}
	closeAll(t.loader.maps...)
	closeAll(t.loader.btf)
}
