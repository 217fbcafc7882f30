package httphead

import "strings"

// Request is the head of a request. It shares no memory with the buffer that it was parsed from.
type Request struct {
	Method string // as spelled, a token
	Target string // as spelled, without blanks or control characters, not empty
	Minor  int    // the minor version: 0 or 1
	Header Header
}

// ParseRequest parses a head that [ReadHead] has read. Every error matches [ErrMalformed].
func ParseRequest(head []byte) (*Request, error) {
	line, rest, ok := cutLine(string(head))
	if !ok {
		return nil, ErrMalformed
	}
	method, tail, _ := strings.Cut(line, " ")
	target, version, _ := strings.Cut(tail, " ")
	minor, ok := parseVersion(version)
	if !ok || !isToken(method) || target == "" || !isFieldText(target) || strings.IndexByte(target, '\t') >= 0 {
		return nil, ErrMalformed
	}
	header, err := parseFields(rest)
	if err != nil {
		return nil, err
	}
	return &Request{Method: method, Target: target, Minor: minor, Header: header}, nil
}

// Response is the head of a response. It shares no memory with the buffer that it was parsed from.
type Response struct {
	Minor  int    // the minor version: 0 or 1
	Status int    // 100 to 999
	Reason string // as spelled, may be empty
	Header Header
}

// ParseResponse parses a head that [ReadHead] has read. Every error matches [ErrMalformed].
func ParseResponse(head []byte) (*Response, error) {
	line, rest, ok := cutLine(string(head))
	if !ok {
		return nil, ErrMalformed
	}
	version, tail, _ := strings.Cut(line, " ")
	// The blank after the status code is left out by some servers when the phrase is empty.
	code, reason, _ := strings.Cut(tail, " ")
	minor, ok := parseVersion(version)
	if !ok || len(code) != 3 || !isDigits(code) || code[0] == '0' || !isFieldText(reason) {
		return nil, ErrMalformed
	}
	header, err := parseFields(rest)
	if err != nil {
		return nil, err
	}
	status := int(code[0]-'0')*100 + int(code[1]-'0')*10 + int(code[2]-'0')
	return &Response{Minor: minor, Status: status, Reason: reason, Header: header}, nil
}

// parseVersion accepts HTTP/1.0 and HTTP/1.1. The name is case-sensitive (RFC 9112 section 2.3).
func parseVersion(s string) (minor int, ok bool) {
	switch s {
	case "HTTP/1.1":
		return 1, true
	case "HTTP/1.0":
		return 0, true
	}
	return 0, false
}

func isDigits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}
