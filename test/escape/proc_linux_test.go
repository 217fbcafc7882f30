package escape

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// TestEscape_030_FalseProc: CVE-2019-16884. srt does not take a /proc that is none for one, and says so.
func TestEscape_030_FalseProc(t *testing.T) {
	for name, change := range map[string]string{
		"tmpfs": `mount -t tmpfs t /proc`,
		"fake":  `mkdir -p $WORLD/proc/self/fd $WORLD/proc/sys; cp $PROGRAMS/srt $WORLD/proc/self/exe; mount --bind $WORLD/proc /proc`,
	} {
		t.Run(name, func(t *testing.T) {
			each(t, func(t *testing.T, w *world) {
				w.umbrella = change
				w.refused("/proc")
				if got := w.read("out/victim"); got != "untouched\n" {
					t.Errorf("ESCAPE: %q", got)
				}
			})
		})
	}
}

// TestEscape_032_HostProcesses: nothing of a process outside shows in /proc: environment, descriptors, memory, root.
func TestEscape_032_HostProcesses(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		w.env = []string{"SECRET=do-not-tell"}
		w.write("far/secret", "do-not-tell\n")
		other := w.command(ctx, "sh", "-c", "cd $WORLD/far; exec 4< secret; exec sleep 1000")
		w.must(other.Start())
		defer func() { cancel(); _ = other.Wait() }()
		w.env = nil
		w.settings.DenyRead = []string{w.dir + "/far"}
		pid := strconv.Itoa(other.Process.Pid)
		w.loot(`cat /proc/[0-9]*/environ; cat /proc/[0-9]*/cwd/secret; cat /proc/`+pid+`/fd/4 /proc/`+pid+`/environ /proc/`+pid+`/root/$WORLD/far/secret
cat /proc/[0-9]*/task/*/environ /proc/[0-9]*/task/*/cwd/secret; cat /proc/1/environ /proc/1/root/$WORLD/far/secret /proc/1/cwd/../far/secret`, "do-not-tell")
		w.sh(`kill -9 ` + pid + `; kill -9 -1; true`)
		if err := other.Process.Signal(os.Signal(zero)); err != nil {
			t.Errorf("ESCAPE: the process outside is gone: %v", err)
		}
	})
}

// TestEscape_032_FurtherProcMount: another mount of procfs on the host shows nothing either (FS-47).
func TestEscape_032_FurtherProcMount(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		if os.Getuid() != 0 {
			t.Log("only root can mount procfs of the host's processes")
			return
		}
		w.must(mkdirFor(w, w.dir+"/p"))
		w.umbrella = `mount -t proc p $WORLD/p`
		w.loot(`cat $WORLD/p/1/comm $WORLD/p/1/status; ls $WORLD/p | head -30`, "Name:")
	})
}

// TestEscape_033_RuntimeOverwritten: CVE-2019-5736. srt's own program cannot be changed, wherever it lies (FS-51).
func TestEscape_033_RuntimeOverwritten(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		w.must(exec.Command("cp", programs+"/srt", w.work+"/srt").Run())
		w.own(w.work)
		attack := `for f in /proc/self/exe /proc/1/exe /proc/1/root/$WORLD/work/srt srt ../work/srt; do echo pwned > $f; done 2>/dev/null
mv srt away; cp /bin/true new && mv new srt; rm -f srt; chmod 0777 srt; ln srt second && echo pwned > second; dd if=/dev/zero of=srt count=1 conv=notrunc`
		before := w.identities("work/srt")
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		o := w.finish(w.command(ctx, w.work+"/srt", "exec", "-s", w.settingsFile(), "--", "sh", "-c", "echo INSIDE\n"+attack))
		if !strings.HasPrefix(o.out, "INSIDE") {
			t.Fatalf("the attack was not made: %s", o.err)
		}
		if diff := difference(before, w.identities("work/srt")); diff != "" {
			t.Errorf("ESCAPE: %.500s", diff)
		}
	})
}

// TestEscape_034_MaskedProc: where a container masks parts of /proc no fresh one can be had. What the container's own shows of other
// processes is kept from the command (docs/modes.md, mode nested), and nothing else is weaker.
func TestEscape_034_MaskedProc(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		w.umbrella = `mount -t tmpfs -o ro t /proc/scsi 2>/dev/null || mount --bind /dev/null /proc/kallsyms`
		pid := strconv.Itoa(os.Getpid())
		o := w.sh(`cat /proc/` + pid + `/cmdline /proc/` + pid + `/status /proc/self/../` + pid + `/environ; echo pwned > $WORLD/out/victim; echo 1000 > /proc/` + pid + `/oom_score_adj`)
		if o.out != "" {
			t.Errorf("ESCAPE: another process was seen: %.200q", o.out)
		}
		if got := w.read("out/victim"); got != "untouched\n" {
			t.Errorf("ESCAPE: %q", got)
		}
	})
}

