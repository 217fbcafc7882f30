//go:build amd64

package seccomp

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

// A process that makes one call through the 32-bit gate. It must not reach the end.
const int80 = `
#include <stdio.h>
int main(void) {
	long r = 20; /* getpid, in the 32-bit table */
	__asm__ volatile("int $0x80" : "+a"(r) : : "memory");
	printf("pid %ld\n", r);
	return 0;
}
`

func TestKernel_ForeignArchitectureIsKilled_NET82(t *testing.T) {
	helper := compile(t, "int80", int80)
	if out, err := exec.Command(helper).Output(); err != nil {
		t.Skipf("want a kernel with 32-bit emulation, got: %v %s (the simulator covers the rule)", err, out)
	}
	for _, filter := range filterNames {
		if filter == "observe-all" {
			continue // without a listener nothing can be executed under it; what it says is what observe-writes does
		}
		if got := killed(t, confined(t, []string{filter}, helper)); got != syscall.SIGSYS {
			t.Errorf("%s: int 0x80 ended with signal %d, want SIGSYS", filter, got)
		}
	}
}

func TestKernel_X32IsKilled_NET82(t *testing.T) {
	for _, filter := range filterNames {
		text, err := json.Marshal([]call{{Name: "x32 getppid", Number: 0x40000000 | 110}})
		if err != nil {
			t.Fatal(err)
		}
		cmd := confined(t, []string{filter})
		cmd.Env = append(cmd.Env, envCalls+"="+string(text))
		if got := killed(t, cmd); got != syscall.SIGSYS {
			t.Errorf("%s: an x32 call ended with signal %d, want SIGSYS", filter, got)
		}
	}
}

// compile returns the path of a static C program made from text: one that opens nothing before main.
func compile(t *testing.T, name, text string) string {
	t.Helper()
	folder := t.TempDir()
	source, program := filepath.Join(folder, name+".c"), filepath.Join(folder, name)
	if err := os.WriteFile(source, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("gcc", "-static", "-o", program, source).CombinedOutput(); err != nil {
		missing(t, "gcc", err.Error()+"\n"+string(out))
	}
	return program
}

// killed runs a confined command and says which signal ended it, or 0.
func killed(t *testing.T, cmd *exec.Cmd) syscall.Signal {
	t.Helper()
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	t.Logf("%v: %s", err, out)
	if status := cmd.ProcessState.Sys().(syscall.WaitStatus); status.Signaled() {
		return status.Signal()
	}
	return 0
}
