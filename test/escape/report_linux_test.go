package escape

import (
	"context"
	"os"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestEscape_089_ForgedEvents: what a command writes is its own output; no descriptor of srt's reporting is within
// reach, and a line of the command's is not one of srt's when those are kept apart.
func TestEscape_089_ForgedEvents(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
		w.must(err)
		defer null.Close()
		// The command's streams are closed; whatever reaches srt's own standard error would come from elsewhere.
		o := w.sh(`exec 2>&-; for f in /proc/[0-9]*/fd/*; do echo forged > $f; done; for n in 3 4 5 6 7 8 9 10; do eval "echo forged >&$n"; done; true`)
		if strings.Contains(o.err, "forged") {
			t.Errorf("ESCAPE: %s", o.err)
		}
	})
}

// TestEscape_090_ControlCharacters: CVE-2023-28101. A refused name reaches the caller's terminal without control
// characters or line ends of its own.
func TestEscape_090_ControlCharacters(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		g := listenFor(w, unix.AF_INET, unix.SOCK_STREAM)
		o := w.unreached(g, `
for bad in (b"\x1b]0;pwned\x07", b"\x1b[2Jx", b"a\nForged: line", b"a\rForged", b"\xc2\x9b31m", b"a\xe2\x80\xaeb", b"\x00", b"\x7f", b"\xff\xfe"):
    socks(b"x" + bad + b".example", 80); connect(b"x" + bad + b".example:80"); get(b"http://x" + bad + b".example/", b"x"); get(b"http://plain.example/" + bad, b"x")`)
		if i := strings.IndexFunc(strings.ReplaceAll(o.err, "\n", ""), func(r rune) bool {
			return r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 || r >= 0x202a && r <= 0x202e || r == '\ufffd'
		}); i >= 0 {
			t.Errorf("a control character is in %q", o.err)
		}
		for line := range strings.Lines(o.err) {
			if strings.HasPrefix(line, "Forged") {
				t.Errorf("a forged line: %q", o.err)
			}
		}
	})
}

// TestEscape_092_SecretsInSight: the session's password is in no command line, environment or debug line on the host.
func TestEscape_092_SecretsInSight(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		w.settings.Domains = []string{"127.0.0.1"}
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		log, err := os.Create(w.dir + "/log")
		w.must(err)
		defer log.Close()
		cmd := w.command(ctx, programs+"/srt", "exec", "--debug", "-s", w.settingsFile(), "--", "sh", "-c", `echo "$CLOUDSDK_PROXY_PASSWORD" > token; echo INSIDE; exec sleep 1000`)
		cmd.Stderr = log
		out, err := cmd.StdoutPipe()
		w.must(err)
		w.must(cmd.Start())
		buf := make([]byte, 7)
		if _, err := out.Read(buf); err != nil {
			t.Fatalf("%v %s", err, w.read("log"))
		}
		token := strings.TrimSpace(w.read("work/token"))
		if len(token) < 20 {
			t.Fatalf("no token: %q", token)
		}
		sight := map[string]string{"the debug log": w.read("log")}
		for _, pid := range append(descendants(cmd.Process.Pid), cmd.Process.Pid) {
			b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline")
			w.must(err)
			sight["the command line of "+strconv.Itoa(pid)] = string(b)
		}
		b, err := os.ReadFile("/proc/" + strconv.Itoa(cmd.Process.Pid) + "/environ")
		w.must(err)
		sight["the environment of srt"] = string(b)
		cancel()
		_ = cmd.Wait()
		explained := w.finish(w.command(context.Background(), programs+"/srt", "explain", "-s", w.settingsFile()))
		sight["srt explain"] = explained.out + explained.err
		for where, text := range sight {
			if strings.Contains(text, token) {
				t.Errorf("the password is in %s", where)
			}
		}
		if !strings.Contains(explained.out, "<token>") {
			t.Errorf("srt explain shows no environment: %s", explained.err)
		}
	})
}
