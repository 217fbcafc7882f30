package escape

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// Attacks on the broker, which performs the calls that make names where a rule is about a name that does not exist.

// absentScene denies the absent names later and d/later.
func absentScene(w *world) {
	for _, d := range []string{"work/d", "work/good"} {
		w.must(mkdirFor(w, w.dir+"/"+d))
	}
	w.write("work/ready/later", "pwned\n")
	w.write("work/file", "pwned\n")
	w.settings.DenyWrite = []string{"later", "d/later"}
	w.settings.Network = map[string]any{"allowAllUnixSockets": true}
}

// appeared lists which of the denied names are on the host.
func (w *world) appeared() (names []string) {
	for _, n := range []string{"later", "d/later", ".bashrc", ".vscode", ".mcp.json"} {
		if _, err := os.Lstat(w.work + "/" + n); err == nil {
			names = append(names, n)
		}
	}
	return names
}

// neverAppears runs a script in the sandbox and wants no denied name on the host; then without one, where it must make one.
func (w *world) neverAppears(script string) outcome {
	w.t.Helper()
	o := w.sh(script)
	if names := w.appeared(); len(names) > 0 {
		w.t.Errorf("ESCAPE: %q were made\n%s\n%s%s", names, script, o.out, o.err)
		return o
	}
	c := w.outside(script)
	if len(w.appeared()) == 0 {
		w.t.Errorf("the attack makes nothing outside a sandbox either:\n%s\n%s%s", script, c.out, c.err)
	}
	return o
}

// rulesOfJudges are settings under which the same calls take other ways through the broker.
var rulesOfJudges = map[string]func(*settings){
	"names":    func(*settings) {},
	"patterns": func(s *settings) { s.DenyWrite = append(s.DenyWrite, "nowhere/*", "**/d/later") },
	"reads":    func(s *settings) { s.DenyRead = []string{"elsewhere", "nowhere/**"} },
}

// TestEscape_055_ArgumentsFlipped: a call is judged by its path and then done by a path that has changed meanwhile: in
// memory, by links, by directories and descriptors that are exchanged.
func TestEscape_055_ArgumentsFlipped(t *testing.T) {
	modes := []string{"open", "mkdir", "mknod", "symlink", "link", "rename", "openat2", "creat", "bind", "how", "follow", "final", "cwd", "table", "moved"}
	for rules, change := range rulesOfJudges {
		t.Run(rules, func(t *testing.T) {
			for _, mode := range modes {
				t.Run(mode, func(t *testing.T) {
					each(t, func(t *testing.T, w *world) {
						absentScene(w)
						change(&w.settings)
						o := w.neverAppears("$PROGRAMS/race " + mode)
						if !strings.Contains(o.out, "DONE") {
							t.Errorf("the attacker was held up: %s%s", o.out, o.err)
						}
					})
				})
			}
		})
	}
}

