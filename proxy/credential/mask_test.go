package credential

import (
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/srt-sandbox/srt/runtime/config"
)

// anySentinel finds the sentinels of a fake.
var anySentinel = regexp.MustCompile(`fake_value_[0-9a-f-]{36}`)

// fileLaunch masks one file of this content.
func fileLaunch(t *testing.T, s *Store, text string, rule config.Credential, copies bool) (*launchOf, string) {
	t.Helper()
	path := filepath.Join(realTemp(t), "secrets")
	write(t, path, text)
	rule.Mode = config.ModeMask
	return mustLaunch(t, s, &config.Credentials{Files: []config.FileCredential{{Path: "~/secrets", MaskDuplicates: copies,
		Credential: rule}}}, nil), path
}

// realTemp is a temporary directory without a link on the way to it.
func realTemp(t testing.TB) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// shown returns the fake of a file with every sentinel replaced by what it stands for, in braces.
func shown(t *testing.T, s *Store, fake []byte) string {
	t.Helper()
	return anySentinel.ReplaceAllStringFunc(string(fake), func(sentinel string) string {
		return "{" + valueOf(t, s, sentinel, "api.example.com") + "}"
	})
}

// TestWholeFileCRED10: a sentinel and the final line breaks.
func TestWholeFileCRED10(t *testing.T) {
	for _, tc := range []struct{ rule, text, want string }{
		{"case 26", "tok\n", "{tok}\n"},
		{"no line break", "tok", "{tok}"},
		{"several", "tok\r\n\n", "{tok}\r\n\n"},
		{"line breaks inside", "a\nb\n", "{a\nb}\n"},
		{"a space at the end", "tok \n", "{tok }\n"},
		{"nothing but line breaks", "\n\n", "{}\n\n"},
		{"empty", "", "{}"},
		{"beyond ASCII", "påss\n", "{påss}\n"},
		{"NUL", "a\x00b\n", "{a\x00b}\n"},
	} {
		s := newStore(t)
		l, path := fileLaunch(t, s, tc.text, config.Credential{}, false)
		fake, err := l.File(0, path)
		if err != nil {
			t.Errorf("CRED-10: %s: %v", tc.rule, err)
			continue
		}
		if got := shown(t, s, fake); got != tc.want {
			t.Errorf("CRED-10: %s: %q, want %q", tc.rule, got, tc.want)
		}
	}
	s := newStore(t)
	l, path := fileLaunch(t, s, strings.Repeat("long", 100)+"\n", config.Credential{}, false)
	if fake, err := l.File(0, path); err != nil || len(fake) != 401 {
		t.Errorf("CRED-5: the fake of a file of 401 bytes has %d: %v", len(fake), err)
	}
}

// TestExtractCRED12: only what group 1 captures changes.
func TestExtractCRED12(t *testing.T) {
	for _, tc := range []struct {
		rule, pattern, text string
		copies              bool
		want                string
		sentinels           int // distinct ones
	}{
		{"case 27", `password (\S+)`, "# hunter2\nmachine a password hunter2\n", false, "# hunter2\nmachine a password {hunter2}\n", 1},
		{"CRED-13, case 27", `password (\S+)`, "# hunter2\nmachine a password hunter2\n", true,
			"# {hunter2}\nmachine a password {hunter2}\n", 1},
		{"CRED-12 equal captures", `=(\w+)`, "a=x b=y c=x", false, "a={x} b={y} c={x}", 2},
		{"CRED-12 an empty capture", `=(\w*);`, "a=;b=x;", false, "a=;b={x};", 1},
		{"CRED-12 bytes beyond ASCII before, in and behind", `=(\S+)`, "ä€😀=pä€😀 ß=\ufffd\ufeff", false, "ä€😀={pä€😀} ß={\ufffd}\ufeff", 2},
		{"CRED-12 at both ends", `(\w+)`, "x-y", false, "{x}-{y}", 2},
		{"CRED-12 side by side", `(..)`, "abcd", false, "{ab}{cd}", 2},
		{"CRED-12 captures that run backwards", `(?:x|(?<=x)y)(?=(?:(?<=x).{2}|(?<=y))(\d))`, "xy12", false, "xy{1}{2}", 2},
		{"CRED-15, case 29: CR is no part of it", `token: (.+)`, "token: abc\r\nx\r\n", false, "token: {abc}\r\nx\r\n", 1},
		{"CRED-15, case 29: lookahead", `tok=(?!null)(\w+)`, "tok=null tok=abc", false, "tok=null tok={abc}", 1},
		{"CRED-15 backreference", `(["'])(?:x)\1=(\w)`, `"x"=y`, false, `{"}x"=y`, 1},
		{"CRED-13 longest first", `=(\w+)`, "abcd abc=abc x=abcd", true, "{abcd} {abc}={abc} x={abcd}", 2},
		{"CRED-13 never across a span", `=(a+);`, "aaaa =aaa;a =aa;", true, "{aaa}a ={aaa};a ={aa};", 2},
		{"CRED-13 in another order", `=(\w+)`, "zz y zz=y =zz", true, "{zz} {y} {zz}={y} ={zz}", 2},
		{"CRED-13 off", `=(\w+)`, "zz y zz=y =zz", false, "zz y zz={y} ={zz}", 2},
		{"CRED-13 beyond ASCII", `=(\S+)`, "ä 😀 =😀", true, "ä {😀} ={😀}", 1},
	} {
		s := newStore(t)
		l, path := fileLaunch(t, s, tc.text, config.Credential{Extract: tc.pattern}, tc.copies)
		fake, err := l.File(0, path)
		if err != nil {
			t.Errorf("%s: %v", tc.rule, err)
			continue
		}
		if got := shown(t, s, fake); got != tc.want {
			t.Errorf("%s: %q, want %q", tc.rule, got, tc.want)
		}
		if got := len(s.secrets); got != tc.sentinels {
			t.Errorf("%s: %d sentinels, want %d", tc.rule, got, tc.sentinels)
		}
		if tc.copies {
			continue // variables have none
		}
		v := mustLaunch(t, s, maskEnv(env("X", config.Credential{Extract: tc.pattern})), map[string]string{"X": tc.text})
		if got := shown(t, s, []byte(v.variable("X"))); got != tc.want {
			t.Errorf("%s: as a variable: %q, want %q", tc.rule, got, tc.want)
		}
	}
}

