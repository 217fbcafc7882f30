package decider

import (
	"slices"
	"strings"
	"testing"

	"github.com/srt-sandbox/srt/proxy/internal/httphead"
)

// lines parses "Name: value" lines.
func lines(text ...string) httphead.Header {
	var h httphead.Header
	for _, l := range text {
		name, value, _ := strings.Cut(l, ": ")
		h = append(h, httphead.Field{Name: name, Value: value})
	}
	return h
}

func text(h httphead.Header) []string {
	var out []string
	for _, f := range h {
		out = append(out, f.Name+": "+f.Value)
	}
	return out
}

func TestPRX46_47_Edits(t *testing.T) {
	for _, test := range []struct {
		name, verdict, host string
		client, want        []string
	}{
		{"order and spelling stay", ``, "", []string{"X-A: 1", "host: evil", "x-B: 2", "X-A: 3", "Authorization: mine"},
			[]string{"X-A: 1", "x-B: 2", "X-A: 3", "Authorization: mine"}},
		{"hop-by-hop in any spelling", ``, "",
			[]string{"Connection: x-one, Keep-Alive, x_two", "Keep-Alive: 1", "keep_alive: 1", "Proxy.Connection: 1", "Proxy-Authorization: s", "TE: trailers",
				"Trailer: a", "Transfer-Encoding: chunked", "transfer_encoding: chunked", "Upgrade: h2c", "Proxy-Authenticate: a", "X_One: 1", "x-two: 2", "X-Three: 3"},
			[]string{"X-Three: 3"}},
		{"Connection cannot take out what frames", ``, "", []string{"Connection: host, content-length, x"}, nil},
		{"lookalikes of framing", ``, "", []string{"Content_Length: 9", "content.length: 9", "X: 1"}, []string{"X: 1"}},
		{"case 7", `,"removeHeaders":["x-api-key"]`, "", []string{"X_API.KEY: s", "X-Api-Key: t", "X-Other: 1"}, []string{"X-Other: 1"}},
		{"case 8", `,"cred":"o","credential":"s"`, "", []string{"Authorization: mine", "Cookie: c", "X_API.Key: k", "Proxy_Authorization: p", "X: 1"},
			[]string{"X: 1", "Authorization: Bearer s"}},
		{"case 10", `,"cred":"github","credential":"ghs"`, "github.com", nil, []string{"Authorization: Basic eC1hY2Nlc3MtdG9rZW46Z2hz"}},
		{"case 10 another host", `,"cred":"github","credential":"ghs"`, "api.github.com", nil, []string{"Authorization: Bearer ghs"}},
		{"case 10 another class", `,"cred":"Github","credential":"ghs"`, "github.com", nil, []string{"Authorization: Bearer ghs"}},
		{"case 14 an empty list changes nothing", `,"setHeaders":{"x-a":[]}`, "", []string{"X-A: 1"}, []string{"X-A: 1"}},
		{"sets replace", `,"setHeaders":{"x-a":["2","3"]}`, "", []string{"X-A: 1", "x_a: 1", "X-B: 1"}, []string{"X-B: 1", "x-a: 2", "x-a: 3"}},
		{"one header under the first spelling", `,"setHeaders":{"x_a":["1"],"x-b":["2"],"x-a":["3"]}`, "", []string{"X-A: 0"},
			[]string{"x_a: 1", "x-b: 2", "x_a: 3"}},
		{"sets win over removals", `,"setHeaders":{"x-a":["1"]},"removeHeaders":["x-a","x-c"]`, "", []string{"X-A: 0", "X-C: 0"}, []string{"x-a: 1"}},
		{"Latin-1", `,"setHeaders":{"x-a":["é"]}`, "", nil, []string{"x-a: \xe9"}},
	} {
		v, ok := verdictOf(t, `{"t":"verdict","id":1,"action":"allow"`+test.verdict+`}`)
		if !ok {
			t.Fatalf("%s: bad verdict", test.name)
		}
		got, ok := edit(lines(test.client...), "H", v, defaultPlacements(), test.host)
		if want := append([]string{"Host: H"}, test.want...); !ok || !slices.Equal(text(got), want) {
			t.Errorf("%s:\ngot  %q\nwant %q", test.name, text(got), want)
		}
	}
}

func TestPRX49_AboveLatin1(t *testing.T) {
	v, _ := verdictOf(t, `{"t":"verdict","id":1,"action":"allow","setHeaders":{"x-a":["Ā"]}}`)
	if h, ok := edit(nil, "H", v, nil, "a"); ok {
		t.Errorf("it is forwarded as %q", text(h))
	}
}

func TestPRX47_OtherPlacements(t *testing.T) {
	rules := []Placement{
		{Class: "a", Host: "a.com", Field: "X-Key", Prefix: "key "},
		{Host: "a.com", User: "u"},
		{Class: "a", Prefix: "token "},
	}
	s, err := newSettings([]Option{WithPlacements(rules...)})
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ class, host, want string }{
		{"a", "a.com", "X-Key: key s"},
		{"b", "a.com", "Authorization: Basic dTpz"},
		{"a", "b.com", "Authorization: token s"},
		{"b", "b.com", "Authorization: Bearer s"},
		{"github", "github.com", "Authorization: Bearer s"},
	} {
		v := &verdict{action: actionAllow, class: test.class, credential: "s"}
		h, _ := edit(lines("x_key: mine", "Authorization: mine"), "H", v, s.placements, test.host)
		if want := test.want; test.want != "" && text(h)[len(h)-1] != want {
			t.Errorf("%s %s: %q, want %q", test.class, test.host, text(h), want)
		}
	}
	h, _ := edit(lines("x_key: mine"), "H", &verdict{class: "a", credential: "s"}, s.placements, "a.com")
	if len(h) != 2 {
		t.Errorf("the client's own %q goes beside the credential", text(h))
	}
	for _, bad := range []Placement{
		{Host: "A.com"}, {Host: "a b"}, {Field: "a b"}, {Field: "Content_Length"}, {Field: "Connection"}, {Field: "Proxy-Authorization"},
		{User: "a:b"}, {Prefix: "a\n"}, {Prefix: "é"},
	} {
		if _, err := newSettings([]Option{WithPlacements(bad)}); err == nil {
			t.Errorf("%+v is taken", bad)
		}
	}
}

func TestPRX68_StrippedResponses(t *testing.T) {
	s := newStripper([]string{"set-cookie", "X_Internal", "content-length"})
	got := s.strip(200, lines("X-Deny-Reason: fake", "x_deny.reason: fake", "Set_Cookie: a", "Set-Cookie: b", "x-internal: c", "Content-Length: 3",
		"Keep_Alive: 5", "Content-Type: text/plain", "Server: s"))
	if want := []string{"Content-Length: 3", "Content-Type: text/plain", "Server: s"}; !slices.Equal(text(got), want) {
		t.Errorf("case 28: %q", text(got))
	}
}
