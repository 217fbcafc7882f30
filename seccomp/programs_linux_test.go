//go:build amd64 || arm64

package seccomp

import (
	"os/exec"
	"strings"
	"testing"
)

// What runs in a sandbox every day runs under every filter at once.
func TestKernel_ProgramsStillWork(t *testing.T) {
	all := []string{"base", "namespaces", "unix"}
	for _, c := range []struct {
		name string
		want string // in the output
		args []string
	}{
		{"fork and exec", "ok", []string{"sh", "-c", "(echo ok) | cat"}},
		{"job in the background", "ok", []string{"bash", "-c", "sleep 0 & wait $!; echo ok"}},
		{"Python threads and posix_spawn", "3 ok", []string{"python3", "-c", `
import threading, subprocess, os
done = []
ts = [threading.Thread(target=lambda: done.append(1)) for _ in range(3)]
[t.start() for t in ts]; [t.join() for t in ts]
pid = os.posix_spawn("/bin/true", ["true"], {}); os.waitpid(pid, 0)
print(len(done), subprocess.check_output(["echo", "ok"], text=True))`}},
		{"Python socket pair", "ok", []string{"python3", "-c", `
import socket
a, b = socket.socketpair(); a.send(b"ok"); print(b.recv(2).decode())`}},
		{"node with a child", "ok", []string{"node", "-e", `
require("child_process").execFile("echo", ["ok"], (e, out) => { if (e) throw e; console.log(out) })`}},
		{"Go tool", "go version", []string{"go", "version"}},
		{"strace of a child", "execve(", []string{"strace", "-f", "-e", "trace=execve", "sh", "-c", "/bin/true; :"}},
		{"strace answers for the kernel", "exited with 0", []string{"strace", "-e", "inject=getppid:retval=77",
			"bash", "-c", "[ $PPID = 77 ] || exit 3"}},
		{"gdb of a child", "exited normally", []string{"gdb", "-q", "-nx", "-batch", "-ex", "run", "/bin/true"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, err := exec.LookPath(c.args[0]); err != nil {
				missing(t, c.args[0], err.Error())
			}
			out, err := confined(t, all, c.args...).CombinedOutput()
			if err != nil || !strings.Contains(string(out), c.want) {
				t.Errorf("got %v, want %q in\n%s", err, c.want, out)
			}
		})
	}
}
