package bpf

import "errors"

// Why names cannot be refused in the kernel, or refused calls not read from it. [Supported], [Load], [TracingSupported] and
// [LoadTracer] answer with one of these inside an [Unsupported].
var (
	// ErrNotLinux: this system has no BPF.
	ErrNotLinux = errors.New("not Linux")
	// ErrNoCapability: the process may not load such programs. It takes CAP_BPF and CAP_PERFMON, or CAP_SYS_ADMIN, in the
	// host's own user namespace (capabilities(7)).
	ErrNoCapability = errors.New("no capability for BPF")
	// ErrOldKernel: reading takes Linux 5.17; before Linux 6.2 a hook is passed over when it has just preempted itself on the same processor (kernel
	// commit 271de525e1d7), which a command can bring about.
	ErrOldKernel = errors.New("the kernel is too old")
	// ErrInactive: the kernel runs no BPF hooks, since "bpf" is not among its active security modules.
	ErrInactive = errors.New("the BPF security module is not active")
	// ErrRefused: the kernel does not take the programs, or does not attach them.
	ErrRefused = errors.New("the kernel refuses the programs")
)

// Errors of rules and sessions.
var (
	// ErrRule is a rule that the programs cannot express. The broker has to enforce it.
	ErrRule = errors.New("no rule for the kernel")
	// ErrMoved is a directory that is no longer what it was when the rule was made.
	ErrMoved = errors.New("not the same directory any more")
	// ErrFull: the rules of all sessions together are more than the programs have room for.
	ErrFull = errors.New("no room for more rules")
	// ErrNamespace is a descriptor that is no user namespace of a sandbox.
	ErrNamespace = errors.New("not the user namespace of a sandbox")
	// ErrClosed is a use after Close.
	ErrClosed = errors.New("closed")
)

// Unsupported says why this process on this host cannot refuse names in the kernel, or read from it what was refused.
type Unsupported struct {
	what   string // is not to be had; empty: the refusing of names
	Reason error  // one of the sentinel errors
	Detail string // what to do, or what was tried; a sentence
	Err    error  // of the kernel; may be nil
}

// Error is a sentence for a person.
func (e *Unsupported) Error() string {
	text := e.what
	if text == "" {
		text = "names cannot be refused in the kernel (BPF LSM)"
	}
	text += ": " + e.Reason.Error()
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text + ". " + e.Detail
}

// Unwrap gives the reason and the kernel's error.
func (e *Unsupported) Unwrap() []error {
	if e.Err == nil {
		return []error{e.Reason}
	}
	return []error{e.Reason, e.Err}
}
