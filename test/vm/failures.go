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
	{"sid", "seccomp/notify", "TestAvailable_LeavesNothingBehind", "The test took the two descriptors of the Go runtime's poller, opened meanwhile, for " +
		"left behind. It opens the poller first now; these results are older."},
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
