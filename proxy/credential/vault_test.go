package credential

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/srt-sandbox/srt/runtime/config"
)

// launchOf is one launch under test and what it told the person.
type launchOf struct {
	*Masked
	t      *testing.T
	store  *Store
	warned []string
	logged []string
}

// launch masks what c says, with these variables set; api.example.com is the allowed host.
func launch(t *testing.T, s *Store, c *config.Credentials, set map[string]string) (*launchOf, error) {
	t.Helper()
	l := &launchOf{t: t, store: s}
	m, err := s.Mask(Spec{
		Credentials:  c,
		DefaultHosts: []string{"api.example.com:443"},
		LookupEnv: func(name string) (string, bool) {
			value, ok := set[name]
			return value, ok
		},
		Warn:  func(line string) { l.warned = append(l.warned, line) },
		Debug: func(line string) { l.logged = append(l.logged, line) },
	})
	l.Masked = m
	return l, err
}

// mustLaunch is launch for what must not fail.
func mustLaunch(t *testing.T, s *Store, c *config.Credentials, set map[string]string) *launchOf {
	t.Helper()
	l, err := launch(t, s, c, set)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// variable returns what the command has under a name: the fake, "<unset>" or "<as it is>".
func (l *launchOf) variable(name string) string {
	for _, v := range l.Variables() {
		switch {
		case v.Name == name && v.Unset:
			return "<unset>"
		case v.Name == name:
			return v.Value
		}
	}
	return "<as it is>"
}

// maskEnv is a section that masks variables.
func maskEnv(entries ...config.EnvCredential) *config.Credentials {
	return &config.Credentials{EnvVars: entries}
}

// env is an entry that masks a variable.
func env(name string, rule config.Credential) config.EnvCredential {
	if rule.Mode == "" {
		rule.Mode = config.ModeMask
	}
	return config.EnvCredential{Name: name, Credential: rule}
}

// valueOf returns the value that a sentinel stands for at host.
func valueOf(t *testing.T, s *Store, sentinel, host string) string {
	t.Helper()
	h, err := config.CanonicalHost(host)
	if err != nil {
		t.Fatal(err)
	}
	found, times := "<none>", 0
	for _, x := range s.at(h) {
		if x.sentinel == sentinel {
			value, ok := x.appendTo(nil)
			if !ok {
				t.Errorf("%s has no value", x.name)
			}
			found = string(value)
			times++
		}
	}
	if times > 1 {
		t.Errorf("%d secrets of %s have one sentinel", times, host)
	}
	return found
}

var sentinelForm = regexp.MustCompile(
	`^fake_value_[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}[a-z0-9_-]*$`)

// TestSentinelCRED5: form, length, and none is part of another. Case 22.
func TestSentinelCRED5(t *testing.T) {
	var s sentinels
	var all []string
	for _, tc := range []struct{ value, want int }{{0, 47}, {1, 47}, {16, 47}, {46, 47}, {47, 47}, {48, 48}, {60, 60}, {5000, 5000}} {
		for range 50 {
			text := s.draw(tc.value)
			if len(text) != tc.want || !sentinelForm.MatchString(text) {
				t.Fatalf("CRED-5: for %d bytes: %q (%d bytes, want %d)", tc.value, text, len(text), tc.want)
			}
			all = append(all, text)
		}
	}
	for range 50 {
		all = append(all, s.drawToken())
	}
	for i, a := range all {
		for j, b := range all {
			if i != j && strings.Contains(a, b) {
				t.Fatalf("CRED-5: %q is part of %q", b, a)
			}
		}
	}
}

// TestVariablesCRED3CRED4: what a command has in its environment.
func TestVariablesCRED3CRED4(t *testing.T) {
	deny := config.Credential{Mode: config.ModeDeny}
	set := map[string]string{"GH_TOKEN": "0123456789abcdef", "LONG": strings.Repeat("x", 60), "EMPTY": "", "OTHER": "o", "BOTH": "b",
		"BOTH_REVERSED": "b", "PLAIN": "host=h", "PLAIN_DENIED": "host=h", "NOT_TEXT": "a\xffb", "NOT_TEXT_EITHER": "tok=\xff"}
	l := mustLaunch(t, newStore(t), maskEnv(
		env("GH_TOKEN", config.Credential{}), env("LONG", config.Credential{}), env("EMPTY", config.Credential{}),
		env("UNSET", config.Credential{}), env("DENIED", deny), env("BOTH", deny), env("BOTH", config.Credential{}),
		env("BOTH_REVERSED", config.Credential{}), env("BOTH_REVERSED", deny),
		env("PLAIN", config.Credential{Extract: `tok=(\w+)`}), env("PLAIN_DENIED", config.Credential{Extract: `tok=(\w+)`}),
		env("PLAIN_DENIED", deny), env("NOT_TEXT", config.Credential{}),
		env("NOT_TEXT_EITHER", config.Credential{Extract: `tok=(.+)`}),
	), set)
	for _, tc := range []struct{ rule, name, want string }{
		{"CRED-4 unset stays unset", "UNSET", "<as it is>"},
		{"CRED-2 what is not listed", "OTHER", "<as it is>"},
		{"CRED-3 denied", "DENIED", "<unset>"},
		{"CRED-14 left as it is", "PLAIN", "<as it is>"},
		{"CRED-14 left as it is, but denied too", "PLAIN_DENIED", "<unset>"},
		{"CRED-12 not text: nothing can be told of it", "NOT_TEXT_EITHER", "<unset>"},
	} {
		if got := l.variable(tc.name); got != tc.want {
			t.Errorf("%s: %s is %q, want %q", tc.rule, tc.name, got, tc.want)
		}
	}
	for _, tc := range []struct {
		rule, name string
		size       int
	}{
		{"CRED-5, case 22: 16 bytes", "GH_TOKEN", 47}, {"CRED-5, case 22: 60 bytes", "LONG", 60}, {"CRED-4 set and empty", "EMPTY", 47},
		{"CRED-4, case 35: masked and denied", "BOTH", 47}, {"CRED-4 masked, then denied", "BOTH_REVERSED", 47},
		{"CRED-5 not text", "NOT_TEXT", 47},
	} {
		fake := l.variable(tc.name)
		if len(fake) != tc.size || !sentinelForm.MatchString(fake) {
			t.Errorf("%s: %s is %q", tc.rule, tc.name, fake)
		}
		if got := valueOf(t, l.store, fake, "api.example.com"); got != set[tc.name] {
			t.Errorf("CRED-21: the sentinel of %s stands for %q, want %q", tc.name, got, set[tc.name])
		}
	}
	if len(l.warned) != 3 {
		t.Errorf("%d warnings, want one for each of the three entries that mask nothing: %q", len(l.warned), l.warned)
	}
}

// TestNoCredentials: a launch without the section masks nothing, and no variable is asked for.
func TestNoCredentials(t *testing.T) {
	m, err := newStore(t).Mask(Spec{LookupEnv: func(string) (string, bool) { panic("CRED-2: only listed sources are touched") }})
	if err != nil || len(m.Variables()) != 0 {
		t.Errorf("CRED-2: %v, %v", m.Variables(), err)
	}
	if _, err := m.File(0, "/etc/passwd"); !errors.Is(err, ErrHide) {
		t.Errorf("a file that no entry masks: %v, want ErrHide", err)
	}
}

// TestLaunchesCRED6: what later launches keep.
func TestLaunchesCRED6(t *testing.T) {
	s := newStore(t)
	at := func(hosts ...string) *config.Credentials {
		return maskEnv(env("TOKEN", config.Credential{InjectHosts: hosts}))
	}
	set := func(value string) map[string]string { return map[string]string{"TOKEN": value} }
	first := mustLaunch(t, s, at("a.example.com", "b.example.com"), set("old")).variable("TOKEN")
	for _, value := range []string{"old", "new", "", strings.Repeat("long", 100), "short"} {
		same := mustLaunch(t, s, at("b.example.com", "a.example.com"), set(value)).variable("TOKEN")
		if same != first {
			t.Errorf("CRED-6: the same hosts in another order give %q, want %q", same, first)
		}
		if got := valueOf(t, s, first, "a.example.com"); got != value {
			t.Errorf("CRED-6: the sentinel stands for %q after an update to %q", got, value)
		}
	}
	other := mustLaunch(t, s, at("c.example.com"), set("other")).variable("TOKEN")
	if other == first {
		t.Error("CRED-6: other hosts give the same sentinel")
	}
	for _, tc := range []struct{ rule, sentinel, host, want string }{
		{"CRED-6 the earlier launch keeps its hosts", first, "a.example.com", "short"},
		{"CRED-21 and no others", first, "c.example.com", "<none>"},
		{"CRED-6 the later launch has its own", other, "c.example.com", "other"},
		{"CRED-21 and no others", other, "a.example.com", "<none>"},
	} {
		if got := valueOf(t, s, tc.sentinel, tc.host); got != tc.want {
			t.Errorf("%s: %q at %s, want %q", tc.rule, got, tc.host, tc.want)
		}
	}
	equal := mustLaunch(t, s, maskEnv(env("A", config.Credential{}), env("B", config.Credential{})), map[string]string{"A": "v", "B": "v"})
	if equal.variable("A") == equal.variable("B") {
		t.Error("CRED-6: two variables of equal value share a sentinel")
	}
}

// TestRotationCRED6: captures of one file keep their sentinels as far as it is known which is which.
func TestRotationCRED6(t *testing.T) {
	s := newStore(t)
	path := filepath.Join(t.TempDir(), "tokens")
	c := &config.Credentials{Files: []config.FileCredential{{Path: path,
		Credential: config.Credential{Mode: config.ModeMask, Extract: `(\w+);`}}}}
	read := func(text string) []string {
		t.Helper()
		write(t, path, text)
		fake, err := mustLaunch(t, s, c, nil).File(0, path)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Split(strings.TrimSuffix(string(fake), ";"), ";")
	}
	a := read("one;two;three;")
	for _, tc := range []struct {
		rule, text string
		want       []string
	}{
		{"as before", "one;two;three;", []string{a[0], a[1], a[2]}},
		{"in another order", "three;one;two;", []string{a[2], a[0], a[1]}},
		{"one rotated", "three;uno;two;", []string{a[2], a[0], a[1]}},
		{"one gone", "three;two;", []string{a[2], a[1]}},
		{"it comes back", "uno;three;two;", []string{a[0], a[2], a[1]}},
		{"all rotated", "x;y;z;", []string{a[0], a[2], a[1]}},
	} {
		got := read(tc.text)
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("CRED-6: %s: (-want +got)\n%s", tc.rule, diff)
		}
		for i, value := range strings.Split(strings.TrimSuffix(tc.text, ";"), ";") {
			if back := valueOf(t, s, got[i], "api.example.com"); back != value {
				t.Errorf("CRED-6: %s: the sentinel of %s stands for %s", tc.rule, value, back)
			}
		}
	}
	if more := read("x;y;z;new;"); slices.Contains(a, more[3]) || more[0] != a[0] {
		t.Errorf("CRED-6: a further value takes over a sentinel: %q of %q", more, a)
	}
}