// TestEscape_055_NameBySpelling: the name that is denied, spelled in every way that leads to it.
func TestEscape_055_NameBySpelling(t *testing.T) {
	create := unix.O_CREAT | unix.O_WRONLY
	how := func(flags, mode, resolve byte) hex {
		return hex(append(append([]byte{flags, 0, 0, 0, 0, 0, 0, 0, mode, 1, 0, 0, 0, 0, 0, 0}, resolve), make([]byte, 7)...))
	}
	openD := call{unix.SYS_OPENAT, at, "d", unix.O_PATH | unix.O_DIRECTORY, 0}
	openat2 := func(dir any, path string, resolve byte) call {
		return call{unix.SYS_OPENAT2, dir, path, how(unix.O_CREAT|unix.O_WRONLY, 0o200, resolve), 24}
	}
	attacks := map[string]string{
		"fd of a directory":       script(openD, call{unix.SYS_OPENAT, ret(0), "later", create, 0o644}),
		"proc self fd":            script(openD, call{unix.SYS_OPENAT, at, "/proc/self/fd/3/later", create, 0o644}),
		"proc thread-self fd":     script(openD, call{unix.SYS_OPENAT, at, "/proc/thread-self/fd/3/later", create, 0o644}),
		"dev fd":                  script(openD, call{unix.SYS_OPENAT, at, "/dev/fd/3/later", create, 0o644}),
		"proc pid fd":             `exec 3<d; echo pwned > /proc/$$/fd/3/later; mkdir /proc/$$/fd/3/later; echo pwned > /proc/$$/task/$$/cwd/d/later; touch /proc/$$/root$WORLD/work/later`,
		"proc cwd":                `echo pwned > /proc/self/cwd/d/later; (cd d; mkdir /proc/self/cwd/later)`,
		"proc root":               `echo pwned > /proc/self/root$WORLD/work/d/later; ln file /proc/self/root$WORLD/work/later`,
		"of another process":      `(cd d; sleep 2) & sleep 0.2; echo pwned > /proc/$!/cwd/later; mkdir /proc/$!/cwd/later; mv file /proc/$!/cwd/later; kill $!`,
		"dots":                    `echo pwned > d/./later; echo pwned > d/../d//later; mkdir good/../later; echo pwned > ././/later`,
		"trailing slash":          `mkdir later/; mkdir d/later/; mkdir d/later/.; mkdir d/later//; mv ready d/later/; ln -s good d/later/`,
		"up from below":           `cd good; echo pwned > ../d/later; cd ../ready; mkdir ../later`,
		"link to the directory":   `ln -s d l; ln -s l m; echo pwned > m/later; mkdir l/later; mv file m/later`,
		"link to the name":        `ln -s d/later l; echo pwned > l; ln -s l m; echo pwned > m; touch m; cp file l; dd if=file of=m`,
		"absolute link":           `ln -s $WORLD/work/later l; echo pwned > l; ln -s /proc/self/cwd/d/later m; echo pwned > m; ln -s /proc/self/cwd n; echo pwned > n/d/later`,
		"tree renamed":            `mv -T ready d/later; mv -T ready later; mv ready/ d/later`,
		"tree exchanged":          script(call{unix.SYS_RENAMEAT2, at, "d", at, "ready", unix.RENAME_EXCHANGE}) + `; mv ready/later d/later`,
		"file renamed":            `mv file later; mv file d/later` + "\n" + script(call{unix.SYS_RENAMEAT2, at, "file", at, "d/later", unix.RENAME_NOREPLACE}),
		"whole directory renamed": `mv d away; mv ready d; mkdir d; echo pwned > d/later`,
		"hard link":               `ln file later; ln file d/later` + "\n" + script(call{unix.SYS_OPENAT, at, "file", unix.O_RDONLY, 0}, call{unix.SYS_LINKAT, at, "/proc/self/fd/3", at, "later", unix.AT_SYMLINK_FOLLOW}, call{unix.SYS_LINKAT, ret(0), "", at, "later", unix.AT_EMPTY_PATH}),
		"nameless file":           script(call{unix.SYS_OPENAT, at, ".", unix.O_TMPFILE | unix.O_RDWR, 0o644}, call{unix.SYS_LINKAT, at, "/proc/self/fd/3", at, "later", unix.AT_SYMLINK_FOLLOW}, call{unix.SYS_LINKAT, at, "/dev/fd/3", at, "d/later", unix.AT_SYMLINK_FOLLOW}, call{unix.SYS_LINKAT, ret(0), "", at, "later", unix.AT_EMPTY_PATH}),
		"openat2":                 script(openD, openat2(at, "later", 0), openat2(ret(0), "later", 0), openat2(at, "d/later", unix.RESOLVE_BENEATH)),
		"openat2 in root":         script(openD, openat2(ret(0), "/later", unix.RESOLVE_IN_ROOT), openat2(ret(0), "/../later", unix.RESOLVE_IN_ROOT), openat2(ret(0), "../../later", unix.RESOLVE_IN_ROOT)),
		"openat2 without links":   script(openat2(at, "d/later", unix.RESOLVE_NO_SYMLINKS), openat2(at, "later", unix.RESOLVE_NO_XDEV), openat2(at, "later", unix.RESOLVE_NO_MAGICLINKS), openat2(at, "later", 0x20 /* RESOLVE_CACHED */)),
		"socket":                  `python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind("later")'; python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind("d/later")'; cd d; python3 -c 'import socket; socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).bind("./later")'`,
		"old directory":           `mkdir x; (cd x; rmdir ../x; echo pwned > ../later; mkdir ../d/later); cd good; mv ../good ../g2; echo pwned > ../d/later`,
		"mknod":                   `mkfifo later; mknod d/later p`,
		"install, cp, tar, rsync": `cp file later; install file d/later; (cd ready; tar cf - later) | tar xf -; (cd ready; tar cf - later) | (cd d; tar xf -); cp -a ready/. d/; cp -al ready/. .`,
	}
	for rules, change := range rulesOfJudges {
		t.Run(rules, func(t *testing.T) {
			for name, attack := range attacks {
				t.Run(name, func(t *testing.T) {
					each(t, func(t *testing.T, w *world) {
						absentScene(w)
						change(&w.settings)
						w.neverAppears(attack)
					})
				})
			}
		})
	}
}

