package escape

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestEscape_038_SecretsOfTheHelper: CVE-2016-8659. pid 1 is a copy of srt, whose environment and memory hold what the
// command must not see.
func TestEscape_038_SecretsOfTheHelper(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		w.env = []string{"SECRET=do-not-" + "tell"}
		w.settings.Top = map[string]any{"credentials": map[string]any{"envVars": []any{map[string]any{"name": "SECRET", "mode": "deny"}}}}
		w.loot(`env; cat /proc/*/environ; grep -a -o 'do-not-[t]ell' /proc/1/mem; cat /proc/1/task/*/environ; strings -n 8 /proc/1/mem`, "do-not-tell")
	})
}

// TestEscape_051_Capabilities: CVE-2022-29162. What the processes hold, as the host sees it: no capability for a user, a
// short list for root, none of them inheritable or ambient; no_new_privs and the filters are on, for pid 1 too.
func TestEscape_051_Capabilities(t *testing.T) {
	const rootKeeps = 1<<unix.CAP_CHOWN | 1<<unix.CAP_DAC_OVERRIDE | 1<<unix.CAP_FOWNER | 1<<unix.CAP_FSETID | 1<<unix.CAP_KILL |
		1<<unix.CAP_SETGID | 1<<unix.CAP_SETUID | 1<<unix.CAP_NET_BIND_SERVICE
	each(t, func(t *testing.T, w *world) {
		r := w.hold("true")
		pids := r.pids()
		if len(pids) < 2 {
			t.Fatalf("only processes %v", pids)
		}
		for _, pid := range pids {
			status := statusOf(t, pid)
			for field, most := range map[string]uint64{"CapInh": 0, "CapAmb": 0, "CapPrm": rootKeeps, "CapEff": rootKeeps, "CapBnd": rootKeeps} {
				var caps uint64
				if _, err := fmt.Sscanf(status[field], "%x", &caps); err != nil {
					t.Fatal(err)
				}
				if w.who.uid != 0 {
					most = 0
				}
				if caps&^most != 0 {
					t.Errorf("process %d (%s): %s is %x", pid, status["Name"], field, caps)
				}
			}
			filters := "2"
			if status["Name"] == "srt-hand" {
				filters = "0" // it makes the calls that the filters put to the broker, and is held by Landlock
			}
			if status["NoNewPrivs"] != "1" || status["Seccomp"] != filters {
				t.Errorf("process %d (%s): NoNewPrivs %s, Seccomp %s", pid, status["Name"], status["NoNewPrivs"], status["Seccomp"])
			}
		}
	})
}

func statusOf(t *testing.T, pid int) map[string]string {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	fields := map[string]string{}
	for line := range strings.Lines(string(b)) {
		k, v, _ := strings.Cut(line, ":")
		fields[k] = strings.TrimSpace(v)
	}
	return fields
}

// TestEscape_054_SetuidProgram: a set-user-ID program of root's gives nothing: who writes a file is still the user.
func TestEscape_054_SetuidProgram(t *testing.T) {
	if os.Getuid() != 0 {
		t.Log("only root can make the program")
		return
	}
	w := newWorld(t, accounts[1])
	copyProgram(w, "touch", programs+"/attack")
	w.must(os.Chown(w.dir+"/touch", 0, 0))
	w.must(unix.Chmod(w.dir+"/touch", 0o6755))
	create := func(name string) string {
		return `$WORLD/touch ` + strings.TrimPrefix(script(call{unix.SYS_OPENAT, at, name, unix.O_CREAT | unix.O_WRONLY, 0o600}), "$PROGRAMS/attack ")
	}
	w.sh(create("inside"))
	w.outside(create("outside"))
	for name, want := range map[string]uint32{"inside": uint32(w.who.uid), "outside": 0} {
		info, err := os.Stat(filepath.Join(w.work, name))
		w.must(err)
		if got := info.Sys().(*syscall.Stat_t).Uid; got != want {
			t.Errorf("%s: the file belongs to %d, want %d", name, got, want)
		}
	}
}

func copyProgram(w *world, name, from string) {
	w.t.Helper()
	w.must(exec.Command("cp", from, filepath.Join(w.dir, name)).Run())
}

