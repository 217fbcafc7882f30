package escape

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// swapping runs the racer in a sandbox of its own that may write all of work, until the test ends: what an agent in the
// same folder can do while the next command starts.
func (w *world) swapping(a, b string) {
	w.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	cmd := w.srt(ctx, programs+"/swap", a, b)
	out, err := cmd.StdoutPipe()
	w.must(err)
	w.must(cmd.Start())
	w.t.Cleanup(func() { cancel(); _ = cmd.Wait() })
	b7 := make([]byte, 7)
	if n, err := out.Read(b7); n == 0 {
		w.t.Fatalf("the racer does not run: %v", err)
	}
}

// TestEscape_001_DestinationSwappedForALink: CVE-2021-30465. While sandboxes start, another sandbox exchanges their
// write root and a protected name for links that lead out. A start may be refused; none may write outside.
func TestEscape_001_DestinationSwappedForALink(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		w.write("work/d/keep", "kept\n")
		w.link(w.out, "work/s")
		before := w.snapshot("out")
		w.swapping("d", "s")
		w.settings = settings{AllowWrite: []string{w.work + "/d"}, DenyWrite: []string{w.out}, DenyRead: []string{w.work + "/d/keep"}}
		started := 0
		// A start that meets a swap is refused. On a loaded machine that may be all of them for a while.
		for n, deadline := 0, time.Now().Add(patience); n < 40 || started == 0 && time.Now().Before(deadline); n++ {
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			o := w.finish(w.srt(ctx, "sh", "-c", "echo INSIDE; for i in 1 2 3 4 5 6 7 8; do echo pwned > d/victim; echo pwned > s/victim; done"))
			cancel()
			if strings.HasPrefix(o.out, "INSIDE") {
				started++
			}
		}
		if diff := difference(before, w.snapshot("out")); diff != "" {
			t.Errorf("ESCAPE: %s", diff)
		}
		if started == 0 {
			t.Error("no sandbox started, so nothing was attacked")
		}
	})
}

// TestEscape_001_ReadOnlyStepSwapped: the same race on the name that a write deny stands on: whoever starts must keep
// the file that was denied.
func TestEscape_001_ReadOnlyStepSwapped(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		w.write("work/p/file", "protected\n")
		w.write("work/q/file", "bait\n")
		w.settings.Top = map[string]any{"mandatoryDenySearchDepth": 1}
		w.swapping("p", "q")
		w.settings.DenyWrite = []string{"p/file", "q/file"}
		before := map[string]bool{"protected\n": true, "bait\n": true}
		started := 0
		// A start that meets a swap is refused. On a loaded machine that may be all of them for a while.
		for n, deadline := 0, time.Now().Add(patience); n < 40 || started == 0 && time.Now().Before(deadline); n++ {
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			o := w.finish(w.srt(ctx, "sh", "-c", "echo INSIDE; echo pwned > p/file; echo pwned > q/file; echo pwned > p/file"))
			cancel()
			if strings.HasPrefix(o.out, "INSIDE") {
				started++
			}
		}
		for _, f := range []string{"work/p/file", "work/q/file"} {
			if !before[w.read(f)] {
				t.Errorf("ESCAPE: %s holds %q", f, w.read(f))
			}
		}
		if started == 0 {
			t.Error("no sandbox started, so nothing was attacked")
		}
	})
}

// TestEscape_002_DeviceReplaced: CVE-2025-31133. A /dev/null that is something else stops the start.
func TestEscape_002_DeviceReplaced(t *testing.T) {
	replacements := map[string]string{
		"link":         `rm /dev/null; ln -s $WORLD/out/victim /dev/null`,
		"file":         `rm /dev/null; echo > /dev/null`,
		"other device": `rm /dev/null; touch /dev/null; mount --bind /dev/zero /dev/null`,
	}
	for name, change := range replacements {
		t.Run(name, func(t *testing.T) {
			each(t, func(t *testing.T, w *world) {
				in, err := os.Open(os.DevNull)
				w.must(err)
				defer in.Close()
				w.stdin = in
				w.umbrella = `mkdir -p $WORLD/dev; mount -t tmpfs -o mode=755 t $WORLD/dev
for n in null zero full random urandom tty; do touch $WORLD/dev/$n; mount --bind /dev/$n $WORLD/dev/$n; done
mkdir $WORLD/dev/pts $WORLD/dev/shm; mount --rbind $WORLD/dev /dev; umount /dev/null
` + change
				before := w.snapshot("out")
				w.refused("/dev/null")
				if diff := difference(before, w.snapshot("out")); diff != "" {
					t.Errorf("ESCAPE: %s", diff)
				}
			})
		})
	}
}

