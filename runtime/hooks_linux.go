package runtime

import (
	"errors"
	"os"
	"runtime"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/srt-sandbox/srt/bpf"
	"github.com/srt-sandbox/srt/probe"
)

// nameHooks are a session's hooks in the kernel, which refuse denied names that do not exist (FS-30). They are loaded when
// the first command needs them, since that takes milliseconds, and serve all commands after it. The zero value is ready
// for use; all methods are safe for concurrent use.
type nameHooks struct {
	kernel hookKernel // nil: the real one

	mu       sync.Mutex
	asked    bool
	closed   bool
	used     int // sessions that have not been released
	enforcer hookEnforcer
	err      error // why there is no enforcer
}

// hookKernel is what package bpf offers. Where no kernel takes hooks, tests put another one in its place.
type hookKernel interface {
	supported() error
	load() (hookEnforcer, error)
}

// hookEnforcer is bpf.Enforcer.
type hookEnforcer interface {
	begin(namespace *os.File, report func(bpf.Refusal)) (hookSession, error)
	Links() []*os.File
	Close() error
}

// hookSession is bpf.Session.
type hookSession interface {
	Add([]bpf.Rule) error
	Close() error
}

type thisKernel struct{}

func (thisKernel) supported() error {
	if err := probe.BPF.Withheld(); err != nil {
		return err
	}
	return bpf.Supported()
}

func (thisKernel) load() (hookEnforcer, error) {
	if err := probe.BPF.Withheld(); err != nil {
		return nil, err
	}
	e, err := bpf.Load()
	if err != nil {
		return nil, err
	}
	return thisEnforcer{e}, nil
}

type thisEnforcer struct{ *bpf.Enforcer }

func (e thisEnforcer) begin(namespace *os.File, report func(bpf.Refusal)) (hookSession, error) {
	s, err := e.Session(namespace, report)
	if err != nil {
		return nil, err
	}
	return s, nil
}

func (h *nameHooks) source() hookKernel {
	if h.kernel == nil {
		return thisKernel{}
	}
	return h.kernel
}

// supported tells whether there can be hooks, without loading any.
func (h *nameHooks) supported() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.asked {
		return h.err
	}
	return h.source().supported()
}

// load loads the hooks, unless that was done or tried before, and tells why there are none.
func (h *nameHooks) load() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.asked && !h.closed {
		h.asked = true
		// To be refused costs milliseconds, to ask microseconds.
		if h.err = h.source().supported(); h.err == nil {
			h.enforcer, h.err = h.source().load()
		}
	}
	if h.closed {
		return ErrClosed
	}
	return h.err
}

// armedHooks are the rules of one sandbox in the kernel.
type armedHooks struct {
	hooks   *nameHooks
	session hookSession
	links   []*os.File // copies of what the hooks' life depends on, for the sandbox to hold
}

// arm puts rules in force for the sandbox whose user namespace is given, which stays the caller's. On an error nothing is
// left. The result must be released when the sandbox has ended.
func (h *nameHooks) arm(namespace *os.File, rules []bpf.Rule, report func(bpf.Refusal)) (*armedHooks, error) {
	h.mu.Lock()
	if h.closed || h.enforcer == nil {
		h.mu.Unlock()
		return nil, ErrClosed
	}
	e := h.enforcer
	h.used++
	h.mu.Unlock()
	a := &armedHooks{hooks: h}
	var err error
	if a.links, err = copyFiles(e.Links()); err == nil {
		a.session, err = e.begin(namespace, report)
	}
	if err == nil {
		err = a.session.Add(rules)
	}
	if err != nil {
		return nil, errors.Join(err, a.release())
	}
	return a, nil
}

// closeLinks closes the copies, once the sandbox holds its own.
func (a *armedHooks) closeLinks() {
	for _, f := range a.links {
		f.Close()
	}
	a.links = nil
}

// release takes the rules away. The sandbox has ended.
func (a *armedHooks) release() (err error) {
	a.closeLinks()
	if a.session != nil {
		err = a.session.Close()
	}
	return errors.Join(err, a.hooks.done())
}

// done ends the use of the hooks by one sandbox.
func (h *nameHooks) done() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.used--
	return h.closeUnused()
}

// close takes the hooks away, as soon as no sandbox needs them: what has been killed may live a moment longer.
func (h *nameHooks) close() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	return h.closeUnused()
}

func (h *nameHooks) closeUnused() error {
	if !h.closed || h.used > 0 || h.enforcer == nil {
		return nil
	}
	e := h.enforcer
	h.enforcer = nil
	return e.Close()
}

// copyFiles duplicates descriptors, close-on-exec.
func copyFiles(files []*os.File) (copies []*os.File, err error) {
	for _, f := range files {
		fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
		runtime.KeepAlive(f)
		if err != nil {
			return copies, os.NewSyscallError("fcntl F_DUPFD_CLOEXEC", err)
		}
		copies = append(copies, os.NewFile(uintptr(fd), f.Name()))
	}
	return copies, nil
}