// TestHostsCRED21: where values may go.
func TestHostsCRED21(t *testing.T) {
	s := newStore(t)
	m, err := s.Mask(Spec{
		Credentials: maskEnv(env("DEFAULT", config.Credential{}), env("OWN", config.Credential{InjectHosts: []string{"*.own.example.com", "[::1]", "10.0.0.1"}}),
			env("NOWHERE", config.Credential{InjectHosts: []string{}})),
		DefaultHosts: []string{"api.example.com:8443", "*.wild.example.com", "[2001:db8::1]:443"},
		LookupEnv:    func(name string) (string, bool) { return name, true },
	})
	if err != nil {
		t.Fatal(err)
	}
	fakes := map[string]string{}
	for _, v := range m.Variables() {
		fakes[v.Name] = v.Value
	}
	for _, tc := range []struct{ host, reached string }{
		{"api.example.com", "DEFAULT"}, {"x.api.example.com", ""}, {"a.wild.example.com", "DEFAULT"}, {"wild.example.com", ""},
		{"2001:db8::1", "DEFAULT"}, {"a.b.own.example.com", "OWN"}, {"own.example.com", ""}, {"::1", "OWN"}, {"10.0.0.1", "OWN"},
		{"10.0.0.2", ""}, {"example.org", ""},
	} {
		for name, fake := range fakes {
			want := "<none>"
			if name == tc.reached {
				want = name
			}
			// Asked twice: the answer is remembered.
			for range 2 {
				if got := valueOf(t, s, fake, tc.host); got != want {
					t.Errorf("CRED-21: %s at %s is %q, want %q", name, tc.host, got, want)
				}
			}
		}
	}
	mustLaunch(t, s, maskEnv(env("LATER", config.Credential{InjectHosts: []string{"example.org"}})), map[string]string{"LATER": "x"})
	if h, _ := config.CanonicalHost("example.org"); len(s.at(h)) != 1 {
		t.Error("CRED-21: what a later launch masks does not reach a host that was asked before")
	}
}

