package ns

import (
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestPrepareWhileTheProgramIsWritten holds what Prepare promises: a program that is written meanwhile is the one that
// runs. Once both took memory of the program at the same time, and a step on a loaded machine found another's data in the
// place of its own. The race detector sees it at the first try.
func TestPrepareWhileTheProgramIsWritten(t *testing.T) {
	for range 20 {
		program := newProgram(t)
		l := minimal(program, "/bin/echo", "whole")
		written := make(chan struct{})
		go func() {
			defer close(written)
			for range 200 {
				status, buffer := program.Buffer(8)
				buffer[0] = 1
				dir := program.Call("open", "/", unix.SYS_OPENAT, Int(unix.AT_FDCWD), program.Str("/"), Int(unix.O_PATH|unix.O_CLOEXEC))
				program.Call("look at", "/", unix.SYS_FACCESSAT2, dir.Arg(), program.Str(""), Int(unix.F_OK), Int(unix.AT_EMPTY_PATH))
				program.Expect("find", "what was written", status, 0, ^uint64(0), 1, unix.EIO)
				program.Close(dir)
			}
		}()
		l.ready = written
		if out, st, err := run(t, l); err != nil || st.Code != 0 || strings.TrimSpace(out) != "whole" {
			t.Fatalf("%q, %v, %v", out, st, err)
		}
	}
}
