package rlimit_test

import (
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/srt-sandbox/srt/ns/internal/rlimit"
)

// TestOriginalLimit re-executes this test with a soft limit below the hard one. Package syscall raises the limit
// when it initialises; NoFile must tell the one before that.
func TestOriginalLimit(t *testing.T) {
	if want := os.Getenv("RLIMIT_TEST_WANT"); want != "" {
		got, ok := rlimit.NoFile()
		if !ok || strconv.FormatUint(got.Cur, 10) != want {
			t.Fatalf("%d, %v; want %s", got.Cur, ok, want)
		}
		var now syscall.Rlimit
		if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &now); err != nil || now.Cur == got.Cur {
			t.Fatalf("the limit is still %d (%v): this test shows nothing", now.Cur, err)
		}
		return
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("/bin/sh", "-c", "ulimit -Sn 200 && exec "+exe+" -test.run=TestOriginalLimit -test.v")
	cmd.Env = append(os.Environ(), "RLIMIT_TEST_WANT=200")
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "PASS") {
		t.Fatalf("%v\n%s", err, out)
	}
}