// TestEscape_055_OtherCase: protected names are denied in any case (FS-38); so are their absent parents.
func TestEscape_055_OtherCase(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		w.settings.DenyWrite = []string{"nothing-there"}
		o := w.sh(`for n in .BASHRC .BashRC .bashRC .Mcp.json .VSCODE .VSCode .Idea .GitConfig; do echo pwned > $n; mkdir $n; ln -s x $n; done; ls -A`)
		if o.out != "" {
			t.Errorf("ESCAPE: made %q", o.out)
		}
	})
}

// TestEscape_055_BindAlias: a mount of the host shows the directory again; the name is denied there as well.
func TestEscape_055_BindAlias(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		absentScene(w)
		for _, d := range []string{"work/alias", "alias"} {
			w.must(mkdirFor(w, w.dir+"/"+d))
		}
		w.umbrella = `mount --bind $WORLD/work/d $WORLD/work/alias; mount --bind $WORLD/work $WORLD/alias`
		w.settings.AllowWrite = []string{".", w.dir + "/alias"}
		w.neverAppears(`for d in alias $WORLD/alias $WORLD/alias/d; do echo pwned > $d/later; mkdir $d/later; mv file $d/later; ln ready/later $d/later; done`)
	})
}

// TestEscape_055_OtherUser: root's command that acts as somebody else is judged, and has no more rights, all the same.
func TestEscape_055_OtherUser(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		if w.who.uid != 0 {
			return // nobody else can be
		}
		absentScene(w)
		w.must(os.Chmod(w.work+"/d", 0o777|os.ModeSticky))
		w.write("work/closed/f", "f\n")
		w.must(os.Chmod(w.work+"/closed", 0o700))
		w.neverAppears(`setpriv --reuid 1234 --regid 2345 --clear-groups sh -c 'echo pwned > d/later; mkdir d/later; touch d/mine; touch closed/x; touch good/x'`)
		for name, want := range map[string]bool{"d/mine": true, "closed/x": false, "good/x": false} {
			info, err := os.Lstat(w.work + "/" + name)
			if (err == nil) != want {
				t.Errorf("%s: %v, want it made: %v", name, err, want)
			}
			if err == nil && owner(info) != 1234 {
				t.Errorf("%s belongs to %d", name, owner(info))
			}
		}
	})
}

// TestEscape_056_CallersKilled: callers that are killed while their calls are pending, and threads that end, leave nothing
// undone for others, and no call is done for the wrong process.
func TestEscape_056_CallersKilled(t *testing.T) {
	for rules, change := range rulesOfJudges {
		t.Run(rules, func(t *testing.T) {
			each(t, func(t *testing.T, w *world) {
				absentScene(w)
				change(&w.settings)
				o := w.neverAppears("$PROGRAMS/race storm; echo alive > good/alive")
				if !strings.Contains(o.out, "DONE") || w.read("work/good/alive") != "alive\n" {
					t.Errorf("nothing works afterwards: %s%s", o.out, o.err)
				}
			})
		})
	}
}

// TestEscape_088_WaitingCalls: calls that wait for the other end of a FIFO do not keep others from theirs (see knownGaps for
// how many), and srt's death ends them, however many.
func TestEscape_088_WaitingCalls(t *testing.T) {
	for rules, change := range rulesOfJudges {
		t.Run(rules, func(t *testing.T) {
			each(t, func(t *testing.T, w *world) {
				absentScene(w)
				change(&w.settings)
				o := w.neverAppears("$PROGRAMS/race fifo 48")
				for i := range 20 {
					if describe(fmt.Sprintf("%s/d/alive%d", w.work, i)) == "error: no such file or directory" {
						t.Fatalf("others cannot make names meanwhile: %s%s", o.out, o.err)
					}
				}
			})
		})
		t.Run("killed under "+rules, func(t *testing.T) {
			each(t, func(t *testing.T, w *world) {
				absentScene(w)
				change(&w.settings)
				r := w.hold("$PROGRAMS/race fifo 200 >/dev/null & $PROGRAMS/race storm >/dev/null & sleep 0.3")
				pids := r.pids()
				w.must(r.cmd.Process.Kill())
				r.wait()
				if left := gone(pids); len(left) > 0 {
					t.Errorf("still running: %v", left)
				}
				if names := w.appeared(); len(names) > 0 {
					t.Errorf("ESCAPE: %q", names)
				}
			})
		})
	}
}

