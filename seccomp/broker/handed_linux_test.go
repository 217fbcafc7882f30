package broker

import (
	"errors"
	"os"
	"os/exec"
	"testing"

	"golang.org/x/sys/unix"
)

func init() { probes["handed"] = func(string) any { return handedProbe() } }

// handedProbe makes programs and runs them, and locks files, closes them and locks them again: what a copy of the
// descriptor that outlives the caller's would keep it from. It gives what failed.
func handedProbe() map[string]int {
	failures := map[string]int{}
	program, err := os.ReadFile("/bin/true")
	if err != nil {
		failures[err.Error()]++
	}
	for range 150 {
		if err := makeAndRun(program); err != nil {
			failures[err.Error()]++
		}
		for range 4 {
			if err := lockOnce(); err != nil {
				failures["lock: "+err.Error()]++
			}
		}
	}
	return failures
}

func makeAndRun(program []byte) error {
	fd, err := unix.Open("prog", unix.O_WRONLY|unix.O_CREAT|unix.O_TRUNC|unix.O_CLOEXEC, 0o700)
	if err != nil {
		return err
	}
	_, err = unix.Write(fd, program)
	unix.Close(fd)
	if err == nil {
		err = exec.Command("./prog").Run()
	}
	return errors.Join(err, unix.Unlink("prog"))
}

func lockOnce() error {
	fd, err := unix.Open("locked", unix.O_RDWR|unix.O_CREAT|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB)
}

// FS-30: what the broker opens for a caller is closed in the hand before the caller goes on. Else a program that has just
// been written could not be executed (ETXTBSY), and a lock would outlive the descriptor that holds it.
func TestHanded_NothingOutlivesTheCallersDescriptor(t *testing.T) {
	for name, judge := range map[string]Judge{"fast": &testJudge{}, "slow": &testJudge{suspect: anything}, "reads": &testJudge{reads: true}} {
		t.Run(name, func(t *testing.T) {
			var got map[string]int
			runSandbox(t, setup{judge: judge, probe: "handed", folder: tempFolder(t)}, &got)
			if len(got) != 0 {
				t.Errorf("failed: %v", got)
			}
		})
	}
}
