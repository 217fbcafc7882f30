package escape

import (
	"context"
	"os"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// TestEscape_027_ReadOnlyIsRecursive: a mount beneath a denied directory is read-only too.
func TestEscape_027_ReadOnlyIsRecursive(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		for _, d := range []string{"work/ro/sub", "out/sub"} {
			w.write(d+"/below", "below\n")
		}
		w.umbrella = `for d in work/ro/sub out/sub; do mount -t tmpfs -o mode=777 t $WORLD/$d; echo untouched > $WORLD/$d/f; chmod 666 $WORLD/$d/f; done`
		w.settings.DenyWrite = []string{"ro"}
		o := w.outside(`$PROGRAMS/srt exec -s ` + w.settingsFile() + ` -- sh -c 'echo INSIDE; echo pwned > ro/sub/f; echo pwned > $WORLD/out/sub/f; echo pwned > ro/sub/new'
cat ro/sub/* $WORLD/out/sub/*`)
		if !strings.HasPrefix(o.out, "INSIDE") {
			t.Fatalf("the attack was not made: %s", o.err)
		}
		if o.out != "INSIDE\nuntouched\nuntouched\n" {
			t.Errorf("ESCAPE: %s", o.out)
		}
	})
}

// TestEscape_028_Propagation: no mount of a sandbox shows on the host, though the host's mounts are shared.
func TestEscape_028_Propagation(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		w.write("work/h/f", "hidden\n")
		w.settings.DenyRead, w.settings.DenyWrite = []string{"h"}, []string{w.out}
		w.umbrella = `mount --make-rshared / 2>/dev/null || true`
		o := w.outside(`cat /proc/self/mountinfo > before
$PROGRAMS/srt exec -s ` + w.settingsFile() + ` -- sh -c 'echo INSIDE > ran; exec sleep 1000' & until [ -s ran ]; do kill -0 $! || exit 1; sleep 0.01; done
cat /proc/self/mountinfo > during; kill -9 $!; wait; cat /proc/self/mountinfo > after`)
		before := w.read("work/before")
		if len(before) < 100 {
			t.Fatalf("no table of mounts: %s", o.err)
		}
		for _, f := range []string{"work/during", "work/after"} {
			if w.read(f) != before {
				t.Errorf("ESCAPE: the host's mounts have changed %s:\n%s", f, w.read(f))
			}
		}
	})
}

// TestEscape_039_NestedNamespacesAllowed: with allowNestedUserNamespaces a command gets mounts of its own, in which what
// srt made read-only or hidden stays so.
func TestEscape_039_NestedNamespacesAllowed(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		if w.who.uid == 0 {
			t.Log("a command of root has not the capability that mapping its id takes (CAP_SETFCAP)")
			return
		}
		w.write("work/a/p", "protected\n")
		w.write("work/h/secret", "top secret\n")
		w.settings.DenyWrite, w.settings.DenyRead = []string{"a/p"}, []string{"h"}
		w.settings.Top = map[string]any{"allowNestedUserNamespaces": true}
		attack := `unshare -Urm sh -c 'id -u > $WORLD/work/nested; W=$WORLD/work
for m in $W/a/p $W/h $W / /proc /dev; do umount $m; umount -l $m; mount -o remount,rw,bind $m; done
mount --bind $W /mnt && umount /mnt/a/p; mount --rbind $W /dev/shm && umount /dev/shm/a/p; umount -l /dev/shm/h
mount --move $W/a/p /mnt; mount -t tmpfs t $W/h; mount -t overlay o -o lowerdir=$W,upperdir=/dev/shm,workdir=/dev/shm /mnt
for f in $W/a/p /mnt/a/p /dev/shm/a/p $WORLD/out/victim; do echo pwned > $f; rm -f $f; done
mv $W/a $W/z && mkdir $W/a && echo pwned > $W/a/p; cat $W/h/secret /mnt/h/secret /dev/shm/h/secret > $W/loot'`
		before := w.identities("work/a", "work/a/p", "out/victim")
		o := w.sh(attack)
		if w.read("work/nested") != "0\n" {
			t.Fatalf("no nested namespaces: %s", o.err)
		}
		if diff := difference(before, w.identities("work/a", "work/a/p", "out/victim")); diff != "" {
			t.Errorf("ESCAPE: %s\n%s", diff, o.err)
		}
		if got := w.read("work/loot"); strings.Contains(got, "top secret") {
			t.Errorf("ESCAPE: %s", got)
		}
	})
}

