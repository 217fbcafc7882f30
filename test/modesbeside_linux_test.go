package test

import (
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// What settings promise by what they do not mention, in whatever mode: a command does nothing to the processes around it, learns no more
// of them than docs/modes.md says, and shares nothing with them. It is walked like the settings (TestEveryFeatureAndEverySetting).

// beside is what is around a command but files and servers.
type beside struct {
	pid      int
	word     string // in the arguments of that process
	priority int
	hits     atomic.Int64 // of an abstract Unix socket and of a UDP socket
}

// tryBeside tries what no setting grants. $WALK_TOKEN is a variable of srt's that the settings mask, and in the environment of process $OTHER.
const tryBeside = `exec python3 - <<'P'
import ctypes, os, socket
env, n = os.environ, int(os.environ["OTHER"])
def attempt(f):
    try: print(f())
    except Exception as e: print(type(e).__name__)
def environ(pid):
    return [v for v in open("/proc/%s/environ" % pid, "rb").read().split(b"\0") if v.startswith(b"WALK_TOKEN=")]
for pid in filter(str.isdigit, os.listdir("/proc")): attempt(lambda: environ(pid))
attempt(lambda: environ(n))
attempt(lambda: open("/proc/%d/cmdline" % n, "rb").read())
attempt(lambda: os.setpriority(os.PRIO_PROCESS, n, 9))
attempt(lambda: socket.socket(socket.AF_UNIX).connect("\0" + env["ABSTRACT"]))
attempt(lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("127.0.0.1", int(env["UDP"]))))
attempt(lambda: "has the memory" if ctypes.CDLL(None).shmget(int(env["KEY"]), 0, 0) >= 0 else "no memory")
attempt(lambda: os.kill(n, 15))
P`

// surround makes the surroundings, and names them in the environment of srt.
func surround(w *walk) {
	w.beside = &beside{word: "word-" + w.mark}
	cmd := w.command("sh", "-c", "sleep 600; : "+w.beside.word)
	cmd.Dir, cmd.Env = w.dir, append([]string{"WALK_TOKEN=" + w.secret}, w.env...)
	w.must(cmd.Start())
	w.t.Cleanup(func() {
		_ = cmd.Process.Kill() // killLeftovers ends its child
		_ = cmd.Wait()
	})
	w.beside.pid = cmd.Process.Pid
	var err error
	w.beside.priority, err = unix.Getpriority(unix.PRIO_PROCESS, w.beside.pid)
	w.must(err)
	abstract, err := net.Listen("unix", "@walk-"+w.mark)
	w.must(err)
	w.t.Cleanup(func() { abstract.Close() })
	packets, err := net.ListenPacket("udp4", "127.0.0.1:0")
	w.must(err)
	w.t.Cleanup(func() { packets.Close() })
	hits := &w.beside.hits
	go func() {
		for c, err := abstract.Accept(); err == nil; c, err = abstract.Accept() {
			hits.Add(1)
			c.Close()
		}
	}()
	go func() {
		for _, _, err := packets.ReadFrom(make([]byte, 1)); err == nil; _, _, err = packets.ReadFrom(make([]byte, 1)) {
			hits.Add(1)
		}
	}()
	memory, err := unix.SysvShmGet(w.beside.pid, 4096, unix.IPC_CREAT|unix.IPC_EXCL|0o666)
	w.must(err)
	w.t.Cleanup(func() {
		if _, err := unix.SysvShmCtl(memory, unix.IPC_RMID, nil); err != nil {
			w.t.Error(err)
		}
	})
	w.env = append(w.env, "WALK_TOKEN="+w.secret, "OTHER="+strconv.Itoa(w.beside.pid), "KEY="+strconv.Itoa(w.beside.pid), "ABSTRACT=walk-"+w.mark,
		"UDP="+strconv.Itoa(packets.LocalAddr().(*net.UDPAddr).Port))
}

// keepsBeside wants everything around the command as it was, and unknown to it.
func keepsBeside(w *walk, r result) string {
	var broken []string
	add := func(is bool, what string) {
		if is {
			broken = append(broken, what)
		}
	}
	add(strings.Contains(r.stdout, w.secret), "the environment of another process was read")
	add(!w.weak && strings.Contains(r.stdout, w.beside.word), "the arguments of another process were read")
	add(strings.Contains(r.stdout, "has the memory"), "memory of the host was reached")
	add(w.beside.hits.Load() != 0, fmt.Sprintf("%d messages came through", w.beside.hits.Load()))
	priority, err := unix.Getpriority(unix.PRIO_PROCESS, w.beside.pid)
	add(err != nil || priority != w.beside.priority, fmt.Sprintf("the other process has priority %d, %v", priority, err))
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", w.beside.pid))
	add(err != nil || !strings.Contains(string(text), ") S "), fmt.Sprintf("the other process: %s, %v", text, err))
	return strings.Join(broken, "; ")
}