// TestExtractErrorsCRED12CRED17: matches that cannot be masked end the launch, whatever onExtractNoMatch says, and no
// message holds any of the text. Case 30.
func TestExtractErrorsCRED12CRED17(t *testing.T) {
	for _, tc := range []struct {
		rule, pattern, text string
		want                error
		says                string
	}{
		{"CRED-12, case 30: group 1 unset", `tok=(\S+)?`, "tok=", ErrGroup,
			"capture group 1 is undefined — group 1 must capture the credential value on every match."},
		{"CRED-12: group 1 unset in one of two", `tok=(?:(\w+)|-)`, "tok=s3cr3t tok=-", ErrGroup, "capture group 1"},
		{"CRED-15: skipped in the last round", `(?:(s3cr3t)|;)+`, "s3cr3t;", ErrGroup, "capture group 1"},
		{"CRED-12, case 30: overlap", `(?=(..))`, "abcd", ErrOverlap, "two matches"},
		{"CRED-12: one span twice", `(?<=(s3cr3t).*)x`, "s3cr3t xx", ErrOverlap, "two matches"},
		{"CRED-12: one inside another", `(?=(s3cr3t|cr3))`, "s3cr3t", ErrOverlap, "two matches"},
	} {
		for _, answer := range []string{"", config.NoMatchWarn, config.NoMatchDeny, config.NoMatchError} {
			l, path := fileLaunch(t, newStore(t), tc.text, config.Credential{Extract: tc.pattern, OnExtractNoMatch: answer}, false)
			_, err := l.File(0, path)
			if !errors.Is(err, tc.want) || !strings.Contains(err.Error(), tc.says) || errors.Is(err, ErrHide) ||
				!strings.Contains(err.Error(), fmt.Sprintf(`credentials.files entry "~/secrets" has extract pattern %q`, tc.pattern)) {
				t.Errorf("%s, %q: %v", tc.rule, answer, err)
			}
			if err != nil && strings.Contains(err.Error(), "s3cr3t ") {
				t.Errorf("CRED-17: %s: the message holds text of the file: %v", tc.rule, err)
			}
		}
	}
}

