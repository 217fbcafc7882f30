package main

import "github.com/srt-sandbox/srt/test/vm/internal/record"

// failure says why tests fail under a kernel, where that is no fault of srt's: the test supposes something that a kernel or the
// emulation does not give, or the kernel is one that srt refuses.
type failure struct {
	Suite   string // of Debian; empty: all
	Package string // empty: all
	Test    string // empty: all
	Why     string
}

var failures = []failure{
	{"bookworm", "bpf", "TestObject_HooksVerify", "The hooks need Linux 6.2, and srt loads them under nothing older (`bpf.Supported`); the test loads them all the same."},
	{"bookworm", "bpf", "TestSupported_Capabilities", "The kernel is too old, which is told before the missing right that the test wants to hear of."},
	{"bookworm", "bpf", "TestTracer_EachCall_VIO10", "`fchmodat2` (6.6), `setxattrat` and `removexattrat` (6.13) are no calls of this kernel, and the test makes them."},
	{"trixie", "bpf", "TestTracer_EachCall_VIO10", "`setxattrat` and `removexattrat` (6.13) are no calls of this kernel, and the test makes them."},
}

// explain gives the reason for a failure, or nothing.
func explain(suite string, t record.Test) string {
	for _, f := range failures {
		if (f.Suite == "" || f.Suite == suite) && (f.Package == "" || f.Package == t.Package) && (f.Test == "" || f.Test == t.Name) {
			return f.Why
		}
	}
	return ""
}