// TestEscape_057_SupervisorKilled: when srt is killed, every process of the sandbox is.
func TestEscape_057_SupervisorKilled(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		r := w.hold(`for i in 1 2 3; do setsid sh -c 'trap "" TERM HUP INT; setsid sleep 1001 & sleep 1002' & done; sleep 0.1`)
		pids := r.pids()
		if len(pids) < 6 {
			t.Fatalf("only processes %v", pids)
		}
		w.must(r.cmd.Process.Kill())
		r.wait()
		if left := gone(pids); left != nil {
			t.Errorf("ESCAPE: processes %v run free", left)
		}
	})
}

// TestEscape_058_CallerKilledAtAnyTime: SIGKILL at a random moment of the start leaves no process and no mount.
func TestEscape_058_CallerKilledAtAnyTime(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		mounts, err := os.ReadFile("/proc/self/mountinfo")
		w.must(err)
		before := w.snapshot("work", "home", "out")
		mark := fmt.Sprintf("3600.%d", os.Getpid())
		path := w.settingsFile()
		ran := 0
		for range 100 {
			cmd := w.command(context.Background(), programs+"/srt", "exec", "-s", path, "--", "sh", "-c", "echo; exec sleep "+mark)
			in, out, err := os.Pipe()
			w.must(err)
			cmd.Stdout = out
			w.must(cmd.Start())
			out.Close()
			time.Sleep(time.Duration(rand.IntN(12000)) * time.Microsecond)
			w.must(cmd.Process.Kill())
			_ = cmd.Wait()
			buf := make([]byte, 16)
			for n, err := 0, error(nil); err == nil; n, err = in.Read(buf) { // until nobody holds the other end
				ran += n
			}
			in.Close()
		}
		if left := gone(marked(mark)); left != nil {
			t.Errorf("ESCAPE: processes %v are left", left)
		}
		if now, err := os.ReadFile("/proc/self/mountinfo"); err != nil || string(now) != string(mounts) {
			t.Errorf("the mounts have changed: %v\n%s", err, now)
		}
		if diff := difference(before, w.snapshot("work", "home", "out")); diff != "" {
			t.Error(diff)
		}
		t.Logf("%d of 100 commands had started", ran)
	})
}

// TestEscape_059_Daemon: what the command leaves behind ends with it, and holds no pipe open.
func TestEscape_059_Daemon(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		mark := fmt.Sprintf("3601.%d", os.Getpid())
		o := w.sh(`(setsid sh -c 'trap "" HUP TERM; (setsid sleep ` + mark + ` &); sleep ` + mark + `' &) ; sleep 0.1; exit 7`)
		if o.code != 7 {
			t.Errorf("status %d", o.code)
		}
		if left := gone(marked("sleep\x00" + mark)); left != nil {
			t.Errorf("ESCAPE: processes %v are left", left)
		}
	})
}

// TestEscape_060_Zombies: orphans are reaped while the command runs.
func TestEscape_060_Zombies(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		r := w.hold(`i=0; while [ $i -lt 200 ]; do (true &); i=$((i+1)); done; sleep 0.1`)
		var zombies []int
		for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
			zombies = zombies[:0]
			table := processTable()
			for _, pid := range r.pids() {
				if table[pid].state == "Z" {
					zombies = append(zombies, pid)
				}
			}
			if len(zombies) == 0 {
				return
			}
		}
		t.Errorf("zombies %v", zombies)
	})
}

// TestEscape_061_ForkBombAndFill: a tree of processes ends with srt, and what fills memory through hidden directories and
// /dev/shm meets an end (FS-32): here that of the number of files.
func TestEscape_061_ForkBombAndFill(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		r := w.hold(`b() { if [ $1 -gt 0 ]; then b $(($1-1)) & b $(($1-1)) & fi; sleep 1003; }; b 6 & sleep 0.5`)
		pids := r.pids()
		w.must(r.cmd.Process.Kill())
		r.wait()
		if left := gone(pids); left != nil || len(pids) < 20 {
			t.Errorf("ESCAPE: of %d processes %v are left", len(pids), left)
		}
		w.write("work/h/f", "hidden\n")
		w.settings.DenyRead = []string{"h"}
		o := w.run("python3", "-c", `import os, errno
print("INSIDE", flush=True)
n = 0
try:
    for d in range(600):
        os.mkdir(f"h/{d}")
        for i in range(600):
            os.mknod(f"h/{d}/{i}"); n += 1
except OSError as e:
    raise SystemExit(e.errno)`)
		if o.code != int(unix.ENOSPC) {
			t.Errorf("status %d, want ENOSPC\n%s", o.code, o.err)
		}
	})
}
