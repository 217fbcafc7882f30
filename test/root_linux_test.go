package test

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// foreign is an id that owns the checkout root works in, as in a CI container.
const foreign = 4321

// giveAway makes everything beneath the working directory another id's.
func (b *box) giveAway() {
	b.t.Helper()
	b.must(filepath.WalkDir(b.work, func(path string, _ os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, foreign, foreign)
	}))
}

// owner is the owner of a path on the host.
func (b *box) owner(path string) int {
	b.t.Helper()
	var st unix.Stat_t
	b.must(unix.Lstat(b.abs(path), &st))
	return int(st.Uid)
}

func TestRoot_CheckoutOfAnotherOwner(t *testing.T) {
	need(t, "make", "gcc", "git")
	asRoot(t, func(t *testing.T, b *box) {
		b.repository(".")
		b.copyTree("testdata/cproject", ".")
		b.giveAway()
		c := cfg{aw: list{".", b.dir + "/tmp"}}
		b.sh(c, "stat -c %u f").ok().prints(strconv.Itoa(foreign)) // owners look as they are

		// git refuses a repository of another owner inside exactly as outside.
		outside := b.host("git", "status", "--short")
		inside := b.run(c, "git", "status", "--short")
		if outside.status != inside.status || outside.stderr != inside.stderr || outside.status == 0 {
			t.Errorf("outside %v\ninside %v", outside, inside)
		}
		safe := []string{"git", "-c", "safe.directory=*", "add", "-A"}
		b.host("git", "config", "--global", "safe.directory", "*").ok()
		b.run(c, safe...).ok()
		b.run(c, "git", "commit", "-qm", "two").ok()
		b.host("git", "log", "--format=%s").ok().prints("two\none")

		b.run(c, "make", "check").ok()
		if got := b.owner("build/tally"); got != 0 {
			t.Errorf("what root builds belongs to %d", got)
		}
		b.run(c, "chown", "-R", "1234:2345", "build").ok()
		if got := b.owner("build/tally"); got != 1234 {
			t.Errorf("chown to a third id gives %d", got)
		}
		b.sh(c, "chmod 600 f && echo x >>f && install -o 77 -m 4755 f g").ok()
		if got := b.owner("g"); got != 77 {
			t.Errorf("install gives %d", got)
		}
		b.run(c, "setpriv", "--reuid", "1234", "--regid", "2345", "--clear-groups", "id", "-u").ok().prints("1234")
	})
}

func TestGit_safeDirectories(t *testing.T) {
	asRoot(t, func(t *testing.T, b *box) {
		b.repository(".")
		b.giveAway()
		c := cfg{aw: list{"."}, top: object{"git": object{"safeDirectories": list{b.work}}}}
		b.run(c, "git", "log", "--format=%s").ok().prints("one") // NET-93
		b.run(cfg{aw: list{"."}}, "git", "log").fails().says("dubious ownership")
	})
}

// keeps runs a command on the host and wants the same answer at the end of the test.
func (b *box) keeps(args ...string) {
	b.t.Helper()
	before := b.host(args...).ok().stdout
	b.t.Cleanup(func() {
		out, err := exec.Command(args[0], args[1:]...).Output()
		if string(out) != before || err != nil {
			b.t.Errorf("the host's %q was %q, is %q (%v)", args, before, out, err)
		}
	})
}

func TestFS_44_PrivilegesInside(t *testing.T) {
	eachAlong(t, func(t *testing.T, b *box) {
		kept := "0000000000000000"
		if b.who.root() {
			// CHOWN, DAC_OVERRIDE, FOWNER, FSETID, KILL, SETGID, SETUID, NET_BIND_SERVICE (docs/architecture.md).
			kept = "00000000000004fb"
		}
		want := []string{"CapInh:\t0000000000000000", "CapPrm:\t" + kept, "CapEff:\t" + kept, "CapBnd:\t" + kept, "CapAmb:\t0000000000000000",
			"NoNewPrivs:\t1", "Seccomp:\t2"}
		r := b.run(cfg{}, "cat", "/proc/self/status").ok()
		for _, line := range want {
			if !strings.Contains(r.stdout, line+"\n") {
				t.Errorf("want %q; %v", line, r)
			}
		}
		// Pid 1 gives up the rest once it has started the command (docs/architecture.md), which may be a moment later.
		b.sh(cfg{}, "until grep -q '^CapEff:.0000000000000000' /proc/1/status; do :; done; grep -E '^(CapPrm|CapInh|CapAmb)' /proc/1/status").ok().
			prints("CapInh:\t0000000000000000\nCapPrm:\t0000000000000000\nCapAmb:\t0000000000000000")
		b.run(cfg{}, "cat", "/proc/sys/user/max_user_namespaces").ok().prints("0")
		b.check(cfg{aw: list{"."}, fs: object{"disabled": true}}, "mkdev n: EPERM", "hostname: EPERM", "userns: EPERM|ENOSPC")
	})
}