// TestBoundCRED17: case 30 as it is, and what else is bounded.
func TestBoundCRED17(t *testing.T) {
	t.Parallel()
	hostile := strings.Repeat("a", 50000)
	l, path := fileLaunch(t, newStore(t), hostile, config.Credential{Extract: `(a+)+b`, OnExtractNoMatch: config.NoMatchWarn}, false)
	_, err := l.File(0, path)
	if !errors.Is(err, ErrBound) || strings.Contains(err.Error(), "aaa") || len(l.warned) > 0 {
		t.Errorf("CRED-17, case 30: %.200v", err)
	}
	past := time.Now().Add(-time.Second)
	e, err := newStore(t).prepare(sourceFile, "f", config.Credential{Extract: `(\w)`}, Spec{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.program.captures([]byte("a b c"), &past); !errors.Is(err, ErrBound) {
		t.Errorf("CRED-17: a search past the deadline: %v", err)
	}
	f := collect([]byte("x"), []span{{0, 1}})
	if err := f.addDuplicates([]byte("x"), past); !errors.Is(err, ErrBound) {
		t.Errorf("CRED-17: duplicates past the deadline: %v", err)
	}
	if _, err := f.keepTokens(nil, past); !errors.Is(err, ErrBound) {
		t.Errorf("CRED-17: tokens past the deadline: %v", err)
	}
}

// TestPanicCRED17: a panic of the engine ends the launch, and its text goes nowhere.
func TestPanicCRED17(t *testing.T) {
	broken, deadline := &program{}, time.Now().Add(time.Minute)
	if _, err := broken.captures([]byte("s3cr3t"), &deadline); !errors.Is(err, ErrBound) {
		t.Errorf("CRED-17: %v", err)
	}
}

// TestSearchesOfOthersCRED17: launches that search with one pattern at the same time wait for each other, and that takes nothing
// from the time that each has.
func TestSearchesOfOthersCRED17(t *testing.T) {
	e, err := newStore(t).prepare(sourceFile, "f", config.Credential{Extract: `(\w)`}, Spec{})
	if err != nil {
		t.Fatal(err)
	}
	const bound = 300 * time.Millisecond
	searched := make(chan error)
	e.program.mu.Lock()
	go func() {
		deadline := time.Now().Add(bound)
		_, err := e.program.captures([]byte("a b c"), &deadline)
		searched <- err
	}()
	time.Sleep(2 * bound) // another launch searches
	e.program.mu.Unlock()
	if err := <-searched; err != nil {
		t.Error(err)
	}
}

// TestNoMatchCRED14: what becomes of a source in which nothing is found. Case 28.
func TestNoMatchCRED14(t *testing.T) {
	for _, tc := range []struct {
		rule   string
		cred   config.Credential
		file   string // the warning
		envVar string
	}{
		{"extract", config.Credential{Extract: `tok=(\w+)`},
			`[sandbox-runtime] WARNING: credentials.files entry "~/secrets" has extract pattern "tok=(\\w+)" that matched nothing in ` +
				`the file. The file is left UNPROTECTED`,
			`[sandbox-runtime] WARNING: credentials.envVars entry "X" has extract pattern "tok=(\\w+)" that matched nothing in ` +
				`the variable. The variable is left UNPROTECTED`},
		{"CRED-12 no non-empty capture", config.Credential{Extract: `s3(x*)`}, `has extract pattern`, `has extract pattern`},
		{"CRED-18 no JWT", config.Credential{Decode: config.DecodeJWT}, `has decode "jwt" that matched nothing`,
			`has decode "jwt" that matched nothing`},
		{"CRED-18 what the pattern finds is no JWT", config.Credential{Decode: config.DecodeJWT, Extract: `(s3\w+)`},
			`has decode "jwt" and extract pattern "(s3\\w+)" that matched nothing`, `has decode "jwt" that matched nothing`},
	} {
		for _, answer := range []string{"", config.NoMatchWarn, config.NoMatchDeny, config.NoMatchError} {
			rule := tc.cred
			rule.OnExtractNoMatch = answer
			l, path := fileLaunch(t, newStore(t), "x s3cr3t", rule, true)
			_, err := l.File(0, path)
			checkNoMatch(t, tc.rule+" in a file", answer, err, l.warned, tc.file)
			v, err := launch(t, newStore(t), maskEnv(env("X", rule)), map[string]string{"X": "x s3cr3t"})
			if err == nil {
				switch got := v.variable("X"); got {
				case "<unset>":
					err = ErrHide
				case "<as it is>":
					err = ErrLeave
				default:
					t.Errorf("%s: %q", tc.rule, got)
				}
			}
			checkNoMatch(t, tc.rule+" in a variable", answer, err, v.warned, tc.envVar)
		}
	}
}

// checkNoMatch checks what an entry did that found nothing.
func checkNoMatch(t *testing.T, rule, answer string, err error, warned []string, warning string) {
	t.Helper()
	want := map[string]error{"": ErrLeave, config.NoMatchWarn: ErrLeave, config.NoMatchDeny: ErrHide, config.NoMatchError: ErrNoMatch}[answer]
	if !errors.Is(err, want) {
		t.Errorf("CRED-14: %s, %q: %v, want %v", rule, answer, err, want)
	}
	text := strings.Join(warned, "\n")
	if want != ErrLeave && text != "" || want == ErrLeave && !strings.Contains(text, warning) { //nolint:errorlint // one of the three
		t.Errorf("CRED-14: %s, %q: warned %q, want %q", rule, answer, text, warning)
	}
	if strings.Contains(text+err.Error(), "s3cr3t") {
		t.Errorf("CRED-35: %s: the value is in %q or %q", rule, text, err)
	}
}
