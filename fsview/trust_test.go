package fsview

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TLS-9: a command reads what it is told to trust, whatever hides it, and cannot change it, whatever is allowed.
func TestTrustFiles_TLS9(t *testing.T) {
	const tree = "d /h/p;f /t/ca/bundle;f /t/ca/key;f /t/other"
	tests := []struct{ name, rules, steps string }{
		{"nothing is said", "", ""},
		{"in a write root", "aW=/t", "pin /t/ca; writable /t; read-only /t/ca/bundle"},
		{"in a hidden directory, of which nothing else shows", "dR=/t", "hide directory /t; reveal /t/ca/bundle make ca,ca/bundle"},
		{"hidden itself", "dR=/t/ca/bundle", ""},
		{"hidden by a pattern", "dR=/t/ca/*", "hide file /t/ca/key"},
		{"hidden and granted", "dR=/t aW=/t/ca", "hide directory /t; reveal writable /t/ca make ca; read-only /t/ca/bundle"},
		{"beneath a credential deny", "cred=/t aW=/t", "hide directory /t; reveal /t/ca/bundle make ca,ca/bundle"},
		{"a credential deny of itself", "cred=/t/ca/bundle aW=/t", "pin /t/ca; writable /t; read-only /t/ca/bundle"},
		{"beside a private file", "cred=/t privateFile=/t/ca/key", "hide directory /t; reveal /t/ca/bundle make ca,ca/bundle"},
		{"without any rule", "disabled", "pin /t/ca; writable /t; read-only /t/ca/bundle"},
		{"without any rule, beside a private file", "disabled privateFile=/t/ca/key",
			"pin /t/ca; writable /t; read-only /t/ca/bundle; hide file /t/ca/key"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			plan, _ := built(t, newFakeTree(t, tree), tt.rules+" trust=/t/ca/bundle")
			if d := cmp.Diff(strings.ReplaceAll(tt.steps, "; ", "\n"), listing(plan)); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

// TestTrustDirs_TLS8: nothing is made beside certificates in a directory of srt's own, where it could keep srt from removing it.
func TestTrustDirs_TLS8(t *testing.T) {
	const tree = "d /h/p;f /t/ca/bundle;f /t/other"
	for _, tt := range []struct{ name, rules, steps string }{
		{"nothing is said", "", ""},
		{"in a write root", "aW=/t", "writable /t; read-only /t/ca"},
		{"granted itself", "aW=/t/ca", ""},
		{"hidden", "dR=/t", "hide directory /t; reveal /t/ca/bundle make ca,ca/bundle"},
		{"without any rule", "disabled", "writable /t; read-only /t/ca"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			plan, _ := built(t, newFakeTree(t, tree), tt.rules+" trust=/t/ca/bundle trustDir=/t/ca")
			if d := cmp.Diff(strings.ReplaceAll(tt.steps, "; ", "\n"), listing(plan)); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

// TLS-9, FS-45: a trust file that a command could change by a further name stops the launch.
func TestTrustFilesHaveOneName_TLS9(t *testing.T) {
	for _, rules := range []string{"aW=/h", "disabled"} {
		in := input(t, rules+" trust=/t/bundle")
		if _, err := Build(newFakeTree(t, "d /h/p;f /t/bundle links=2"), in); !errors.Is(err, ErrOtherName) {
			t.Errorf("%s: %v", rules, err)
		}
	}
}
