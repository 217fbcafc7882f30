package pause

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// hiding is the program that a helper runs below itself, on a /proc that hides what is not the helper's (hidepid).
const hiding = "SRT_PAUSE_TEST_HIDING"

// helpHiding is the helper: it says whether all below a shell can be stopped.
func helpHiding(program string) error {
	cmd := exec.Command("sh", "-c", `"$0" 1000 & echo ready; wait`, program)
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	if _, err := io.ReadFull(out, make([]byte, len("ready\n"))); err != nil {
		return err
	}
	time.Sleep(200 * time.Millisecond) // until it is executed, which changes who may see it
	root, err := Identify(cmd.Process.Pid)
	if err != nil {
		return err
	}
	p, err := Below(root)
	if err == nil {
		fmt.Println("stopped", len(p.held))
		return errors.Join(p.StoodStill(), p.Resume())
	}
	fmt.Println("hidden", errors.Is(err, ErrHidden), err)
	return nil
}

// A process that /proc does not show is not taken for none: a program that its user may execute and not read is one of that
// user's all the same (proc(5), hidepid).
func TestBelow_WhatIsHiddenIsNotTakenForNothing(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("got an ordinary user, want root: to mount a /proc that hides processes")
	}
	sleep, err := exec.LookPath("sleep")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(sleep)
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "srt-pause-") // t.TempDir is the root's alone
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, file := range []struct {
		name string
		text []byte
		mode os.FileMode
	}{{"readable/sleep", text, 0o755}, {"unreadable/sleep", text, 0o711}, {"helper/helper", self, 0o755}} {
		path := filepath.Join(dir, file.name)
		if err := errors.Join(os.Mkdir(filepath.Dir(path), 0o755), os.WriteFile(path, file.text, file.mode)); err != nil {
			t.Fatal(err)
		}
	}
	for _, tc := range []struct{ option, program, want string }{
		{"hidepid=0", "unreadable", "stopped 1"},
		{"hidepid=1", "readable", "stopped 1"},
		{"hidepid=1", "unreadable", "hidden true"},
		{"hidepid=2", "readable", "stopped 1"},
		{"hidepid=2", "unreadable", "hidden true"},
	} {
		t.Run(tc.option+" "+tc.program, func(t *testing.T) {
			cmd := exec.Command("sh", "-c", `mount -t proc -o "$0" proc /proc && exec setpriv --reuid 65534 --regid 65534 --clear-groups "$1"`,
				tc.option, filepath.Join(dir, "helper/helper"))
			cmd.Dir = "/"
			cmd.Env = append(os.Environ(), hiding+"="+filepath.Join(dir, tc.program, "sleep"))
			cmd.SysProcAttr = &unix.SysProcAttr{Unshareflags: unix.CLONE_NEWNS, Pdeathsig: unix.SIGKILL, Setpgid: true}
			out, err := cmd.CombinedOutput()
			_ = unix.Kill(-cmd.Process.Pid, unix.SIGKILL) // the program below it
			if err != nil || !strings.HasPrefix(string(out), tc.want) {
				t.Errorf("%q, %v, want %q", out, err, tc.want)
			}
		})
	}
}
