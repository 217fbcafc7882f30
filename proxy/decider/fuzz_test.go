package decider

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"
	"unicode/utf8"

	"github.com/srt-sandbox/srt/proxy/internal/httphead"
)

// FuzzFrame holds the parser against encoding/json: both take the same texts for JSON, and what is accepted means the same
// when it is written and read again (PRX-31).
func FuzzFrame(f *testing.F) {
	for _, seed := range []string{
		allowAll, `{"t":"verdict","id":1.0,"action":"allow","setHeaders":{"x-a":["1"]}}`, `{"a":null}`, `{"a":"\ud800"}`, `{"a":1,"\u0061":2}`,
		`{"a":[1e5,-0.5,true,false,"\ud83d\ude00\n"]} `, `{"a":01}`, `[1,]`, "\xff", ``, `{"__proto__":{"__proto__":{}}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, frame []byte) {
		v, reason := parseObject(frame)
		if !utf8.Valid(frame) {
			if reason != reasonNotUTF8 {
				t.Fatalf("%q: %q", frame, reason)
			}
			return
		}
		deep := bytes.Count(frame, []byte("[")) + bytes.Count(frame, []byte("{"))
		if valid := json.Valid(frame); valid == (reason == reasonNotJSON) && (deep <= maxDepth || !valid) {
			t.Fatalf("%q: %q, but encoding/json says %v", frame, reason, valid)
		}
		if reason != "" {
			if v != nil {
				t.Fatal("a refused frame has a value")
			}
			return
		}
		var want, got any
		if err := json.Unmarshal(frame, &want); err != nil {
			return // a number beyond float64
		}
		again := encode(nil, v)
		if err := json.Unmarshal(again, &got); err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("%q was read as %q", frame, again)
		}
		w, reason := parseObject(again)
		if reason != "" || !reflect.DeepEqual(v, w) {
			t.Fatalf("%q, written again, is %q: %q", frame, again, reason)
		}
	})
}

// FuzzVerdict holds that whatever verdict is accepted, the header that goes upstream can be written, has one Host, and no
// header that frames a message (PRX-43 to PRX-46).
func FuzzVerdict(f *testing.F) {
	for _, seed := range []string{
		`{"t":"verdict","id":1,"action":"allow","setHeaders":{"x-a":["1","é"],"x_a":["2"]},"removeHeaders":["cookie"],"cred":"github","credential":"s"}`,
		`{"t":"verdict","id":9007199254740991,"action":"deny","status":599,"reason":"no\t"}`, `{"t":"verdict","id":1e0,"action":"need_body","max":33554432}`,
		`{"t":"verdict","id":1,"action":"allow","setHeaders":{"content_length":["1"]}}`, allowAll,
	} {
		f.Add([]byte(seed), "X_A", "Content.Length: 4")
	}
	f.Fuzz(func(t *testing.T, frame []byte, name, value string) {
		message, reason := parseObject(frame)
		if reason != "" {
			return
		}
		if h := parseHello(message); h != nil {
			return
		}
		v, ok := parseVerdict(message)
		if !ok {
			return
		}
		if v.id == 0 || v.id > maxInteger || v.action == actionDeny && (v.status < 400 || v.status > 599) || !printable(v.reason) {
			t.Fatalf("%q is accepted", frame)
		}
		client := httphead.Header{{Name: "Host", Value: "a"}}
		if httphead.ValidName(name) && httphead.ValidValue(value) {
			client = append(client, httphead.Field{Name: name, Value: value})
		}
		h, ok := edit(client, "h", v, defaultPlacements(), "github.com")
		if !ok {
			return
		}
		hosts := 0
		for _, field := range h {
			folded := httphead.Fold(field.Name)
			if folded == "host" {
				hosts++
			}
			if !httphead.ValidName(field.Name) || !httphead.ValidValue(field.Value) || folded == "transfer-encoding" || folded == "content-length" && field.Name != name {
				t.Fatalf("%q sends %q", frame, field)
			}
		}
		if hosts != 1 {
			t.Fatalf("%d Host headers", hosts)
		}
	})
}
