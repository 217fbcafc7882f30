package bpf

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

func TestRule_Spellings(t *testing.T) {
	tests := []struct {
		what string
		rule Rule
		want []string // nil: ErrRule
	}{
		{"FS-30 exact", Rule{Name: "New"}, []string{"New"}},
		{"FS-13 bytes", Rule{Name: "\xff\xfe"}, []string{"\xff\xfe"}},
		{"FS-38 folded", Rule{Name: ".BashRC", Fold: true}, []string{".bashrc"}},
		{"FS-38 letters that become ASCII", Rule{Name: "hooks", Fold: true}, []string{"hooks", "hoo\u212as"}},
		{"FS-38 of both kinds", Rule{Name: "kI", Fold: true}, []string{"ki", "k\u0130", "\u212ai", "\u212a\u0130"}},
		{"FS-38 given with such a letter", Rule{Name: "\u212a", Fold: true}, []string{"k", "\u212a"}},
		{"longest", Rule{Name: strings.Repeat("n", 255)}, []string{strings.Repeat("n", 255)}},
		{"too long", Rule{Name: strings.Repeat("n", 256)}, nil},
		{"longest folded", Rule{Name: strings.Repeat("n", 85), Fold: true}, []string{strings.Repeat("n", 85)}},
		{"too long to fold", Rule{Name: strings.Repeat("n", 86), Fold: true}, nil},
		{"letters beyond ASCII", Rule{Name: "ä", Fold: true}, nil},
		{"not UTF-8, folded", Rule{Name: "\xff", Fold: true}, nil},
		{"too many spellings", Rule{Name: strings.Repeat("k", 7), Fold: true}, nil},
		{"FS-2 empty", Rule{}, nil},
		{"dot", Rule{Name: "."}, nil},
		{"dot dot", Rule{Name: ".."}, nil},
		{"two names", Rule{Name: "a/b"}, nil},
		{"FS-4 NUL", Rule{Name: "a\x00"}, nil},
	}
	for _, tt := range tests {
		got, err := tt.rule.spellings()
		if !slices.Equal(got, tt.want) || errors.Is(err, ErrRule) != (tt.want == nil) {
			t.Errorf("%s: %q, %v", tt.what, got, err)
		}
	}
}

// smallASCII is what the programs do to a name before they look for a folded rule.
func smallASCII(name string) string {
	b := []byte(name)
	for i, c := range b {
		if c >= 'A' && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}

// FS-38: a name is found exactly if it and the rule's are the same when each is made small.
func FuzzRule_FS38_Fold(f *testing.F) {
	for _, rule := range []string{".gitconfig", ".ripgreprc", "hooks", ".idea", "K", "x"} {
		f.Add(rule, strings.ToUpper(rule))
		f.Add(rule, strings.NewReplacer("k", "\u212a", "i", "\u0130").Replace(rule))
		f.Add(rule, rule+"\xe2\x84")
	}
	f.Fuzz(func(t *testing.T, rule, name string) {
		r := Rule{Name: rule, Fold: true}
		spellings, err := r.spellings()
		if err != nil {
			return
		}
		small := strings.ToLower // not strings.EqualFold, for which more letters are one
		got, want := slices.Contains(spellings, smallASCII(name)), small(name) == small(rule)
		if got != want {
			t.Errorf("rule %q, name %q: %v, want %v", rule, name, got, want)
		}
		for _, s := range spellings {
			if len(s) > maxName {
				t.Errorf("rule %q: the spelling %q is too long", rule, s)
			}
		}
	})
}
