package test

import (
	"crypto/rand"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// Mode nested: the surroundings mask parts of their /proc as container runtimes do, so that no fresh one can be mounted.

// mask is what makes a mount namespace such surroundings: a directory covered, /proc/sys read-only (OCI runtime specification,
// config-linux.md, masked and read-only paths).
const mask = `mount -t tmpfs -o ro none /proc/driver && mount --bind /proc/sys /proc/sys && mount -o remount,bind,ro /proc/sys || exit 99
`

// within prepares a program of the account in a mount namespace in which a shell script has been run first, as root. Where
// nobody is root it is one of the account's own, in which it shows as root.
func (b *box) within(script string, args ...string) *exec.Cmd {
	b.t.Helper()
	need(b.t, "unshare", "setpriv")
	line := []string{"unshare", "-m", "--propagation", "private", "sh", "-c"}
	drop := `exec setpriv --reuid ` + strconv.Itoa(b.who.uid) + ` --regid ` + strconv.Itoa(b.who.gid) + ` --clear-groups -- "$@"`
	if os.Getuid() != 0 {
		line, drop = append([]string{"unshare", "-Ur"}, line[1:]...), `exec "$@"`
	}
	cmd := b.command(append(append(line, script+drop, "sh"), args...)...)
	cmd.SysProcAttr.Credential = nil
	return cmd
}

// masked runs a program of the account in such surroundings.
func (b *box) masked(args ...string) result {
	b.t.Helper()
	return b.finish(b.within(mask, args...))
}

// other starts a process of the account outside of any sandbox, and gives its number and a word in its arguments.
func (b *box) other() (pid int, word string) {
	b.t.Helper()
	word = "other" + rand.Text()
	cmd := b.command("sh", "-c", "sleep 600; : "+word)
	cmd.Dir = b.dir
	b.must(cmd.Start())
	b.t.Cleanup(func() {
		_ = cmd.Process.Kill() // killLeftovers ends its child
		_ = cmd.Wait()
	})
	return cmd.Process.Pid, word
}

// lookAround prints what it can open of any process but those of the sandbox, and tries to change something through one.
const lookAround = `
n=$1
for f in cmdline status stat comm statm environ maps limits cgroup mountinfo wchan oom_score_adj net/tcp task/$n/cmdline ""; do
	cat /proc/$n/$f 2>&1; ls -a /proc/$n/$f/ 2>&1
done
cd /proc/$n 2>/dev/null && { cat cmdline; cat ./task/../status; ls -a; cd /; }
for l in exe cwd root fd/0 ns/pid; do readlink /proc/$n/$l; cat /proc/$n/$l/etc/passwd; done 2>&1
python3 - $n <<'P'
import os, sys
n = sys.argv[1]
try:
    d = os.open("/proc/" + n, os.O_PATH)
    for how in (lambda: os.open("cmdline", os.O_RDONLY, dir_fd=d), lambda: os.open("/proc/self/fd/%d/cmdline" % d, os.O_RDONLY), lambda: os.open("/proc/self/fd/%d" % os.open("/proc/" + n + "/cmdline", os.O_PATH), os.O_RDONLY)):
        try: print("RE" + "AD", os.read(how(), 1000))
        except OSError as e: print(e.errno)
except OSError as e: print(e.errno)
P
touch /proc/$n/cwd/made /proc/$n/root$2/made; mkdir /proc/$n/cwd/dir; ln -s x /proc/$n/cwd/link; mv /etc/hostname /proc/$n/cwd/
echo 500 > /proc/$n/oom_score_adj; chmod 777 /proc/$n/cwd
kill $n
for p in /proc/[0-9]*; do cat $p/cmdline $p/status; done 2>/dev/null
true`

// TestNested_ForeignProcesses: of the processes around the sandbox no more than the number is to be learnt, and nothing can be done
// through them.
func TestNested_ForeignProcesses(t *testing.T) {
	need(t, "python3")
	each(t, func(t *testing.T, b *box) {
		pid, word := b.other()
		before, err := os.ReadFile(fmt.Sprintf("/proc/%d/oom_score_adj", pid))
		b.must(err)
		for _, c := range []cfg{{aw: list{b.work}}, {aw: list{b.work}, dr: list{b.dir + "/**/none"}}, {aw: list{b.work}, top: object{"allowNestedUserNamespaces": true}}} {
			r := b.masked(b.srt(c, "sh", "-c", lookAround, "sh", strconv.Itoa(pid), b.dir)...).ok()
			if strings.Contains(r.stdout+r.stderr, word) || strings.Contains(r.stdout, "Name:\tsleep") || strings.Contains(r.stdout, "READ") {
				t.Errorf("the command has seen another process: %v", r)
			}
			if !strings.Contains(r.stdout, "Name:\tsrt-init") {
				t.Errorf("the command does not see those of its own: %v", r)
			}
		}
		for _, name := range []string{"made", "dir", "link", "hostname"} {
			b.absent(b.dir + "/" + name)
		}
		if after, err := os.ReadFile(fmt.Sprintf("/proc/%d/oom_score_adj", pid)); err != nil || string(after) != string(before) {
			t.Errorf("the other process was changed: %s, %v; before %s", after, err, before)
		}
	})
}

// TestNested_OthersCannotBeChanged: where a command may make namespaces it writes id maps in the surrounding /proc, and there nothing
// of other processes, whatever the settings let it see: the kernel lets the same user raise the oom_score_adj of each.
func TestNested_OthersCannotBeChanged(t *testing.T) {
	each(t, func(t *testing.T, b *box) {
		pid, word := b.other()
		for _, top := range []object{{"enableWeakerNestedSandbox": true}, {"allowNestedUserNamespaces": true}, {"allowNestedUserNamespaces": true, "enableWeakerNestedSandbox": true}} {
			r := b.masked(b.srt(cfg{top: top}, "sh", "-c", `for f in oom_score_adj coredump_filter autogroup timerslack_ns clear_refs comm; do
for n in $0 self/../$0 $0/task/$0; do echo 500 > /proc/$n/$f; done; (cd /proc/$0 && echo 500 > $f); done
mount --bind /proc/$0/oom_score_adj /mnt && echo 500 > /mnt; cat /proc/$0/cmdline; true`, strconv.Itoa(pid))...).ok()
			if got, err := os.ReadFile(fmt.Sprintf("/proc/%d/oom_score_adj", pid)); err != nil || string(got) == "500\n" {
				t.Errorf("%v: the other process was changed: %s, %v", top, got, err)
			}
			if seen := strings.Contains(r.stdout, word); seen && top["allowNestedUserNamespaces"] != nil {
				t.Errorf("%v: the command has seen another process: %v", top, r)
			}
		}
	})
}

// TestNested_OwnProcesses: programs find themselves and their children, by /proc/self, by their own number, and by listing.
func TestNested_OwnProcesses(t *testing.T) {
	need(t, "pgrep", "top", "python3")
	each(t, func(t *testing.T, b *box) {
		b.masked(b.srt(cfg{}, "bash", "-c", `exec < /dev/null; sleep 77 & top -bn1 | grep -q sleep && pgrep -x sleep > /dev/null && grep -q "^Name:.grep" /proc/self/status &&
			read -r a b c < /proc/$$/stat && [ "$b" = "(bash)" ] && read -r a < /proc/self/task/*/comm && [ "$a" = bash ] && head -c 5 /proc/self/environ > /dev/null &&
			[ -r /proc/self/maps ] && ls /proc/self/fd/ > /dev/null && echo all`)...).ok().prints("all")
		// What is opened with flags that are judged before opening.
		b.masked(b.srt(cfg{}, "python3", "-c", `import os
for flags in (os.O_RDONLY, os.O_RDONLY | os.O_CREAT, os.O_RDONLY | os.O_NOFOLLOW):
    for path in ("/proc/self/stat", "/proc/thread-self/stat", "/proc/%d/stat" % os.getpid()):
        text = os.read(os.open(path, flags), 4000).decode()
        assert text.split()[1].startswith("(python3"), (path, text)
print("self")`)...).ok().prints("self")
	})
}

// TestNested_Weaker: with enableWeakerNestedSandbox the container's processes are seen, and no more: nothing can be reached through
// them. Without it and without a broker nothing runs.
func TestNested_Weaker(t *testing.T) {
	each(t, func(t *testing.T, b *box) {
		pid, word := b.other()
		weaker := cfg{aw: list{b.work}, top: object{"enableWeakerNestedSandbox": true}}
		r := b.masked(b.srt(weaker, "sh", "-c", lookAround, "sh", strconv.Itoa(pid), b.dir)...).ok()
		if !strings.Contains(r.stdout, word) {
			t.Errorf("the guard is there in spite of the setting: %v", r)
		}
		for _, name := range []string{"made", "dir", "link", "hostname"} {
			b.absent(b.dir + "/" + name)
		}
		b.masked(b.srt(weaker, "python3", "-c", `print(open("/proc/self/stat", "a+").name)`)...).fails() // read-only as a whole
		blind := append([]string{"env", "SRT_WITHOUT=notify"}, b.srt(cfg{}, "true")...)
		b.masked(blind...).fails().says("enableWeakerNestedSandbox")
		b.masked(append([]string{"env", "SRT_WITHOUT=notify"}, b.srt(cfg{top: object{"enableWeakerNestedSandbox": true}}, "echo", "runs")...)...).ok().prints("runs")
	})
}

// TestNested_Locks: the table of file locks tells of those around the sandbox, unless it is the sandbox's own.
func TestNested_Locks(t *testing.T) {
	each(t, func(t *testing.T, b *box) {
		b.masked(b.srt(cfg{}, "sh", "-c", "cat /proc/locks 2>/dev/null; true")...).ok().prints("")
	})
}

// TestNested_Surroundings runs srt where less than usual is there: each time with the same guarantees, or not at all.
func TestNested_Surroundings(t *testing.T) {
	inside := `touch in && ! touch ../out 2>/dev/null && ! touch /etc/srt-test 2>/dev/null && cat /proc/self/uid_map > /dev/null && ! readlink /proc/1/exe && echo held`
	for _, s := range []struct {
		name, script string
		refused      string // what is said; empty: it runs
		root         bool   // for root alone
		with         []string
	}{
		{name: "read-only /tmp", script: "mount -t tmpfs -o ro none /tmp || exit 99\n"},
		{name: "noexec /tmp", script: "mount -t tmpfs -o noexec none /tmp || exit 99\n"},
		{name: "no cgroup file systems", script: "mount -t tmpfs -o ro none /sys/fs/cgroup || exit 99\n"},
		{name: "read-only /sys", script: "mount -o remount,bind,ro /sys || exit 99\n"},
		{name: "root without CAP_SETFCAP", root: true, with: []string{"setpriv", "--bounding-set=-setfcap", "--inh-caps=-all"}, refused: "no id can be mapped"},
		{name: "root with nothing but CAP_SETFCAP", root: true, with: []string{"setpriv", "--bounding-set=-all,+setfcap,+dac_override", "--inh-caps=-all"}},
		{name: "root without CAP_SYS_ADMIN", root: true, with: []string{"setpriv", "--bounding-set=-sys_admin", "--inh-caps=-all"}},
		{name: "a user namespace of one id", with: []string{"unshare", "-Ur"}},
		{name: "a user namespace of one id, masked", script: mask, with: []string{"unshare", "-Ur"}},
		{name: "a pid namespace with its own /proc", with: []string{"unshare", "-Urpf", "--mount-proc"}},
	} {
		t.Run(s.name, func(t *testing.T) {
			each(t, func(t *testing.T, b *box) {
				if s.root && !b.who.root() {
					t.Skipf("needs uid 0, have %d; the run as root covers it", b.who.uid)
				}
				// These change /tmp, in which srt and the box lie: both are shown at other places too.
				script := fmt.Sprintf("mount --bind %s /mnt && mount --bind %s /media || exit 99\n%s\ncd /mnt/home/p\n", b.dir, filepath.Dir(srtPath), s.script)
				line := b.srt(cfg{aw: list{"."}}, "sh", "-c", inside)
				line[0], line[2] = "/media/"+filepath.Base(line[0]), "/mnt/"+filepath.Base(line[2])
				r := b.finish(b.within(script, append(append([]string{"env", "HOME=/mnt/home"}, s.with...), line...)...))
				if s.refused != "" {
					r.fails().says(s.refused)
					return
				}
				r.ok().prints("held")
			})
		})
	}
}

// TestNested_OwnNamespaces: where the settings let a command make user namespaces, it maps its id in them though the broker opens
// the files, and mounts there show it no more of the other processes.
func TestNested_OwnNamespaces(t *testing.T) {
	each(t, func(t *testing.T, b *box) {
		pid, word := b.other()
		c := cfg{top: object{"allowNestedUserNamespaces": true}}
		r := b.masked(b.srt(c, "unshare", "-Urm", "sh", "-c", `id -u; mount --rbind /proc /mnt; cat /mnt/$0/cmdline; cat /mnt/self/comm; ls /mnt/$0
mount --bind /proc/$0 /srv; cat /srv/cmdline /srv/status; ls /srv; mount --bind /proc/$0/cmdline /dev/zero; head -c 1000 /dev/zero; true`, fmt.Sprint(pid))...).ok()
		r.prints("0\ncat")
		if strings.Contains(r.stdout, word) {
			t.Errorf("the command has seen another process: %v", r)
		}
	})
}