// TestMaskErrors: what cannot be prepared ends the launch and names the entry.
func TestMaskErrors(t *testing.T) {
	for _, tc := range []struct {
		rule string
		cred config.Credential
		want error
	}{
		{"CRED-16 no pattern", config.Credential{Extract: "("}, config.ErrExtractSyntax},
		{"CRED-16, case 29 inline flags", config.Credential{Extract: "(?i)(x)"}, config.ErrExtractSyntax},
		{"CRED-16, case 29 atomic group", config.Credential{Extract: "(?>a)(b)"}, config.ErrExtractSyntax},
		{"CRED-16, case 29 not closed", config.Credential{Extract: "(a"}, config.ErrExtractSyntax},
		{"CRED-16, case 29 no group", config.Credential{Extract: "abc"}, config.ErrExtractGroup},
		{"CRED-1 no host", config.Credential{InjectHosts: []string{"a b"}}, config.ErrInvalidDomain},
	} {
		_, err := launch(t, newStore(t), maskEnv(env("X", tc.cred)), map[string]string{"X": "tok=s3cr3t"})
		var entry *EntryError
		if !errors.Is(err, tc.want) || !errors.As(err, &entry) || !strings.Contains(err.Error(), `credentials.envVars entry "X"`) {
			t.Errorf("%s: %v", tc.rule, err)
		}
		tc.cred.Mode = config.ModeMask
		files := &config.Credentials{Files: []config.FileCredential{{Path: "~/f", Credential: tc.cred}}}
		if _, err := launch(t, newStore(t), files, nil); !errors.Is(err, tc.want) || !strings.Contains(err.Error(), `"~/f"`) {
			t.Errorf("%s: file: %v", tc.rule, err)
		}
	}
}

