package fsview_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/srt-sandbox/srt/fsview"
)

// TestMaskedView_FS58 shows masks on the kernel. A word "!" in front of a line of want turns it around.
func TestMaskedView_FS58(t *testing.T) {
	large := strings.Repeat("0123456789abcde\n", 1<<14)
	for _, c := range []struct {
		name    string
		input   func(dir string, in *fsview.Input)
		content string
		script  string
		want    []string
	}{
		{"case 33 beats every list", func(d string, in *fsview.Input) {
			in.Rules.AllowWrite, in.Rules.DenyRead, in.Rules.CredentialDeny = rules(d, "w", "w/a/b/f"), rules(d, "w/a/b/f"), rules(d, "w/a/b/f")
			in.Masks = rules(d, "w/a/b/f")
		}, "fake\n",
			"cat a/b/f; stat -c %a,%u,%F,%s a/b/f; echo x > a/b/f; chmod 644 a/b/f; rm -f a/b/f; mv a/b/f g; mv -T w2 a/b/f; ln a/b/f l",
			[]string{"fake\n", fmt.Sprintf("600,%d,regular file,5\n", os.Geteuid()), "a/b/f: Read-only", "permissions of 'a/b/f': Read-only",
				"remove 'a/b/f': Device or resource busy", "move 'a/b/f' to 'g': Device or resource busy", "Invalid cross-device link", "!content"}},
		{"CRED-9 a denied file through a link that a command can have made", func(d string, in *fsview.Input) {
			in.Rules.AllowWrite, in.Rules.DenyRead = rules(d, "w"), rules(d, "w/a/b/f")
		}, "fake\n", "cat a/b/f link/f; rm link", []string{"a/b/f: Permission denied", "link/f: Permission denied", "remove 'link': Device or resource busy", "!fake", "!content"}},
		{"FS-41 what leads to it stays", func(d string, in *fsview.Input) { in.Rules.AllowWrite = rules(d, "w") }, "fake\n",
			"mv a z; mv a/b q; rm link; echo n > a/b/n && mv a/b/n a/n && cat a/n",
			[]string{"cannot move 'a' to 'z': Device or resource busy", "cannot move 'a/b' to 'q': Device or resource busy", "n\n"}},
		{"every name", func(d string, in *fsview.Input) {}, "fake\n", "cat link/f ../w/a/b/f", []string{"fake\nfake\n", "!content"}},
		{"inside a hidden directory", func(d string, in *fsview.Input) { in.Rules.CredentialDeny = rules(d, "w/a") }, "fake\n",
			"ls a a/b; cat a/b/f; echo x > a/b/f; rm -f a/b/f; mv a/b z; cat a/s",
			[]string{"a:\nb\n", "a/b:\nf\n", "fake\n", "a/b/f: Read-only", "remove 'a/b/f': Device or resource busy", "a/s: No such file", "!content"}},
		{"inside what is shown again", func(d string, in *fsview.Input) {
			in.Rules.DenyRead, in.Rules.AllowRead = rules(d, "w/a"), rules(d, "w/a/b")
		}, "fake\n", "cat a/b/f; ls a", []string{"fake\n", "b\n", "!content"}},
		{"FS-56 case 34 disabled", func(d string, in *fsview.Input) { in.Disabled = true }, "fake\n",
			"cat a/b/f; echo x > a/b/f; rm -f a/b/f; mv a z; echo y > ../new && cat ../new",
			[]string{"fake\n", "a/b/f: Read-only", "remove 'a/b/f': Device or resource busy", "cannot move 'a' to 'z': Device or resource busy", "y\n"}},
		{"empty", func(d string, in *fsview.Input) {}, "", "stat -c %s,%a a/b/f; cat a/b/f", []string{"0,600\n", "!content"}},
		{"large", func(d string, in *fsview.Input) {}, large, "wc -c < a/b/f; tail -c 3 a/b/f", []string{fmt.Sprint(len(large)), "de\n"}},
	} {
		t.Run(strings.ReplaceAll(c.name, " ", "_"), func(t *testing.T) {
			dir, err := filepath.EvalSymlinks(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			makeTree(t, dir)
			in := fsview.Input{Cwd: filepath.Join(dir, "w"), Home: dir, UID: os.Geteuid(), Masks: rules(dir, "w/link/f"),
				FakeContent: func(int, string) ([]byte, error) { return []byte(c.content), nil }}
			c.input(dir, &in)
			out := view(t, in, c.script)
			for _, w := range c.want {
				text, absent := strings.CutPrefix(w, "!")
				if strings.Contains(out, text) == absent {
					t.Errorf("want %q in:\n%.2000s", w, out)
				}
			}
			if got, err := os.ReadFile(filepath.Join(dir, "w/a/b/f")); err != nil || string(got) != "content\n" {
				t.Errorf("on the host: %q, %v", got, err)
			}
		})
	}
}