// pivotAway are the calls that leave every mount behind but a copy of the write root: what keeps a name in place must
// not depend on them.
func pivotAway(w *world) []call {
	const bind = unix.MS_BIND | unix.MS_REC
	uid := "0 " + itoa(w.who.uid) + " 1"
	return []call{{unix.SYS_UNSHARE, nestedNS}, {unix.SYS_OPENAT, at, "/proc/self/uid_map", unix.O_WRONLY, 0}, {unix.SYS_WRITE, ret(1), uid, len(uid)},
		{unix.SYS_MKDIRAT, at, "/dev/shm/x", 0o755}, {unix.SYS_MOUNT, w.work, "/dev/shm/x", "", bind, 0}, {unix.SYS_CHDIR, "/dev/shm/x"},
		{unix.SYS_PIVOT_ROOT, ".", "."}, {unix.SYS_UMOUNT2, ".", unix.MNT_DETACH}, {unix.SYS_CHDIR, "/"},
		{unix.SYS_RENAMEAT2, at, "/a", at, "/z", 0}, {unix.SYS_MKDIRAT, at, "/a", 0o755}, {unix.SYS_OPENAT, at, "/a/p", unix.O_CREAT | unix.O_WRONLY, 0o644}}
}

// TestEscape_039_NestedNamespacesPivot: from a nested mount namespace that has left srt's mounts behind, a protected file
// is still not written. Its directory can be moved there, see knownGaps.
func TestEscape_039_NestedNamespacesPivot(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		if w.who.uid == 0 {
			t.Log("a command of root has not the capability that mapping its id takes (CAP_SETFCAP)")
			return
		}
		w.write("work/a/p", "protected\n")
		w.settings.DenyWrite = []string{"a/p"}
		w.settings.Top = map[string]any{"allowNestedUserNamespaces": true}
		file, err := os.Open(w.work + "/a/p")
		w.must(err)
		defer file.Close()
		calls := append(pivotAway(w), call{unix.SYS_OPENAT, at, "/z/p", unix.O_WRONLY | unix.O_TRUNC, 0}, call{unix.SYS_UNLINKAT, at, "/z/p", 0})
		w.attack(calls...)
		info, err := file.Stat()
		w.must(err)
		if info.Size() != int64(len("protected\n")) || info.Sys().(*syscall.Stat_t).Nlink != 1 {
			t.Errorf("ESCAPE: %v", info)
		}
	})
}

// TestEscape_063_ShellMetacharacters: CVE-2020-17368. Words stay words, in both ways to give a command.
func TestEscape_063_ShellMetacharacters(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		before := w.snapshot("work", "out")
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		for _, word := range []string{"$(touch pwned)", "`touch pwned`", "; touch pwned", "' ; touch pwned; '", "\n touch pwned", "| touch pwned", "\\'; touch pwned", "a&&touch pwned", "-c", "--settings", "$IFS", "*", "~"} {
			for _, way := range [][]string{{"exec", "-s"}, {"--settings"}} {
				argv := append(append([]string{programs + "/srt"}, way...), w.settingsFile(), "--", "printf", "INSIDE %s", word)
				if o := w.finish(w.command(ctx, argv...)); o.out != "INSIDE "+word {
					t.Errorf("%q became %q (%s)", word, o.out, o.err)
				}
			}
		}
		if diff := difference(before, w.snapshot("work", "out")); diff != "" {
			t.Errorf("ESCAPE: %s", diff)
		}
	})
}

// TestEscape_064_Environment: CVE-2021-21261. No variable makes srt itself run something or weakens the policy; those for
// the command's own programs act inside.
func TestEscape_064_Environment(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		w.write("out/hook.sh", "echo pwned > $WORLD/out/victim; echo pwned >> $WORLD/out/ran\n")
		w.must(os.Chmod(w.out+"/hook.sh", 0o755))
		hook := w.out + "/hook.sh"
		w.env = []string{"BASH_ENV=" + hook, "ENV=" + hook, "SHELL=" + hook, "LD_PRELOAD=" + hook, "LD_AUDIT=" + hook, "GODEBUG=http2debug=1",
			"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=core.fsmonitor", "GIT_CONFIG_VALUE_0=" + hook, "GIT_EXTERNAL_DIFF=" + hook,
			"NODE_OPTIONS=--require " + hook, "SRT_SETTINGS=/dev/null", "SANDBOX_RUNTIME=1", "SRT_DISABLED=1", "PYTHONSTARTUP=" + hook}
		before := w.snapshot("out")
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		o := w.finish(w.command(ctx, programs+"/srt", "-s", w.settingsFile(), "-c", "echo INSIDE; bash -c true; sh -ic true; echo pwned > "+w.out+"/victim"))
		if !strings.Contains(o.out, "INSIDE") {
			t.Fatalf("the attack was not made: %s", o.err)
		}
		if diff := difference(before, w.snapshot("out")); diff != "" {
			t.Errorf("ESCAPE: %s", diff)
		}
	})
}

