package credential

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/srt-sandbox/srt/runtime/config"
)

// jwt makes a JWT.
func jwt(header, payload, signature string) string {
	return base64.RawURLEncoding.EncodeToString([]byte(header)) + "." + base64.RawURLEncoding.EncodeToString([]byte(payload)) +
		"." + signature
}

const plainHeader = `{"alg":"RS256","kid":"k"}`

// maskJWT masks one variable that holds a JWT.
func maskJWT(t *testing.T, s *Store, value string, claims ...string) *launchOf {
	t.Helper()
	return mustLaunch(t, s, maskEnv(env("JWT", config.Credential{Decode: config.DecodeJWT, MaskClaims: claims,
		Extract: `(never read)`})), map[string]string{"JWT": value})
}

// TestWhatIsAJWTCRED18: three parts, the first two base64url of JSON, the first an object with alg.
func TestWhatIsAJWTCRED18(t *testing.T) {
	encoded := func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) }
	for _, tc := range []struct {
		rule, value string
		want        bool
	}{
		{"plain", jwt(plainHeader, `{"sub":"x"}`, "c2ln"), true},
		{"no signature", jwt(`{"alg":"none"}`, `{"sub":"x"}`, ""), true},
		{"alg is no string", jwt(`{"alg":1}`, `{}`, "c2ln"), true},
		{"alg written with an escape", jwt(`{"\u0061lg":"x"}`, `{}`, "c2ln"), true},
		{"white space", jwt(" {\n\"typ\" : {\"x\":[1,{}]} ,\t\"alg\" : \"x\" } ", ` 1 `, "c2ln"), true},
		{"payload is no object", jwt(plainHeader, `[1]`, "c2ln"), true},
		{"padded", base64.URLEncoding.EncodeToString([]byte(plainHeader)) + "." +
			base64.URLEncoding.EncodeToString([]byte(`{"a":"b"}`)) + ".c2ln", true},
		{"alg in a nested object", jwt(`{"x":{"alg":"y"}}`, `{}`, "c2ln"), false},
		{"alg as a value", jwt(`{"x":"alg"}`, `{}`, "c2ln"), false},
		{"header is no object", jwt(`["alg"]`, `{}`, "c2ln"), false},
		{"header is no JSON", jwt(`{"alg":"x"`, `{}`, "c2ln"), false},
		{"payload is no JSON", jwt(plainHeader, `{"a":}`, "c2ln"), false},
		{"payload is empty", jwt(plainHeader, ``, "c2ln"), false},
		{"two parts", encoded(plainHeader) + "." + encoded(`{}`), false},
		{"four parts", jwt(plainHeader, `{}`, "c2ln") + ".x", false},
		{"not base64url", "e+J." + encoded(`{}`) + ".x", false},
		{"a line break", encoded(plainHeader)[:4] + "\n" + encoded(plainHeader)[4:] + "." + encoded(`{}`) + ".x", false},
		{"a prefix", "Bearer " + jwt(plainHeader, `{}`, "c2ln"), false},
		{"empty", "", false},
		{"dots", "..", false},
	} {
		if got := maskJWT(t, newStore(t), tc.value).variable("JWT") != "<as it is>"; got != tc.want {
			t.Errorf("CRED-18: %s: masked is %v", tc.rule, got)
		}
	}
}

