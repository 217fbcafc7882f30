package fsview

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestReadGrants is about links on the way to what allowRead names: those that a command can have made choose nothing.
func TestReadGrants(t *testing.T) {
	const vault = "f /h/p/vault/f;f /h/p/vault/g;d /h/p/w/real;"
	tests := []struct {
		name, tree, rules string
		want              string // steps
		says              string // the one warning, or ""
		allowed           string // Plan.AllowRead
	}{
		{"FS-9 a link in a write root", "l /h/p/w/sub ../vault", "dR=. aR=w aR=w/sub/f aW=w", "hide directory @; reveal writable @/w make w",
			`("w/sub/f") leads to "/h/p/vault/f" through the link "/h/p/w/sub", which a command can have made`, "@/w @/w"},
		{"FS-9 the same with the target named", "l /h/p/w/sub ../vault", "dR=. aR=w/sub/f aR=vault/f aW=w",
			"hide directory @; reveal @/vault/f make vault,vault/f; reveal writable @/w make w", "", "@/vault/f @/vault/f @/w"},
		{"FS-9 a pattern beneath the link", "l /h/p/w/sub ../vault", "dR=. aR=w/sub/* aW=w", "hide directory @; reveal writable @/w make w",
			`through the link "/h/p/w/sub"`, "@/w"},
		{"FS-9 FS-16 a name with glob characters beneath the link", "l /h/p/w/sub ../vault;f /h/p/vault/x[1]", "dR=. aR=w/sub/x[1] aW=w",
			"hide directory @; reveal writable @/w make w", `through the link "/h/p/w/sub"`, "@/w"},
		{"FS-9 a chain that begins where nobody can write", "l /h/p/l w/sub;l /h/p/w/sub ../vault", "dR=vault aR=l/f aW=w",
			"hide directory @/vault; writable @/w", `through the link "/h/p/w/sub"`, "@/w"},
		{"FS-22 a re-allowed link that leads through one", "l /h/p/l w/sub/f;l /h/p/w/sub ../vault", "dR=. aR=l aW=w",
			"hide directory @; reveal writable @/w make w", `("l") leads to "/h/p/vault/f" through the link "/h/p/w/sub"`, "@/w"},
		{"FS-22 a re-allowed link that leads to what shows anyway", "l /h/p/l w/sub/f;l /h/p/w/sub real;f /h/p/w/real/f", "dR=. aR=l aW=w",
			"hide directory @; reveal @/l from @/w/real/f make l; reveal writable @/w make w", "", "@/l @/w"},
		{"FS-22 a file denied in the write root itself", "l /h/p/w/l key;f /h/p/w/key;l /h/p/w/d real;f /h/p/w/real/k", "dR=w/real/k aR=w/d/k aW=w",
			"pin @/w/real; writable @/w; hide file @/w/real/k", `("w/d/k") leads to "/h/p/w/real/k"`, "@/w"},
		{"FS-9 a link in a write root, target in the same", "l /h/p/w/bin real;f /h/p/w/real/f", "dR=. aR=w/bin/f aW=w",
			"hide directory @; reveal writable @/w make w", "", "@/w @/w/real/f"},
		{"FS-9 a link in a write root to what is not denied", "l /h/p/w/sub ../vault", "dR=/etc aR=w/sub/f aW=w", "writable @/w", "", "@/vault/f @/w"},
		{"FS-9 a link in a directory that cannot be written", "l /h/p/l vault", "dR=vault aR=l/f aW=w", "hide directory @/vault; reveal @/vault/f make f; writable @/w",
			"", "@/vault/f @/w"},
		{"FS-9 a link in a write-denied directory", "l /h/p/w/real/l ../../vault", "dR=vault aR=w/real/l/f aW=w dW=w/real",
			"hide directory @/vault; reveal @/vault/f make f; writable @/w; read-only @/w/real", "", "@/vault/f @/w"},
		{"FS-9 a link in a hidden part of a write root", "l /h/p/w/real/l ../../vault", "dR=vault dR=w/real aR=w/real/l/f aW=w",
			"hide directory @/vault; reveal @/vault/f make f; writable @/w; hide directory @/w/real", "", "@/vault/f @/w"},
		{"FS-9 a part that the list shows again", "l /h/p/w/real/l ../../vault", "dR=vault dR=w/real aR=w/real/l/f aR=w/real aW=w",
			"hide directory @/vault; writable @/w", `through the link "/h/p/w/real/l"`, "@/w @/w/real"},
		{"FS-9 grants that lean on each other", "l /h/p/w/a ../vault;l /h/p/w/b ../vault", "dR=vault aR=w/a/f aR=w/b/f aW=w",
			"hide directory @/vault; writable @/w", `("w/a/f")|("w/b/f")`, "@/w"},
		{"FS-7 a write root under another name", "l /h/p/w/sub ../vault;d /h/p/q;m /h/p/q /h/p/w", "dR=vault aR=w/sub/f aW=q",
			"writable @/q; hide directory @/vault", `through the link "/h/p/w/sub"`, "@/q @/w"},
		{"FS-10 what does not exist", "l /h/p/w/sub ../vault", "dR=. aR=w/sub/none aW=w", "hide directory @; reveal writable @/w make w",
			`("w/sub/none") leads to "/h/p/vault/none"`, "@/w"},
		{"FS-10 what does not exist, where nothing is denied", "l /h/p/w/sub ../vault", "dR=/etc aR=w/sub/none aW=w", "writable @/w", "", "@/w"},
		{"FS-8 a write grant through a link", "l /h/p/w/sub ../vault", "dR=vault aW=w aW=w/sub aW=w/sub/f", "hide directory @/vault; writable @/w",
			`("w/sub") leads through a link|("w/sub/f") leads through a link`, "@/w"},
		{"FS-8 a write grant through a link where nobody can write", "l /h/p/l vault", "aW=w aW=l/f", "writable @/w", `("l/f") leads through a link`, "@/w"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tree := newFakeTree(t, vault+tt.tree)
			in := input(t, tt.rules)
			in.Mounts, tree.uid, in.Cwd = tree.mounts, in.UID, "/h/p/w" // which shows
			plan, err := Build(tree, in)
			if err != nil {
				t.Fatal(err)
			}
			at := strings.NewReplacer("/h/p", "@", "\n", "; ")
			if diff := cmp.Diff(tt.want, at.Replace(listing(plan))); diff != "" {
				t.Errorf("steps (-want +got):\n%s", diff)
			}
			if got := strings.ReplaceAll(strings.Join(plan.AllowRead, " "), "/h/p", "@"); got != tt.allowed {
				t.Errorf("AllowRead %q, want %q", got, tt.allowed)
			}
			var says []string
			if tt.says != "" {
				says = strings.Split(tt.says, "|")
			}
			if len(plan.Warnings) != len(says) {
				t.Fatalf("warnings %q, want %d", plan.Warnings, len(says))
			}
			for i, part := range says {
				if !strings.Contains(plan.Warnings[i], part) {
					t.Errorf("warning %q does not say %q", plan.Warnings[i], part)
				}
			}
		})
	}
}
