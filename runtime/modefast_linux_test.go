package runtime

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/srt-sandbox/srt/probe"
	"github.com/srt-sandbox/srt/runtime/config"
)

const askedVariable = "SRT_TEST_FEATURES_ASKED"

// TestFullStartAsksNothing: a start in mode full must not pay for probes, so it ends with none of the features that take a
// process having been asked. In a process of its own, since others here ask.
func TestFullStartAsksNothing(t *testing.T) {
	if os.Getenv(askedVariable) == "" {
		cmd := exec.Command("/proc/self/exe", "-test.run=^"+t.Name()+"$", "-test.v")
		cmd.Env = append(os.Environ(), askedVariable+"=1")
		out, err := cmd.CombinedOutput()
		if err != nil || !strings.Contains(string(out), "--- ") {
			t.Errorf("%v: %s", err, out)
		}
		return
	}
	if choice, err := chooseMode(false); err != nil || choice.mode != ModeFull {
		t.Skipf("this system does not give mode full: %v", err)
	}
	s, err := New(t.Context(), config.Default())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.Command(t.Context(), "true").Run(); err != nil {
		t.Fatal(err)
	}
	if fullRefused.Load() {
		t.Skip("this system does not give mode full")
	}
	for _, f := range probe.All() {
		if f.Forks() && f.Asked() {
			t.Errorf("%s was asked", f.Key)
		}
	}
}