// TestFakeJWTCRED19: without maskClaims nothing of the token shows.
func TestFakeJWTCRED19(t *testing.T) {
	s := newStore(t)
	genuine := jwt(plainHeader, `{"sub":"s3cr3t"}`, "c2ln")
	fake := maskJWT(t, s, genuine).variable("JWT")
	parts := strings.Split(fake, ".")
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil || len(parts) != 3 {
		t.Fatalf("%q: %v", fake, err)
	}
	head, tail := `{"sub":"`, `","exp":9999999999}`
	sentinel := strings.TrimSuffix(strings.TrimPrefix(string(payload), head), tail)
	if parts[0] != base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"HS256","typ":"JWT"}`)) || parts[2] != "c3J0LWZha2U" ||
		!sentinelForm.MatchString(sentinel) || head+sentinel+tail != string(payload) {
		t.Errorf("CRED-19: %q with the payload %q", fake, payload)
	}
	if got := valueOf(t, s, fake, "api.example.com"); got != genuine {
		t.Errorf("CRED-19: the fake stands for %q", got)
	}
	if again := maskJWT(t, s, jwt(plainHeader, `{"sub":"other"}`, "c2ln")).variable("JWT"); again != fake {
		t.Errorf("CRED-6: a rotated token has the fake %q, want %q", again, fake)
	}
}

// TestClaimsCRED19: with maskClaims only the named claims and the signature change, byte for byte. In want, {x} stands
// for the sentinel of the value x.
func TestClaimsCRED19(t *testing.T) {
	for _, tc := range []struct{ rule, payload, claims, want string }{
		{"case 31", `{"sub":"me","aud":"x"}`, "sub", `{"sub":"{me}","aud":"x"}`},
		{"two claims", `{"sub":"me","aud":"x","n":1}`, "sub aud", `{"sub":"{me}","aud":"{x}","n":1}`},
		{"digits of numbers", `{"a":12345678901234567890,"b":1.10,"c":1e400,"sub":"me","d":-0}`, "sub",
			`{"a":12345678901234567890,"b":1.10,"c":1e400,"sub":"{me}","d":-0}`},
		{"white space", "{ \"sub\"\t:\n\"me\" , \"a\" : [ 1 ,\"}\" ] }\r\n", "sub", "{ \"sub\"\t:\n\"{me}\" , \"a\" : [ 1 ,\"}\" ] }\r\n"},
		{"a repeated member", `{"sub":"a","sub":1,"sub":"b"}`, "sub", `{"sub":"{a}","sub":1,"sub":"{b}"}`},
		{"a repeated value", `{"sub":"a","aud":"a"}`, "sub aud", `{"sub":"{a}","aud":"{a}"}`},
		{"an escaped name", `{"s\u0075b":"me"}`, "sub", `{"s\u0075b":"{me}"}`},
		{"an escaped value", `{"sub":"a\"\\\/\b\f\n\r\t\u00e9\ud83d\ude00\ud83dx"}`, "sub",
			"{\"sub\":\"{a\"\\/\b\f\n\r\té😀\ufffdx}\"}"},
		{"nested members of the name", `{"x":{"sub":"in"},"y":[{"sub":"in"}],"sub":"me"}`, "sub",
			`{"x":{"sub":"in"},"y":[{"sub":"in"}],"sub":"{me}"}`},
		{"non-string and absent claims", `{"sub":["a"],"exp":1,"aud":"x"}`, "sub exp nothing aud", `{"sub":["a"],"exp":1,"aud":"{x}"}`},
		{"an empty claim", `{"sub":""}`, "sub", `{"sub":"{}"}`},
		{"names that share a beginning", `{"su":"a","sub":"b","subj":"c"}`, "sub", `{"su":"a","sub":"{b}","subj":"c"}`},
		{"escapes in other strings", `{"a\"sub":"\"sub\":\"x\\","sub":"me"}`, "sub", `{"a\"sub":"\"sub\":\"x\\","sub":"{me}"}`},
	} {
		s := newStore(t)
		// The spelling of the header counts, too.
		genuine := jwt(" {\"typ\":\"JWT\" ,\"alg\":\"RS256\"}", tc.payload, "c2lnbmF0dXJl")
		fake := maskJWT(t, s, genuine, strings.Fields(tc.claims)...).variable("JWT")
		parts := strings.Split(fake, ".")
		if len(parts) != 3 || parts[0] != strings.Split(genuine, ".")[0] || parts[2] != "c3J0LWZha2U" {
			t.Errorf("CRED-19: %s: %q", tc.rule, fake)
			continue
		}
		payload, err := base64.RawURLEncoding.DecodeString(parts[1])
		if err != nil {
			t.Errorf("CRED-19: %s: %v", tc.rule, err)
		}
		if got := shown(t, s, payload); got != tc.want {
			t.Errorf("CRED-19: %s: %q, want %q", tc.rule, got, tc.want)
		}
		if got := valueOf(t, s, fake, "api.example.com"); got != genuine {
			t.Errorf("CRED-19: %s: the whole fake stands for %q", tc.rule, got)
		}
	}
	for _, tc := range []struct{ rule, payload string }{
		{"absent", `{"aud":"x"}`}, {"no string", `{"sub":1}`}, {"no object", `["sub"]`}, {"empty object", `{}`}, {"null", `null`},
	} {
		if got := maskJWT(t, newStore(t), jwt(plainHeader, tc.payload, "c2ln"), "sub").variable("JWT"); got != "<as it is>" {
			t.Errorf("CRED-19: %s: %q, want no match", tc.rule, got)
		}
	}
}

// TestClaimRotationCRED6: a refreshed token keeps the sentinels of its claims; an earlier fake of it stays valid and
// stands for the token of today.
func TestClaimRotationCRED6(t *testing.T) {
	s := newStore(t)
	first := jwt(plainHeader, `{"sub":"me","exp":1}`, "c2ln")
	second := jwt(plainHeader, `{"sub":"me2","exp":2}`, "c2lu")
	a := maskJWT(t, s, first, "sub").variable("JWT")
	b := maskJWT(t, s, second, "sub").variable("JWT")
	if a == b {
		t.Fatal("the fake does not show the members that are not masked")
	}
	claimOf := func(fake string) string {
		payload, _ := base64.RawURLEncoding.DecodeString(strings.Split(fake, ".")[1])
		return anySentinel.FindString(string(payload))
	}
	if claimOf(a) != claimOf(b) || valueOf(t, s, claimOf(a), "api.example.com") != "me2" {
		t.Errorf("CRED-6: the claim had %q and has %q", claimOf(a), claimOf(b))
	}
	for _, fake := range []string{a, b} {
		if got := valueOf(t, s, fake, "api.example.com"); got != second {
			t.Errorf("CRED-6: a fake stands for %q", got)
		}
	}
	if again := maskJWT(t, s, first, "sub").variable("JWT"); again != a {
		t.Errorf("CRED-6: the first token again has the fake %q, want %q", again, a)
	}
}

// TestJWTFileCRED18: what a file's pattern captures is masked if it is a JWT; the rest stays. Case 31.
func TestJWTFileCRED18(t *testing.T) {
	a := jwt(plainHeader, `{"sub":"me"}`, "c2ln")
	same := jwt(plainHeader, `{"sub":"me"}`, "b3RoZXI") // signed a second time: another token
	b := jwt(plainHeader, `{"aud":"x"}`, "c2ln")
	none := "eyJub.eyJub.x"
	text := "# " + a + "\ntoken=" + a + "\ntoken=" + none + " " + none + "\ntoken=" + b + "\ntoken=" + same + "\n"
	for _, tc := range []struct {
		rule   string
		cred   config.Credential
		copies bool
		masked string // how often each token is left: a, b, same, none
	}{
		{"the default pattern", config.Credential{}, false, "0 0 0 2"},
		{"a pattern", config.Credential{Extract: `token=(\S+)`}, false, "1 0 0 2"},
		{"a pattern and duplicates", config.Credential{Extract: `token=(\S+)`}, true, "0 0 0 2"},
		{"claims", config.Credential{MaskClaims: []string{"sub"}}, false, "0 1 0 2"},
	} {
		s := newStore(t)
		tc.cred.Decode = config.DecodeJWT
		l, path := fileLaunch(t, s, text, tc.cred, tc.copies)
		fake, err := l.File(0, path)
		if err != nil {
			t.Errorf("CRED-18: %s: %v", tc.rule, err)
			continue
		}
		left := make([]string, 0, 4)
		for _, token := range []string{a, b, same, none} {
			left = append(left, string(rune('0'+strings.Count(string(fake), token))))
		}
		if got := strings.Join(left, " "); got != tc.masked {
			t.Errorf("CRED-18: %s: %s tokens are left, want %s", tc.rule, got, tc.masked)
		}
		back := string(fake)
		for _, x := range s.secrets {
			value, _ := x.appendTo(nil)
			back = strings.ReplaceAll(back, x.sentinel, string(value))
		}
		if back != text {
			t.Errorf("CRED-18: %s: put back, the text is %q, want %q", tc.rule, back, text)
		}
	}
}

// TestTokenHoldsSentinelCRED5: a token whose spelling holds the beginning of a sentinel is not masked in part.
func TestTokenHoldsSentinelCRED5(t *testing.T) {
	spelled, err := base64.RawURLEncoding.DecodeString("Ifake_value_")
	if err != nil {
		t.Fatal(err)
	}
	// Nine bytes before it, so that what follows is spelled as it is.
	value := jwt(`{ "alg":"`+string(spelled)+`"}`, `{"sub":"me"}`, "c2ln")
	if !strings.Contains(value, sentinelPrefix) {
		t.Fatalf("the test does not spell it: %q", value)
	}
	_, err = launch(t, newStore(t), maskEnv(env("JWT", config.Credential{Decode: config.DecodeJWT, MaskClaims: []string{"sub"}})),
		map[string]string{"JWT": value})
	if err == nil {
		t.Error("CRED-5: a sentinel may be part of the fake of a token")
	}
}