// TestCloseCRED6: nothing is left after the session.
func TestCloseCRED6(t *testing.T) {
	s := newStore(t)
	path := filepath.Join(t.TempDir(), "f")
	write(t, path, "tok")
	c := maskEnv(env("AWS_ACCESS_KEY_ID", config.Credential{}), env("AWS_SECRET_ACCESS_KEY", config.Credential{}))
	c.Files = []config.FileCredential{{Path: path, Credential: config.Credential{Mode: config.ModeMask}}}
	set := map[string]string{"AWS_ACCESS_KEY_ID": "id", "AWS_SECRET_ACCESS_KEY": "key"}
	l := mustLaunch(t, s, c, set)
	host, _ := config.CanonicalHost("api.example.com")
	held := s.at(host)
	if len(held) != 2 || len(s.pairsAt(host)) != 1 {
		t.Fatalf("%d secrets and %d pairs before", len(held), len(s.pairsAt(host)))
	}
	for range 2 {
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if _, ok := held[0].appendTo(nil); ok || held[0].size() != -1 {
		t.Error("a secret has a value after Close")
	}
	if len(s.at(host)) != 0 || len(s.pairsAt(host)) != 0 {
		t.Error("something is injectable after Close")
	}
	if _, err := launch(t, s, c, set); !errors.Is(err, ErrClosed) {
		t.Errorf("Mask after Close: %v", err)
	}
	if _, err := l.File(0, path); !errors.Is(err, ErrClosed) {
		t.Errorf("File after Close: %v", err)
	}
}

// write makes a file of the test.
func write(t testing.TB, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
