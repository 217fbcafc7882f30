package decider

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

func TestPRX31_FramesThatAreRefused(t *testing.T) {
	for _, test := range []struct {
		frame string
		want  Reason
	}{
		{``, reasonNotJSON},
		{` `, reasonNotJSON},
		{`{`, reasonNotJSON},
		{`{}{}`, reasonNotJSON},
		{`{} x`, reasonNotJSON},
		{"\ufeff{}", reasonNotJSON},
		{`{'a':1}`, reasonNotJSON},
		{`{"a":1,}`, reasonNotJSON},
		{`{"a":01}`, reasonNotJSON},
		{`{"a":+1}`, reasonNotJSON},
		{`{"a":.5}`, reasonNotJSON},
		{`{"a":1.}`, reasonNotJSON},
		{`{"a":1e}`, reasonNotJSON},
		{`{"a":NaN}`, reasonNotJSON},
		{`{"a":tru}`, reasonNotJSON},
		{`{"a":[1 2]}`, reasonNotJSON},
		{`{"a":"` + "\n" + `"}`, reasonNotJSON},
		{`{"a":"\x"}`, reasonNotJSON},
		{`{"a":"\n` + "\x01" + `"}`, reasonNotJSON},
		{`{"a":"\u12"}`, reasonNotJSON},
		{`{"a":"\u+123"}`, reasonNotJSON},
		{`{"a":"\`, reasonNotJSON},
		{`{"a" 1}`, reasonNotJSON},
		{`{"a":null,`, reasonNotJSON}, // no JSON at all counts before what is refused in it
		{strings.Repeat("[", 1<<20), reasonNotJSON},
		{"{\"a\":\"\xff\"}", reasonNotUTF8},
		{"{\"a\":\"\xed\xa0\x80\"}", reasonNotUTF8}, // a surrogate in UTF-8
		{`null`, reasonNotObject},
		{`1`, reasonNotObject},
		{`"a"`, reasonNotObject},
		{`[{}]`, reasonNotObject},
		{`{"a":null}`, reasonNull},
		{`{"a":[{"b":[null]}]}`, reasonNull},
		{`{"a":"\ud800"}`, reasonSurrogate},
		{`{"a":"\udc00\ud800"}`, reasonSurrogate},
		{`{"a":"\ud800\u0041"}`, reasonSurrogate},
		{`{"a":"\ud800x"}`, reasonSurrogate},
		{`{"\udfff":1}`, reasonSurrogate},
		{`{"t":"hello","proto":1,"proto":1}`, reasonDuplicate},
		{`{"\u0074":"hello","t":"hello"}`, reasonDuplicate},
		{`{"a":{"b":1,"b":1}}`, reasonDuplicate},
		{`{"a":[{"":1,"":1}]}`, reasonDuplicate},
		{`{"a":1,"A":1}`, ""},
		{`{"a":"\ud83d\ude00"}`, ""},
		{" {\t\"a\" :\r\n[ 1 , true , false , \"\" , { } , [ ] ] } ", ""},
		{`{"a":-0.5e+10}`, ""},
	} {
		if _, got := parseObject([]byte(test.frame)); got != test.want {
			t.Errorf("%.60q: %q, want %q", test.frame, got, test.want)
		}
	}
}

func TestPRX31_NumbersCountByValue(t *testing.T) {
	for text, want := range map[string]int64{
		"1": 1, "1.0": 1, "1e0": 1, "10e-1": 1, "0.1e1": 1, "100E-2": 1, "0": 0, "-0": 0, "0e999999999999": 0, "-0.0": 0,
		"9007199254740991": maxInteger, "9007199254740991.000": maxInteger, "9007199254740991000e-3": maxInteger,
		"4096": 4096, "4.096e3": 4096, "1e15": 1e15,
		"9007199254740992": -1, "9007199254740993": -1, "1e16": -1, "1e999999999999": -1, "1e400": -1, "1.5": -1, "1e-1": -1, "-1": -1,
		"1.00000000000000000001": -1, "18446744073709551617": -1,
	} {
		v, reason := parseObject([]byte(`{"n":` + text + `}`))
		if reason != "" {
			t.Fatalf("%s: %s", text, reason)
		}
		n, ok := v.member("n").integer()
		if !ok && want != -1 || ok && int64(n) != want {
			t.Errorf("%s: %d, %v; want %d", text, n, ok, want)
		}
	}
}

func TestPRX31_StringsAreDecodedAsEncodingJSONDoes(t *testing.T) {
	for _, text := range []string{`"\"\\\/\b\f\n\r\t\u00e9\uD83D\uDE00é"`, `""`, `"a\u0000b"`, `"\u005c\u0022"`} {
		v, reason := parseObject([]byte(`{"s":` + text + `}`))
		var want string
		if err := json.Unmarshal([]byte(text), &want); err != nil || reason != "" {
			t.Fatalf("%s: %v %s", text, err, reason)
		}
		if got := v.member("s").text; got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

// encode writes a value as JSON.
func encode(buf []byte, v *value) []byte {
	switch v.kind {
	case kindObject:
		buf = append(buf, '{')
		for i := range v.items {
			if i > 0 {
				buf = append(buf, ',')
			}
			buf = encode(append(appendString(buf, v.keys[i]), ':'), &v.items[i])
		}
		return append(buf, '}')
	case kindArray:
		buf = append(buf, '[')
		for i := range v.items {
			if i > 0 {
				buf = append(buf, ',')
			}
			buf = encode(buf, &v.items[i])
		}
		return append(buf, ']')
	case kindString:
		return appendString(buf, v.text)
	case kindNumber:
		return append(buf, v.text...)
	}
	return fmt.Append(buf, v.yes)
}