func TestRoot_KernelSettings(t *testing.T) {
	asRoot(t, func(t *testing.T, b *box) {
		settings := []string{"kernel/core_pattern", "kernel/hostname", "kernel/sysrq", "kernel/panic", "kernel/randomize_va_space", "vm/swappiness",
			"vm/overcommit_memory", "fs/protected_symlinks", "net/ipv4/ip_forward", "fs/mount-max", "user/max_user_namespaces"}
		for _, c := range []cfg{{}, {aw: list{"/"}}, {fs: object{"disabled": true}}} {
			var lines []string
			for _, name := range settings {
				path := "/proc/sys/" + name
				before, err := os.ReadFile(path)
				if err != nil {
					continue // this kernel lacks it
				}
				lines = append(lines, "openwrite "+path+": refused", "chmod "+path+": refused")
				t.Cleanup(func() { b.holds(path, string(before)) })
			}
			b.check(c, lines...)
			script := `mount -o remount,rw /proc/sys; umount /proc/sys; echo core >/proc/sys/kernel/core_pattern; sysctl -w kernel.panic=7;
				dmesg -C; hostname other; true`
			b.sh(c, script)
		}
		b.keeps("hostname")
		b.check(cfg{}, "settime: refused", "hostname: refused", "umount /proc/sys: refused", "mount /dev/null /proc/sys/kernel/core_pattern: refused")
	})
}

func TestRoot_KeyringOfTheHost(t *testing.T) {
	asRoot(t, func(t *testing.T, b *box) {
		id, err := unix.AddKey("user", "srt-test-"+b.mark, []byte("secret"), unix.KEY_SPEC_USER_KEYRING)
		if err != nil {
			t.Fatalf("the host has no keyring: %v", err)
		}
		defer unix.KeyctlInt(unix.KEYCTL_UNLINK, id, unix.KEY_SPEC_USER_KEYRING, 0, 0)
		key := strconv.Itoa(id)
		b.check(cfg{}, "searchkey srt-test-"+b.mark+": EPERM", "revokekey "+key+": EPERM", "addkey: EPERM")
		if r := b.sh(cfg{}, "cat /proc/keys /proc/key-users"); strings.Contains(r.stdout, b.mark) {
			t.Errorf("the host's keys show: %v", r)
		}
		buf := make([]byte, 16)
		n, err := unix.KeyctlBuffer(unix.KEYCTL_READ, id, buf, 0)
		if err != nil || string(buf[:max(n, 0)]) != "secret" {
			t.Errorf("the host's key holds %q, %v", buf, err)
		}
	})
}

func TestRoot_IPCOfTheHost(t *testing.T) {
	asRoot(t, func(t *testing.T, b *box) {
		id, err := unix.SysvShmGet(unix.IPC_PRIVATE, 4096, unix.IPC_CREAT|0o666)
		b.must(err)
		defer unix.SysvShmCtl(id, unix.IPC_RMID, nil)
		b.check(cfg{}, "shmstat "+strconv.Itoa(id)+": EINVAL", "shmremove "+strconv.Itoa(id)+": EINVAL")
		b.sh(cfg{}, "ipcrm -m "+strconv.Itoa(id)).fails()
		b.sh(cfg{}, "ipcrm -a; ipcs -m | grep -c '^0x'").fails().prints("0")
		var ds unix.SysvShmDesc
		if _, err := unix.SysvShmCtl(id, unix.IPC_STAT, &ds); err != nil || ds.Segsz != 4096 {
			t.Errorf("the host's segment: %d bytes, %v", ds.Segsz, err)
		}
	})
}

