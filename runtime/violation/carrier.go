package violation

import (
	"encoding/base64"
	"strings"
	"unicode/utf8"
)

// keyLimit is how much of an attribution key counts, in UTF-16 units (VIO-2).
const keyLimit = 100

// Carrier is the form in which an attribution key is carried and compared: the padded standard base64 of the UTF-8 of its
// first 100 UTF-16 units. A pair that the limit cuts in half counts as U+FFFD, as does each byte that is no UTF-8 (VIO-2). Two keys are one if their carriers
// are equal. An empty key has an empty carrier.
func Carrier(key string) string {
	cut := CutUTF16(key, keyLimit)
	halved := len(cut) < len(key) && cut == CutUTF16(key, keyLimit-1) // a unit is left, the next code point takes two
	if cut = string([]rune(cut)); halved {
		cut += string(utf8.RuneError)
	}
	return base64.StdEncoding.EncodeToString([]byte(cut))
}

// Annotate appends the lines of records to what a command wrote to standard error (VIO-33). Without records stderr comes
// back unchanged. eol is the end of a line: "\n", on Windows "\r\n".
func Annotate(stderr string, records []Record, eol string) string {
	if len(records) == 0 {
		return stderr
	}
	var b strings.Builder
	b.WriteString(stderr)
	b.WriteString(eol + "<sandbox_violations>" + eol)
	for _, r := range records {
		b.WriteString(r.Line + eol)
	}
	b.WriteString("</sandbox_violations>")
	return b.String()
}
