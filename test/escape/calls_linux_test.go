package escape

import (
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// call is one system call of the attacker (testdata/attack/attack.c): its number or command, and its arguments.
type call []any

// ret is the result of an earlier call, counted from 0.
type ret int

// hex is memory with this content.
type hex []byte

// words spells calls as the attacker's arguments.
func words(calls ...call) []string {
	var argv []string
	for i, c := range calls {
		if i > 0 {
			argv = append(argv, ",")
		}
		for at, a := range c {
			switch v := a.(type) {
			case ret:
				argv = append(argv, "$"+strconv.Itoa(int(v)))
			case hex:
				argv = append(argv, "x:"+fmt.Sprintf("%x", []byte(v)))
			case string:
				if at > 0 {
					v = "s:" + v
				}
				argv = append(argv, v)
			default:
				argv = append(argv, fmt.Sprint(v))
			}
		}
	}
	return argv
}

// attack makes system calls in the sandbox and returns how that ended: the status is the errno of the last call.
func (w *world) attack(calls ...call) outcome {
	w.t.Helper()
	return w.run(append([]string{programs + "/attack"}, words(calls...)...)...)
}

// script spells the same for a shell line.
func script(calls ...call) string {
	quoted := []string{"$PROGRAMS/attack"}
	for _, a := range words(calls...) {
		quoted = append(quoted, "'"+strings.ReplaceAll(a, "'", `'\''`)+"'")
	}
	return strings.Join(quoted, " ")
}

// status wants that calls end with one of these errors, as srt's own exit status tells.
func (w *world) status(name string, want []unix.Errno, calls ...call) {
	w.t.Helper()
	o := w.attack(calls...)
	for _, e := range want {
		if o.code == int(e) {
			return
		}
	}
	w.t.Errorf("%s: status %d (%s), want %v\n%s", name, o.code, unix.ErrnoName(unix.Errno(o.code)), want, o.err)
}

func itoa(n int) string { return strconv.Itoa(n) }
