package decider

import (
	"fmt"
	"strings"
	"testing"
)

func verdictOf(t testing.TB, frame string) (*verdict, bool) {
	t.Helper()
	v, reason := parseObject([]byte(frame))
	if reason != "" {
		t.Fatalf("%.100s: %s", frame, reason)
	}
	return parseVerdict(v)
}

func list(n int, item string) string {
	return "[" + strings.TrimSuffix(strings.Repeat(item+",", n), ",") + "]"
}

func TestPRX40to45_Verdicts(t *testing.T) {
	long := strings.Repeat("a", 8192)
	names := make([]string, 191)
	for i := range names {
		names[i] = fmt.Sprintf(`"n%d"`, i)
	}
	for _, test := range []struct {
		rule, rest string
		want       bool
	}{
		{"PRX-40", `"action":"allow"`, true},
		{"PRX-40 action", `"action":"Allow"`, false},
		{"PRX-40 action", `"action":1`, false},
		{"PRX-40 unknown field", `"action":"allow","x":1`, false},
		{"PRX-40 field of another action", `"action":"allow","status":403`, false},
		{"PRX-40 field of another action", `"action":"allow","max":1`, false},
		{"PRX-41", `"action":"deny","status":403`, true},
		{"PRX-41", `"action":"deny","status":4.03e2,"reason":"no\tway é"`, true},
		{"PRX-41 case 12", `"action":"deny","status":399`, false},
		{"PRX-41", `"action":"deny","status":599`, true},
		{"PRX-41", `"action":"deny","status":600`, false},
		{"PRX-41", `"action":"deny","status":403.5`, false},
		{"PRX-41", `"action":"deny","status":"403"`, false},
		{"PRX-41 missing", `"action":"deny"`, false},
		{"PRX-41 missing", `"action":"deny","reason":"no"`, false},
		{"PRX-41 case 12", `"action":"deny","status":403,"reason":""`, false},
		{"PRX-41 case 12", `"action":"deny","status":403,"reason":"a\nb"`, false},
		{"PRX-41 C1", `"action":"deny","status":403,"reason":"a\u0085b"`, false},
		{"PRX-41 DEL", `"action":"deny","status":403,"reason":"a\u007f"`, false},
		{"PRX-41", `"action":"deny","status":403,"reason":"` + long[:1024] + `"`, true},
		{"PRX-41 case 12", `"action":"deny","status":403,"reason":"` + long[:1025] + `"`, false},
		{"PRX-41 bytes, not characters", `"action":"deny","status":403,"reason":"` + strings.Repeat("é", 513) + `"`, false},
		{"PRX-42", `"action":"need_body","max":1`, true},
		{"PRX-42", `"action":"need_body","max":33554432`, true},
		{"PRX-42", `"action":"need_body","max":33554433`, false},
		{"PRX-42", `"action":"need_body","max":0`, false},
		{"PRX-42 missing", `"action":"need_body"`, false},
		{"PRX-42", `"action":"need_body","max":true`, false},
		{"PRX-43", `"action":"allow","setHeaders":{"x-a":["1","2"],"x_a":[],"x.b":["tab\there"]},"removeHeaders":["x-a","x_a","authorization","cookie"]`, true},
		{"PRX-43 case 13", `"action":"allow","setHeaders":{}`, false},
		{"PRX-43 case 13", `"action":"allow","removeHeaders":[]`, false},
		{"PRX-43 case 13", `"action":"allow","setHeaders":{"X-A":["1"]}`, false},
		{"PRX-43", `"action":"allow","setHeaders":{"x a":["1"]}`, false},
		{"PRX-43", `"action":"allow","setHeaders":{"":["1"]}`, false},
		{"PRX-43", `"action":"allow","setHeaders":{"x-a":"1"}`, false},
		{"PRX-43", `"action":"allow","setHeaders":{"x-a":[1]}`, false},
		{"PRX-43", `"action":"allow","setHeaders":["x-a"]`, false},
		{"PRX-43 control", `"action":"allow","setHeaders":{"x-a":["a\r\nb: c"]}`, false},
		{"PRX-43 C1", `"action":"allow","setHeaders":{"x-a":["\u009f"]}`, false},
		{"PRX-43 empty value", `"action":"allow","setHeaders":{"x-a":[""]}`, true},
		{"PRX-43 above Latin-1 is PRX-49's", `"action":"allow","setHeaders":{"x-a":["Ā"]}`, true},
		{"PRX-43", `"action":"allow","setHeaders":{"x-a":` + list(190, `"v"`) + `}`, true},
		{"PRX-43 case 13", `"action":"allow","setHeaders":{"x-a":` + list(191, `"v"`) + `}`, false},
		{"PRX-43 a name counts one", `"action":"allow","setHeaders":{"x-a":` + list(190, `"v"`) + `,"x-b":[]}`, false},
		{"PRX-43", `"action":"allow","setHeaders":{"x":["` + strings.Repeat("v", 65535) + `"]}`, true},
		{"PRX-43", `"action":"allow","setHeaders":{"x":["` + strings.Repeat("v", 65536) + `"]}`, false},
		{"PRX-43 removals", `"action":"allow","removeHeaders":[` + strings.Join(names[:190], ",") + `]`, true},
		{"PRX-43 removals", `"action":"allow","removeHeaders":[` + strings.Join(names, ",") + `]`, false},
		{"PRX-43 twice", `"action":"allow","removeHeaders":["x","x"]`, false},
		{"PRX-43 case", `"action":"allow","removeHeaders":["X"]`, false},
		{"PRX-43 size", `"action":"allow","removeHeaders":["` + strings.Repeat("x", 65537) + `"]`, false},
		{"PRX-44 case 13", `"action":"allow","setHeaders":{"x_api.key":["1"]}`, false},
		{"PRX-44 case 13", `"action":"allow","setHeaders":{"content_length":["1"]}`, false},
		{"PRX-44 even empty", `"action":"allow","setHeaders":{"host":[]}`, false},
		{"PRX-45", `"action":"allow","cred":"o","credential":"s"`, true},
		{"PRX-45 case 13", `"action":"allow","cred":"o"`, false},
		{"PRX-45", `"action":"allow","credential":"s"`, false},
		{"PRX-45", `"action":"allow","cred":"","credential":"s"`, false},
		{"PRX-45", `"action":"allow","cred":"o","credential":""`, false},
		{"PRX-45 case 13", `"action":"allow","cred":"o","credential":"a b"`, false},
		{"PRX-45", `"action":"allow","cred":"o","credential":"é"`, false},
		{"PRX-45", `"action":"allow","cred":"o","credential":"!~"`, true},
		{"PRX-45", `"action":"allow","cred":"o","credential":"` + long + `"`, true},
		{"PRX-45 case 13", `"action":"allow","cred":"o","credential":"` + long + `a"`, false},
		{"PRX-40 no id", `"id":0,"action":"allow"`, false},
	} {
		frame := `{"t":"verdict","id":1,` + test.rest + `}`
		if strings.HasPrefix(test.rest, `"id"`) {
			frame = `{"t":"verdict",` + test.rest + `}`
		}
		if _, got := verdictOf(t, frame); got != test.want {
			t.Errorf("%s: %.120s: %v", test.rule, test.rest, got)
		}
	}
	for id, want := range map[string]bool{"1": true, "1.0": true, "9007199254740991": true, "9007199254740992": false, "-1": false, "0.5": false, `"1"`: false} {
		if _, got := verdictOf(t, `{"t":"verdict","id":`+id+`,"action":"allow"}`); got != want {
			t.Errorf("PRX-42: id %s: %v", id, got)
		}
	}
	for _, frame := range []string{
		`{"id":1,"action":"allow"}`, `{"t":"verdict","action":"allow"}`, `{"t":"verdict","id":1}`, `{"t":"hello","id":1,"action":"allow"}`, `{}`,
		`{"t":"hello","proto":1,"allowedDomains":[],"deniedDomains":[]}`,
	} {
		if _, ok := verdictOf(t, frame); ok {
			t.Errorf("PRX-31, PRX-32: %s is taken", frame)
		}
	}
}

func TestPRX44_Names(t *testing.T) {
	for _, name := range framingNames {
		for _, spelled := range []string{name, strings.ReplaceAll(name, "-", "_"), strings.ReplaceAll(name, "-", ".")} {
			for _, rest := range []string{`"setHeaders":{"` + spelled + `":["1"]}`, `"removeHeaders":["` + spelled + `"]`} {
				if _, ok := verdictOf(t, `{"t":"verdict","id":1,"action":"allow",`+rest+`}`); ok {
					t.Errorf("%s is taken", rest)
				}
			}
		}
	}
	for _, name := range credentialNames {
		if _, ok := verdictOf(t, `{"t":"verdict","id":1,"action":"allow","setHeaders":{"`+name+`":["1"]}}`); ok {
			t.Errorf("%s can be set", name)
		}
		if _, ok := verdictOf(t, `{"t":"verdict","id":1,"action":"allow","removeHeaders":["`+name+`"]}`); !ok {
			t.Errorf("%s cannot be removed", name)
		}
	}
}
