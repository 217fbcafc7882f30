package runtime

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/srt-sandbox/srt/runtime/config"
	"github.com/srt-sandbox/srt/runtime/violation"
)

// A source that knows the process by its number alone: it is named (VIO table, comm).
func TestReportNamesTheProcess(t *testing.T) {
	self := filepath.Base(os.Args[0])
	self = self[:min(len(self), 15)]
	for _, tc := range []struct {
		name, given string
		pid         int
		want        string
	}{
		{"known by its number", "", os.Getpid(), self}, {"named by the source", "curl", os.Getpid(), "curl"}, {"unknown", "", 0, ""}, {"gone", "", 1<<22 + 1, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s, err := New(t.Context(), config.Default())
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			s.report(violation.Event{Operation: violation.NetworkOutbound, Target: "a.test:80", PID: tc.pid, Process: tc.given})
			for v := range s.Violations().All() {
				if v.Process != tc.want {
					t.Errorf("%q, want %q", v.Process, tc.want)
				}
			}
			if s.Violations().Len() != 1 {
				t.Error("not reported")
			}
		})
	}
}