// TestEscape_005_SetUpFollowsALink: GHSA-pxhw-h44j-8pfx. What is made inside hidden directories is made in memory,
// whatever links lie on the way on the host.
func TestEscape_005_SetUpFollowsALink(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		w.link(w.out, "work/h/l")
		w.write("work/h/shown/file", "shown\n")
		w.settings.DenyRead = []string{"h"}
		w.settings.AllowRead = []string{"h/l/made", "h/l", "h/shown/file", "h/l/victim/x"}
		before := w.snapshot("out", "work")
		o := w.sh("cat h/shown/file; cat h/l/victim")
		if diff := difference(before, w.snapshot("out", "work")); diff != "" {
			t.Errorf("ESCAPE: %s", diff)
		}
		if !strings.Contains(o.out, "shown") || strings.Contains(o.out, "untouched") {
			t.Errorf("the view is wrong: %s%s", o.out, o.err)
		}
	})
}

// TestEscape_006_NothingLeftOnTheHost: CVE-2024-45310. During a command, after it and after SIGKILL the trees are as
// they were (FS-52, FS-53).
func TestEscape_006_NothingLeftOnTheHost(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		w.write("work/.git/HEAD", "ref: refs/heads/main\n")
		w.write("work/.git/config", "[core]\n")
		w.write("work/hidden/file", "secret\n")
		w.settings.AllowWrite = []string{".", w.home}
		w.settings.DenyRead, w.settings.DenyWrite = []string{"hidden"}, []string{".git/HEAD"}
		before := w.snapshot("work", "home", "out")
		r := w.hold("true")
		if diff := difference(before, w.snapshot("work", "home", "out")); diff != "" {
			t.Errorf("while the command runs:\n%s", diff)
		}
		w.must(r.cmd.Process.Kill())
		r.wait()
		if diff := difference(before, w.snapshot("work", "home", "out")); diff != "" {
			t.Errorf("after SIGKILL:\n%s", diff)
		}
		w.sh("true")
		if diff := difference(before, w.snapshot("work", "home", "out")); diff != "" {
			t.Errorf("after the command:\n%s", diff)
		}
	})
}

// TestEscape_007_NothingTruncated: files that rules stand on keep their content through a start.
func TestEscape_007_NothingTruncated(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		for _, f := range []string{"work/deny", "work/hide", "work/.bashrc", "work/h/in", "home/.npmrc", "work/grant"} {
			w.write(f, "content of "+f+"\n")
		}
		w.settings = settings{AllowWrite: []string{".", "grant"}, DenyWrite: []string{"deny"}, DenyRead: []string{"hide", "h", w.home + "/.npmrc"},
			AllowRead: []string{"h/in"}}
		before := w.snapshot("work", "home")
		w.sh("true")
		if diff := difference(before, w.snapshot("work", "home")); diff != "" {
			t.Error(diff)
		}
	})
}

// running is a sandbox that stays until it is ended.
type running struct {
	w   *world
	cmd *exec.Cmd
	out *os.File
}

// hold runs a script in a sandbox that then waits, and returns when the script has run.
func (w *world) hold(script string) *running {
	w.t.Helper()
	in, out, err := os.Pipe()
	w.must(err)
	cmd := w.srt(context.Background(), "sh", "-c", script+"\necho INSIDE; exec sleep 1000")
	cmd.Stdout = out
	w.must(cmd.Start())
	out.Close()
	r := &running{w, cmd, in}
	w.t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait(); in.Close() })
	w.must(in.SetReadDeadline(time.Now().Add(patience)))
	buf := make([]byte, 4096)
	for text := ""; !strings.Contains(text, "INSIDE"); {
		n, err := in.Read(buf)
		text += string(buf[:n])
		if err != nil {
			w.t.Fatalf("the sandbox does not run: %v %q", err, text)
		}
	}
	return r
}

// wait returns when srt has ended and nobody holds the output any more.
func (r *running) wait() {
	_ = r.cmd.Wait()
	buf := make([]byte, 512)
	for {
		if _, err := r.out.Read(buf); err != nil {
			return
		}
	}
}

var at = unix.AT_FDCWD
