package violation

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"
	"unicode/utf8"
)

// SchemaVersion is the value of "v" in the JSON lines. A field may be added without changing it; a field that changes its
// meaning or goes changes it.
const SchemaVersion = 1

// entryJSON is one refused operation, as docs/violations.md describes it.
type entryJSON struct {
	V         int    `json:"v"`
	Time      string `json:"time"`
	Seq       uint64 `json:"seq"`
	Repeats   uint64 `json:"repeats,omitempty"`
	ID        string `json:"id,omitempty"`
	Command   string `json:"command,omitempty"`
	PID       int    `json:"pid,omitempty"`
	Comm      string `json:"comm,omitempty"`
	Kind      Kind   `json:"kind"`
	Operation string `json:"operation"`
	Target    string `json:"target"`
	Path      string `json:"path,omitempty"`
	Host      string `json:"host,omitempty"`
	Port      uint16 `json:"port,omitempty"`
	Rule      string `json:"rule,omitempty"`
	Entry     string `json:"entry,omitempty"`
	Reason    string `json:"reason,omitempty"`
	Decision  string `json:"decision"`
	Advice    string `json:"advice"`
	Line      string `json:"line"`
}

// lossJSON is one gap in a stream.
type lossJSON struct {
	V    int    `json:"v"`
	Time string `json:"time"`
	Kind string `json:"kind"`
	Lost uint64 `json:"lost"`
	From string `json:"from"`
}

// AppendJSON appends one record as a JSON object in the schema of docs/violations.md, without a line end. The object is one
// line of printable text whatever the record holds: what [Clean] would take out is escaped. Bytes that are no UTF-8 become
// U+FFFD.
func AppendJSON(b []byte, r Record) []byte {
	e := r.Event
	file, host, port := e.Object()
	return appendJSON(b, entryJSON{
		V: SchemaVersion, Time: timeText(e.Time), Seq: r.Seq, Repeats: r.Repeats, ID: e.CommandID, Command: r.Command, PID: e.PID, Comm: e.Process,
		Kind: e.KindOf(), Operation: string(e.Operation), Target: e.jsonTarget(host, port), Path: file, Host: host, Port: port, Rule: e.Rule,
		Entry: e.Entry, Reason: e.Reason, Decision: "deny", Advice: e.Advice(), Line: r.Line,
	})
}

// jsonTarget is the Target with brackets around an IPv6 address before its port, which the line has not (VIO-11).
func (e Event) jsonTarget(host string, port uint16) string {
	if (e.Operation == NetworkOutbound || e.Operation == SOCKSTunnel) && strings.Contains(host, ":") && e.Target == HostPort(host, port) {
		return net.JoinHostPort(host, strconv.Itoa(int(port)))
	}
	return e.Target
}

// The places at which events are lost.
const (
	LostAtSource = "source" // between the kernel and srt
	LostAtReader = "reader" // the reader of the stream was too slow
)

// AppendLossJSON appends an object that says that n events are missing at this point of a stream, and where they were lost.
func AppendLossJSON(b []byte, n uint64, from string, at time.Time) []byte {
	return appendJSON(b, lossJSON{V: SchemaVersion, Time: timeText(at), Kind: "lost", Lost: n, From: from})
}

// timeText is RFC 3339 in UTC with nine digits behind the point, so that lines sort by it.
func timeText(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000000000Z07:00") }

func appendJSON(b []byte, v any) []byte {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil { // of strings and numbers there is none
		panic(fmt.Sprintf("violation: %v", err))
	}
	return escapeUnsafe(b, bytes.TrimSuffix(text.Bytes(), []byte{'\n'}))
}

// escapeUnsafe appends JSON text with every code point that a line must not hold written as an escape. The text is valid
// UTF-8 and has such code points inside strings only.
func escapeUnsafe(b, text []byte) []byte {
	for len(text) > 0 {
		r, size := utf8.DecodeRune(text)
		switch {
		case !isUnsafe(r):
			b = append(b, text[:size]...)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			b = fmt.Appendf(b, `\u%04x\u%04x`, high, low)
		default:
			b = fmt.Appendf(b, `\u%04x`, r)
		}
		text = text[size:]
	}
	return b
}