// TestEscape_065_TemporaryDirectory: CVE-2019-12439. A directory for temporary files that is a link or somebody else's
// is not used.
func TestEscape_065_TemporaryDirectory(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		w.link(w.out, "tmp")
		w.env = []string{"CLAUDE_CODE_TMPDIR=" + w.dir + "/tmp"}
		before := w.snapshot("out")
		o := w.sh(`echo "$TMPDIR"; echo pwned > "$TMPDIR/pwned-$$"; rm -f "$TMPDIR/pwned-$$"; echo pwned > $WORLD/tmp/victim; mktemp -p $WORLD/tmp`)
		if strings.Contains(o.out, w.dir) {
			t.Errorf("TMPDIR is %s", o.out)
		}
		if diff := difference(before, w.snapshot("out")); diff != "" {
			t.Errorf("ESCAPE: %s", diff)
		}
	})
}

// TestEscape_066_SettingsRewritten: CVE-2026-25725. The settings file in use cannot be changed for the next run, wherever
// it lies (FS-51).
func TestEscape_066_SettingsRewritten(t *testing.T) {
	attack := `for f in settings.json conf/../settings.json; do echo '{}' > $f; rm -f $f; mv $f away; echo '{}' > new; mv -f new $f; ln $f second && echo x > second; chmod 0666 $f; done
cd ..; mv work away && mkdir work && echo '{}' > work/settings.json`
	each(t, func(t *testing.T, w *world) {
		path := w.settingsFile()
		w.must(os.Rename(path, w.work+"/settings.json"))
		w.own(w.work)
		before := w.identities("work", "work/settings.json")
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		o := w.finish(w.command(ctx, programs+"/srt", "exec", "-s", "settings.json", "--", "sh", "-c", "echo INSIDE\n"+attack))
		if !strings.HasPrefix(o.out, "INSIDE") {
			t.Fatalf("the attack was not made: %s", o.err)
		}
		if diff := difference(before, w.identities("work", "work/settings.json")); diff != "" {
			t.Errorf("ESCAPE: %s", diff)
		}
	})
}

// TestEscape_066_DefaultSettingsRewritten: neither can the default settings file, which the next run may read, while another
// one is in use.
func TestEscape_066_DefaultSettingsRewritten(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		w.write("home/.srt-settings.json", "{}\n")
		w.settings.AllowWrite = []string{".", w.home}
		w.holds(`cd; f=.srt-settings.json; echo '{ }' > $f; rm -f $f; mv $f away; echo '{ }' > new; mv -f new $f; ln $f second && echo x > second
cd ..; mv home away && mkdir home && echo '{}' > home/$f`, "home/.srt-settings.json")
	})
}

// TestEscape_066_DefaultSettingsPlanted: where there is none, none can be made for the next run.
func TestEscape_066_DefaultSettingsPlanted(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		w.settings.AllowWrite = []string{".", w.home}
		attack := `cd; f=.srt-settings.json; echo '{ }' > new; mv new $f; ln new $f; ln -s new $f; mkdir $f; echo '{ }' > $f; true`
		const planted = "/home/.srt-settings.json"
		w.sh(attack)
		if got := describe(w.dir + planted); got != "error: no such file or directory" {
			t.Errorf("ESCAPE: %s", got)
		}
		w.outside(attack)
		if got := describe(w.dir + planted); got == "error: no such file or directory" {
			t.Error("the attack makes nothing outside a sandbox either")
		}
	})
}

// TestEscape_072_NoNamespacesNoCommand: where a namespace cannot be made, as inside a sandbox, nothing runs.
func TestEscape_072_NoNamespacesNoCommand(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		settings := w.settingsFile()
		o := w.sh(`$PROGRAMS/srt exec -s ` + settings + ` -- sh -c 'echo pwned > ran'; echo $? > status; $PROGRAMS/srt -s ` + settings + ` -c 'echo pwned > ran'`)
		if got := w.read("work/ran"); !strings.HasPrefix(got, "no file") {
			t.Errorf("the command ran without namespaces of its own: %q\n%s", got, o.err)
		}
		if w.read("work/status") == "0\n" {
			t.Error("srt reports success")
		}
	})
}
