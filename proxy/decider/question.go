package decider

import (
	"strconv"
	"strings"

	"github.com/srt-sandbox/srt/proxy/internal/httphead"
)

// maxNamed is the limit of host, Host, server name and path, in bytes of UTF-8 each (PRX-37).
const maxNamed = 8 << 10

// maxIDDigits is the length of the largest id.
const maxIDDigits = len("9007199254740991")

// question is a req without its id.
type question struct {
	rest []byte // from the comma after the id on, the closing brace included
}

// subject is what a decider is asked about.
type subject struct {
	method     string
	host       string // canonical, IPv6 without brackets
	port       uint16
	hostHeader string // as sent; empty: none
	sni        string // lower case; empty: none
	target     string // origin form as spelled, bytes
	header     httphead.Header
}

// tooMuch is why the decider cannot be asked about a request: a text of PRX-37.
type tooMuch string

// The texts of PRX-37.
const (
	headersTooLarge tooMuch = "request headers too large"
	targetTooLarge  tooMuch = "request target too large"
	frameTooLarge   tooMuch = "request too large for the decider"
	badHeader       tooMuch = "request header the decider cannot be asked about"
	badRequest      tooMuch = "request the decider cannot be asked about"
)

// newQuestion puts a subject into words, or says why that cannot be done: nothing is left out or shortened (PRX-26).
func newQuestion(s subject) (*question, tooMuch) {
	path, query, _ := strings.Cut(s.target, "?")
	path, query = latin1(path), latin1(query)
	if s.method == "" || s.host == "" || path == "" || s.port == 0 {
		return nil, badRequest
	}
	for _, named := range []string{s.host, s.hostHeader, s.sni, path} {
		if len(named) > maxNamed {
			return nil, targetTooLarge
		}
	}
	headers, why := groupHeaders(s.header)
	if why != "" {
		return nil, why
	}
	buf := append(make([]byte, 0, 256+len(s.target)), `,"method":`...)
	buf = appendString(buf, s.method)
	buf = append(buf, `,"host":`...)
	buf = appendString(buf, s.host)
	buf = append(buf, `,"port":`...)
	buf = strconv.AppendUint(buf, uint64(s.port), 10)
	buf = appendOptional(buf, "hostHeader", latin1(s.hostHeader))
	buf = appendOptional(buf, "sni", s.sni)
	buf = append(buf, `,"path":`...)
	buf = appendString(buf, path)
	buf = appendOptional(buf, "query", query)
	buf = append(appendHeaders(buf, headers), '}')
	if len(questionStart)+maxIDDigits+len(buf) > maxFrame {
		return nil, frameTooLarge
	}
	return &question{rest: buf}, ""
}

const questionStart = `{"t":"req","id":`

// frame is the whole frame.
func (q *question) frame(id uint64) []byte {
	buf := make([]byte, 0, lengthBytes+len(questionStart)+maxIDDigits+len(q.rest))
	buf = append(beginFrame(buf), questionStart...)
	buf = strconv.AppendUint(buf, id, 10)
	return finishFrame(append(buf, q.rest...))
}

func appendOptional(buf []byte, key, text string) []byte {
	if text == "" {
		return buf
	}
	buf = append(buf, `,"`...)
	buf = append(buf, key...)
	buf = append(buf, `":`...)
	return appendString(buf, text)
}

// groupHeaders collects the values of each name, Host excluded, in the order in which the names came first.
func groupHeaders(h httphead.Header) ([]setHeader, tooMuch) {
	var out []setHeader
	at := make(map[string]int, len(h))
	var size headerSize
	for _, f := range h {
		if f.Is("Host") {
			continue
		}
		name, text := lower(f.Name), latin1(f.Value)
		if !httphead.ValidName(f.Name) || !printable(text) {
			return nil, badHeader
		}
		i, known := at[name]
		if !known {
			i = len(out)
			at[name] = i
			out = append(out, setHeader{name: name})
		}
		out[i].values = append(out[i].values, text)
	}
	for _, h := range out {
		if !size.add(h) {
			return nil, headersTooLarge
		}
	}
	return out, ""
}

func lower(name string) string { return strings.ToLower(name) } // names are ASCII

func appendHeaders(buf []byte, headers []setHeader) []byte {
	for i, h := range headers {
		if i == 0 {
			buf = append(buf, `,"headers":{`...)
		} else {
			buf = append(buf, ',')
		}
		buf = append(appendString(buf, h.name), ':')
		for j, v := range h.values {
			buf = append(buf, "[,"[min(j, 1)])
			buf = appendString(buf, v)
		}
		buf = append(buf, ']')
	}
	if len(headers) > 0 {
		buf = append(buf, '}')
	}
	return buf
}
