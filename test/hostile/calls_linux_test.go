package hostile

import (
	"testing"

	"github.com/srt-sandbox/srt/test/programs/stage"
)

// TestNET3_WrongPointers: getpeername and getsockopt of captured connections refuse addresses of no memory as the kernel does.
func TestNET3_WrongPointers(t *testing.T) { newWorld(t).pointers(t, "cases 175 differences 0") }

// TestNET3_ProtectedMemory: and they write to no memory that the program may not write to itself.
func TestNET3_ProtectedMemory(t *testing.T) {
	newWorld(t).pointers(t, "cases 100 differences 0", "protected")
}

func (w *world) pointers(t *testing.T, want string, args ...string) {
	stage.Each(t, func(s *stage.Stage) {
		w.silent(s.T, func() {
			wantLines(s.T, w.run(s, rules{Allow: []string{good}}, append([]string{w.dir + "/pointers"}, args...)...), want)
		}, good+":7", good+":6")
	})
}
