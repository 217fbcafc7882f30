package runtime

import (
	"bufio"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/srt-sandbox/srt/runtime/config"
	"github.com/srt-sandbox/srt/runtime/policy"
)

// A command's own list is in force from its start to its end, for every way out and for names, and for nobody else, whatever
// a client presents as its name (LIB-31, LIB-32, NET-15).
func TestAllowDomains_OfOneCommand_LIB31_LIB32_NET15(t *testing.T) {
	const id = "6JmUW9rAM0qT2v8cX1yZ3w"
	w := newAskWorld(t, nil, nil)
	allow := func(c *Cmd) { c.ID, c.AllowDomains = id, []string{"a.test"} }
	for _, way := range waysOut {
		w.prints(way+" a.test", "hello", allow)
	}
	// case 6: after its end the list is gone, even for a command of the same id.
	w.prints("captured a.test; socks a.test", "refused\nrefused", func(c *Cmd) { c.ID = id })
	// While one with a list runs, another that presents its id gets nothing of it.
	other, out := w.command(`read x; socks a.test; captured a.test
		curl -sS --max-time 50 -x "$(printf %s "$FTP_PROXY" | sed "s|//[^:]*:|//` + policy.ProxyUser(id) + `:|")" http://a.test/ 2>/dev/null || echo refused`)
	in, start := pipe(t)
	other.Stdin = in
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	w.prints("captured a.test", "hello", allow)
	holder, _ := w.command("read x")
	held, end := pipe(t)
	holder.Stdin = held
	allow(holder)
	if err := holder.Start(); err != nil {
		t.Fatal(err)
	}
	fmt.Fprintln(start, "go")
	if err := other.Wait(); err != nil || out.String() != "refused\nrefused\nrefused\n" {
		t.Errorf("%v, %q", err, out)
	}
	fmt.Fprintln(end, "go")
	if err := holder.Wait(); err != nil && !strings.Contains(err.Error(), "exit status") {
		t.Error(err)
	}
	if cfg := w.Config(); len(cfg.Network.AllowedDomains) > 0 {
		t.Errorf("the getter shows %q", cfg.Network.AllowedDomains)
	}
}

func TestAllowDomains_case7_LIB32(t *testing.T) {
	w := newAskWorld(t, nil, nil)
	const good = "0123456789abcdefghijkl"
	for _, tc := range []struct {
		name, id, entry string
		want            error
	}{
		{"empty", "", "a.test", policy.ErrShortCommandID},
		{"short", "brief", "a.test", policy.ErrShortCommandID},
		{"30 lone surrogates", strings.Repeat("\xed\xa0\x80", 30), "a.test", policy.ErrShortCommandID},
		{"22 ASCII", good, "a.test", nil},
		{"entry *.com", good, "*.com", config.ErrInvalidDomain},
		{"entry *", good, "*", config.ErrInvalidDomain},
	} {
		t.Run(tc.name, func(t *testing.T) {
			remove, err := w.AllowDomains(tc.id, []string{tc.entry})
			if !errors.Is(err, tc.want) || (err == nil) != (remove != nil) {
				t.Errorf("%v", err)
			}
			if err != nil && tc.id != "" && strings.Contains(err.Error(), tc.id) {
				t.Errorf("%q holds the id", err)
			}
			// A command with such an id and a list is not started; a random id needs no check.
			cmd, _ := w.command("true")
			cmd.ID, cmd.AllowDomains = tc.id, []string{tc.entry}
			err, want := cmd.Run(), tc.want
			if tc.id == "" {
				want = nil
			}
			if !errors.Is(err, want) || err != nil && tc.id != "" && strings.Contains(err.Error(), tc.id) {
				t.Errorf("a command with that list: %v", err)
			}
		})
	}
}

func TestAllowDomains_ReplacedAndRemovedWhileItRuns_LIB32(t *testing.T) {
	const key = "0123456789abcdefghijkl"
	w := newAskWorld(t, nil, nil)
	cmd, _ := w.command(`while read -r host; do socks $host; done`)
	in, tell := pipe(t)
	answers, out := pipe(t)
	cmd.Stdin, cmd.Stdout, cmd.ID = in, out, key
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(answers)
	try := func(host, want string) {
		t.Helper()
		fmt.Fprintln(tell, host)
		if got, err := lines.ReadString('\n'); err != nil || strings.TrimSpace(got) != want {
			t.Errorf("%s: %q, %v; want %q", host, got, err, want)
		}
	}
	try("a.test", "refused")
	first, err := w.AllowDomains(key, []string{"a.test"})
	if err != nil {
		t.Fatal(err)
	}
	try("a.test", "hello")
	second, err := w.AllowDomains(key, []string{"b.test"})
	if err != nil {
		t.Fatal(err)
	}
	try("a.test", "refused")
	try("b.test", "hello")
	first() // of the list that was replaced
	try("b.test", "hello")
	second()
	second()
	try("b.test", "refused")
	tell.Close()
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	if _, err := w.AllowDomains(key, []string{"a.test"}); err != nil {
		t.Error(err)
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
	if remove, err := w.AllowDomains(key, []string{"a.test"}); !errors.Is(err, ErrClosed) || remove != nil {
		t.Errorf("LIB-35: after Close %v", err)
	}
	second()
}