// TestEscape_035_KernelSettings: CVE-2022-0492 and CVE-2025-31133. What makes the kernel run something or stop is out of
// reach, of root too.
func TestEscape_035_KernelSettings(t *testing.T) {
	files := []string{"/proc/sys/kernel/core_pattern", "/proc/sys/kernel/modprobe", "/proc/sys/kernel/hotplug", "/proc/sys/vm/overcommit_memory",
		"/proc/sys/kernel/core_pipe_limit", "/proc/sys/fs/file-max", "/proc/sys/kernel/domainname", "/proc/sys/kernel/randomize_va_space"}
	each(t, func(t *testing.T, w *world) {
		before := map[string]string{}
		for _, f := range files {
			b, _ := os.ReadFile(f)
			before[f] = string(b)
		}
		w.sh(`for f in ` + strings.Join(files, " ") + `; do echo 1 > $f; done
echo h > /proc/sysrq-trigger; echo $$ > /proc/sys/kernel/ns_last_pid
for f in /sys/kernel/uevent_helper /sys/fs/cgroup/*/release_agent /sys/kernel/mm/transparent_hugepage/enabled /sys/power/state; do echo x > $f; done
for f in /sys/fs/cgroup /sys/fs/cgroup/*; do mkdir $f/pwned && echo $$ > $f/pwned/cgroup.procs; done
echo ':x:M::x::/bin/true:' > /proc/sys/fs/binfmt_misc/register; mount -t binfmt_misc b /proc/sys/fs/binfmt_misc; true`)
		for _, f := range files {
			if b, _ := os.ReadFile(f); string(b) != before[f] {
				t.Errorf("ESCAPE: %s was %q, is %q", f, before[f], b)
				w.must(os.WriteFile(f, []byte(before[f]), 0))
			}
		}
	})
}

// TestEscape_035_FurtherKernelMount: a mount of sysfs inside a write root does not let root, to whom owner checks there
// mean nothing, change the host's kernel state (FS-47).
func TestEscape_035_FurtherKernelMount(t *testing.T) {
	const file = "/sys/kernel/mm/ksm/sleep_millisecs"
	each(t, func(t *testing.T, w *world) {
		before, err := os.ReadFile(file)
		w.must(err)
		w.must(mkdirFor(w, w.work+"/sys"))
		// Who has no privilege outside may not part /sys from what is mounted in it (mount_namespaces(7)).
		w.umbrella = `mount --bind /sys $WORLD/work/sys 2>/dev/null || mount --rbind /sys $WORLD/work/sys`
		w.sh(`echo 77 > sys/kernel/mm/ksm/sleep_millisecs; ls -R sys/kernel/tracing > got`)
		after, err := os.ReadFile(file)
		w.must(err)
		if string(after) != string(before) {
			t.Errorf("ESCAPE: %s is %q", file, after)
			w.must(os.WriteFile(file, before, 0))
		}
		if strings.Contains(w.read("work/got"), "README") {
			t.Errorf("ESCAPE: what srt hides of /sys shows again")
		}
	})
}

// TestEscape_035_KernelModes: the entries of procfs and sysfs that are not of a process are shared by every mount on
// the machine: a command of root must not change their modes.
func TestEscape_035_KernelModes(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		modes := func() map[string]string {
			argv := []string{programs + "/modes", "fresh"}
			if os.Getuid() != 0 {
				argv = []string{programs + "/modes", "list", "/proc"}
			}
			out, err := exec.Command(argv[0], argv[1:]...).Output()
			w.must(err)
			sys, err := exec.Command(programs+"/modes", "list", "/sys/kernel", "/sys/power", "/sys/devices/system").Output()
			w.must(err)
			all := map[string]string{}
			for line := range strings.Lines(string(out) + string(sys)) {
				path, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
				all[path] = rest
			}
			if len(all) < 50 {
				t.Fatalf("only %d modes: nothing would be noticed", len(all))
			}
			return all
		}
		before := modes()
		o := w.run(programs+"/modes", "take", "/proc", "/sys/kernel", "/sys/power", "/sys/devices/system")
		after := modes()
		if diff := difference(before, after); diff != "" {
			t.Errorf("ESCAPE: %.3000s\n%.300s", diff, o.err)
			restoreModes(before, after)
		}
	})
}

func restoreModes(before, after map[string]string) {
	for path, was := range before {
		if after[path] != was {
			mode, err := strconv.ParseUint(strings.Fields(was)[0], 8, 32)
			if err == nil {
				_ = os.Chmod(path, os.FileMode(mode))
			}
		}
	}
}

// TestEscape_036_Cgroup: CVE-2023-25809. No control group of the host can be made, entered or changed.
func TestEscape_036_Cgroup(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		groups := func() map[string]bool {
			all := map[string]bool{}
			for _, p := range []string{"/sys/fs/cgroup/*", "/sys/fs/cgroup/*/*"} {
				names, _ := filepath.Glob(p)
				for _, n := range names {
					if info, err := os.Stat(n); err == nil && info.IsDir() {
						all[n] = true
					}
				}
			}
			return all
		}
		before := groups()
		r := w.hold(`cat /proc/self/cgroup; for f in /sys/fs/cgroup /sys/fs/cgroup/*; do mkdir $f/pwned; echo $$ > $f/cgroup.procs; echo max > $f/pids.max; done 2>/dev/null
` + script(call{"165", "none", w.work, "cgroup2", 0, 0}) + `; true`)
		for n := range groups() {
			if !before[n] {
				t.Errorf("ESCAPE: %s is new", n)
			}
		}
		self, err := os.ReadFile("/proc/self/cgroup")
		w.must(err)
		theirs, err := os.ReadFile("/proc/" + strconv.Itoa(r.cmd.Process.Pid) + "/cgroup")
		w.must(err)
		for _, pid := range r.pids() {
			its, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cgroup")
			if state := processTable()[pid].state; state == "" || state == "Z" {
				continue // one that has ended is shown in the root groups
			}
			if err == nil && string(its) != string(self) && string(its) != string(theirs) {
				t.Errorf("ESCAPE: process %d is in %s, srt in %s", pid, its, theirs)
			}
		}
	})
}