func TestProcessesOfTheHost(t *testing.T) {
	eachAlong(t, func(t *testing.T, b *box) {
		victim := b.command("sleep", "60")
		b.must(victim.Start())
		defer victim.Process.Kill()
		pid := strconv.Itoa(victim.Process.Pid)
		b.check(cfg{}, "kill0 "+pid+": ESRCH", "kill9 "+pid+": ESRCH", "pidfdopen "+pid+": ESRCH", "ptrace "+pid+": ESRCH|EPERM",
			"stat /proc/"+pid+": ENOENT")
		outside, err := os.Readlink("/proc/self/ns/pid")
		b.must(err)
		b.sh(cfg{}, "kill -9 "+pid+`; [ "$(readlink /proc/self/ns/pid)" = "`+outside+`" ] || kill -9 -1`)
		// The first process of the sandbox is not to be had either.
		b.check(cfg{}, "ptrace 1: EPERM", "read /proc/1/environ: EACCES|EPERM", "read /proc/1/mem: EACCES|EPERM", "stat /proc/1/exe: EACCES|EPERM", "list /proc/1/root/: EACCES|EPERM")
		b.sh(cfg{}, "readlink /proc/1/fd/* /proc/1/cwd /proc/1/ns/*").fails().prints("")
		b.must(unix.Kill(victim.Process.Pid, 0))
		if left := b.processes(); len(left) != 1 {
			t.Errorf("running: %q", left)
		}
	})
}

// debRepository builds a package and a flat repository of it, and returns the folder.
func (b *box) debRepository() string {
	b.t.Helper()
	dir, pkg := b.dir+"/repo", b.dir+"/pkg"
	b.file(pkg+"/DEBIAN/control", "Package: srt-sample\nVersion: 1.0\nArchitecture: all\nMaintainer: a <a@example.com>\nDescription: a sample\n")
	b.file(pkg+"/usr/share/srt-sample/f", "content\n")
	b.mkdir(dir, 0o755)
	b.host("dpkg-deb", "--root-owner-group", "-b", pkg, dir+"/srt-sample_1.0_all.deb").ok()
	data, err := os.ReadFile(dir + "/srt-sample_1.0_all.deb")
	b.must(err)
	index := fmt.Sprintf("Package: srt-sample\nVersion: 1.0\nArchitecture: all\nMaintainer: a <a@example.com>\n"+
		"Filename: ./srt-sample_1.0_all.deb\nSize: %d\nSHA256: %x\nDescription: a sample\n\n", len(data), sha256.Sum256(data))
	b.file(dir+"/Packages", index)
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, err = w.Write([]byte(index))
	b.must(err)
	b.must(w.Close())
	b.file(dir+"/Packages.gz", packed.String())
	return dir
}

func TestRoot_AptDownload(t *testing.T) {
	need(t, "apt-get", "dpkg-deb")
	asRoot(t, func(t *testing.T, b *box) {
		repo := b.debRepository()
		server := httptest.NewServer(http.FileServer(http.Dir(repo)))
		defer server.Close()
		byHTTP := strings.Replace(server.URL, "127.0.0.1", "localhost", 1)
		for name, source := range map[string]string{"file": "file:" + repo, "http": byHTTP} {
			// apt changes to the user _apt for its downloads (setgroups, setresuid), with a state of its own here.
			root := b.work + "/" + name
			for _, d := range []string{"lists/partial", "cache/archives/partial", "out"} {
				b.mkdir(root+"/"+d, 0o777)
			}
			b.file(root+"/sources.list", "deb [trusted=yes] "+source+" ./\n")
			b.file(root+"/status", "")
			options := "-o Dir::Etc::sourcelist=" + root + "/sources.list -o Dir::Etc::sourceparts=/dev/null -o Dir::State::lists=" + root + "/lists" +
				" -o Dir::State::status=" + root + "/status -o Dir::Cache=" + root + "/cache -o APT::Sandbox::User=_apt -o Debug::NoLocking=1" +
				" -o Acquire::http::No-Cache=true "
			script := byProxy + "cd out && apt-get " + options + "update && apt-get " + options + "download srt-sample"
			cmd := b.command(b.srt(cfg{aw: list{".", b.dir + "/tmp"}, allow: list{"localhost"}}, "sh", "-c", script)...)
			cmd.Dir = root
			r := b.finish(cmd).ok()
			if strings.Contains(r.stderr, "unsandboxed") || strings.Contains(r.stderr, "E:") {
				t.Errorf("%s: apt could not use its own user: %v", name, r)
			}
			b.host("dpkg-deb", "-c", root+"/out/srt-sample_1.0_all.deb").ok()
		}
		// Off the list apt fails and says why.
		root := b.work + "/http"
		r := b.sh(cfg{aw: list{"."}}, byProxy+"apt-get -o Dir::Etc::sourcelist="+root+"/sources.list -o Dir::Etc::sourceparts=/dev/null -o Dir::State::lists="+
			root+"/lists -o Dir::Cache="+root+"/cache -o Debug::NoLocking=1 update")
		if text := r.stdout + r.stderr; !strings.Contains(text, "403") {
			t.Errorf("apt does not say 403: %v", r)
		}
	})
}