// TestEscape_056_HandOutOfReach: what performs the calls cannot be seen, signalled or traced by the command.
func TestEscape_056_HandOutOfReach(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		absentScene(w)
		o := w.sh(`touch d/one; cd /proc; echo [0-9]*; cd - >/dev/null
kill -9 -1; kill -STOP -1; kill -9 1
for p in $(seq 2 400); do [ $p = $$ ] || kill -9 $p; done 2>/dev/null; echo pwned > d/later; echo two > d/two`)
		if names := w.appeared(); len(names) > 0 {
			t.Errorf("ESCAPE: %q", names)
		}
		if w.read("work/d/two") != "two\n" {
			t.Errorf("no name can be made after the attack: %s%s", o.out, o.err)
		}
		if fields := strings.Fields(o.out); len(fields) > 3 {
			t.Errorf("the command sees more than its own processes: %q", fields)
		}
	})
}

// TestEscape_056_OwnFiltersAndRules: a listener or Landlock rules of the command's own do not come before srt's.
func TestEscape_056_OwnFiltersAndRules(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		absentScene(w)
		o := w.sh(`python3 - <<'EOF'
import ctypes, os, struct
libc = ctypes.CDLL(None, use_errno=True)
allow = ctypes.create_string_buffer(struct.pack("HBBI", 6, 0, 0, 0x7fff0000))
prog = ctypes.create_string_buffer(struct.pack("HxxxxxxQ", 1, ctypes.addressof(allow)))
def call(*a): return libc.syscall(*a), os.strerror(ctypes.get_errno())
print("listener", call(317 if os.uname().machine == "x86_64" else 277, 1, 8, prog))
rules = ctypes.create_string_buffer(struct.pack("QQ", 0x1ff, 0))
print("landlock", call(444, rules, 16, 0))
EOF
echo pwned > d/later; touch d/fine`)
		if !strings.Contains(o.out, "listener (-1, 'Device or resource busy')") || !strings.Contains(o.out, "landlock (-1, 'Operation not supported')") {
			t.Errorf("want EBUSY and EOPNOTSUPP: %s%s", o.out, o.err)
		}
		if names := w.appeared(); len(names) > 0 {
			t.Errorf("ESCAPE: %q", names)
		}
		if w.read("work/d/fine") != "" {
			t.Errorf("no name can be made afterwards: %s%s", o.out, o.err)
		}
	})
}

// TestEscape_056_StateOfSrt: what srt keeps for itself is neither read nor forged by a command that may write the home.
func TestEscape_056_StateOfSrt(t *testing.T) {
	for _, there := range []bool{true, false} {
		t.Run(fmt.Sprintf("there %v", there), func(t *testing.T) {
			each(t, func(t *testing.T, w *world) {
				state := "home/.local/state"
				w.must(mkdirFor(w, w.home+"/.local"))
				w.must(mkdirFor(w, w.dir+"/"+state))
				w.env = append(w.env, "XDG_STATE_HOME="+w.dir+"/"+state)
				if there {
					w.write(state+"/srt/journal", "")
					w.must(os.Chmod(w.dir+"/"+state+"/srt", 0o700))
				}
				absentScene(w)
				w.settings.AllowWrite = []string{".", w.home}
				before := w.snapshot(state)
				w.sh(`s=$XDG_STATE_HOME/srt; cat $s/journal $s/lock; mkdir -p $s; echo forged > $s/journal; echo forged > $s/lock; mv $s $s.old; ln -s $WORLD/out $s; mkfifo $s
mkdir -p $HOME/x/srt; echo forged > $HOME/x/srt/journal; mv $XDG_STATE_HOME $XDG_STATE_HOME.old; mv -T $HOME/x $XDG_STATE_HOME; mkdir -p $s; chmod 0700 $s; echo forged > $s/journal; true`)
				if !there { // the directory around it is the command's to replace, as long as none of srt's is in it
					_, err := os.Lstat(w.dir + "/" + state + "/srt")
					if !errors.Is(err, os.ErrNotExist) {
						t.Errorf("ESCAPE: the command made what srt keeps its state in (%v)", err)
					}
				} else if diff := difference(before, w.snapshot(state)); diff != "" {
					t.Errorf("ESCAPE: the command changed what srt keeps:\n%s", diff)
				}
				if o := w.sh("touch d/fine; echo pwned > d/later"); o.err == "" || w.read("work/d/fine") != "" {
					t.Errorf("the next start does not work: %s%s", o.out, o.err)
				}
			})
		})
	}
}
