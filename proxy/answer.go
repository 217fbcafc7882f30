package proxy

import (
	"net"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/srt-sandbox/srt/runtime/policy"
	"github.com/srt-sandbox/srt/runtime/violation"
)

// answer is a response of srt's own: one row of the table "HTTP answers".
type answer struct {
	status string // code and phrase
	mark   string // X-Proxy-Error, empty for none
	extra  string // further field lines, each with its CRLF
	body   string
}

// The marks of refusals.
const (
	markAllowlist = "blocked-by-allowlist"
	markRuntime   = "blocked-by-sandbox-runtime"
	markAmbiguous = "ambiguous-request-target"
)

// The rows that do not depend on a request.
var (
	answer407 = answer{status: "407 Proxy Authentication Required", extra: "Proxy-Authenticate: Basic realm=\"srt\"\r\n"}
	answer400 = answer{status: "400 Bad Request"}
	answer417 = answer{status: "417 Expectation Failed"}
	answer431 = answer{status: "431 Request Header Fields Too Large"}

	tunnelFailed   = answer{status: "502 Bad Gateway"}
	tunnelInternal = answer{status: "500 Internal Server Error"}
	plainFailed    = answer{status: "502 Bad Gateway", body: "Bad Gateway"}
	plainInternal  = answer{status: "500 Internal Server Error", body: "Internal Server Error"}
)

// tunnelOpaque is the answer to a CONNECT that is allowed and cannot be inspected (REQ-4).
func tunnelOpaque(reason string) answer {
	return answer{status: "403 Forbidden", mark: markRuntime, body: reason}
}

const reasonOpaque = "this proxy does not tunnel CONNECTs it cannot inspect"

// tunnelRefused is the answer to a CONNECT that NET-7 refuses. The phrase is all that many clients show.
func tunnelRefused(v policy.Verdict) answer {
	return answer{
		status: "403 " + violation.StatusPhrase(v.Reason), mark: markAllowlist,
		body: "Connection blocked by network allowlist",
	}
}

// plainRefused is the answer to a plain request that NET-7 refuses. Its phrase is fixed, so the reason is a second line.
func plainRefused(v policy.Verdict) answer {
	reason := violation.CutUTF16(violation.Clean(v.Reason), violation.PhraseLimit)
	return answer{
		status: "403 Forbidden", mark: markAllowlist,
		body: "Connection blocked by network allowlist\n" + reason + "\n",
	}
}

// tunnelResolved and plainResolved are the answers to a host that resolved to refused addresses only (NET-52).
func tunnelResolved(e *ResolvedError) answer {
	return answer{status: "403 " + e.Reason(), mark: markRuntime, body: resolvedBody(e)}
}

func plainResolved(e *ResolvedError) answer {
	return answer{status: "403 Forbidden", mark: markRuntime, body: resolvedBody(e) + "\n"}
}

func resolvedBody(e *ResolvedError) string {
	return "Connection to " + e.Host + " blocked: " + e.Reason()
}

// statusLine is a status with its phrase.
func statusLine(status int) string { return strconv.Itoa(status) + " " + statusText(status) }

// statusText is the phrase of a status of RFC 9110 and its companions that a filter may choose, or "": the phrase may be
// empty (RFC 9112 section 4). Package net/http has the same table, but linking it costs every start of srt.
func statusText(status int) string {
	phrases := [...]struct {
		status int
		phrase string
	}{
		{400, "Bad Request"}, {401, "Unauthorized"}, {402, "Payment Required"}, {403, "Forbidden"}, {404, "Not Found"},
		{405, "Method Not Allowed"}, {406, "Not Acceptable"}, {407, "Proxy Authentication Required"},
		{408, "Request Timeout"}, {409, "Conflict"}, {410, "Gone"}, {411, "Length Required"},
		{412, "Precondition Failed"}, {413, "Content Too Large"}, {414, "URI Too Long"},
		{415, "Unsupported Media Type"}, {416, "Range Not Satisfiable"}, {417, "Expectation Failed"},
		{421, "Misdirected Request"}, {422, "Unprocessable Content"}, {423, "Locked"}, {424, "Failed Dependency"},
		{425, "Too Early"}, {426, "Upgrade Required"}, {428, "Precondition Required"}, {429, "Too Many Requests"},
		{431, "Request Header Fields Too Large"}, {451, "Unavailable For Legal Reasons"},
		{500, "Internal Server Error"}, {501, "Not Implemented"}, {502, "Bad Gateway"}, {503, "Service Unavailable"},
		{504, "Gateway Timeout"}, {505, "HTTP Version Not Supported"}, {507, "Insufficient Storage"},
		{508, "Loop Detected"}, {511, "Network Authentication Required"},
	}
	for _, p := range phrases {
		if p.status == status {
			return p.phrase
		}
	}
	return ""
}

// append renders the answer. bodyless leaves out the body, not its length: for HEAD.
func (a answer) append(buf []byte, bodyless, last bool) []byte {
	buf = append(buf, "HTTP/1.1 "...)
	buf = append(buf, a.status...)
	buf = append(buf, "\r\n"...)
	if a.mark != "" {
		buf = append(buf, "X-Proxy-Error: "+a.mark+"\r\n"...)
	}
	buf = append(buf, a.extra...)
	if a.body != "" {
		buf = append(buf, "Content-Type: "+contentType(a.body)+"\r\n"...)
	}
	buf = append(buf, "Content-Length: "...)
	buf = strconv.AppendInt(buf, int64(len(a.body)), 10)
	buf = append(buf, "\r\n"...)
	if last {
		buf = append(buf, "Connection: close\r\n"...)
	}
	buf = append(buf, "\r\n"...)
	if !bodyless {
		buf = append(buf, a.body...)
	}
	return buf
}

// contentType is text/plain; only a body beyond ASCII, which a deny reason can cause, has to name its encoding.
func contentType(body string) string {
	for i := range len(body) {
		if body[i] >= utf8.RuneSelf {
			return "text/plain; charset=utf-8"
		}
	}
	return "text/plain"
}

// The bounds of lingerClose.
const (
	lingerTime  = time.Second
	lingerBytes = 256 << 10
)

// lingerClose ends the sending side and drops what the client still sends, within bounds: closing a socket with unread
// input resets the connection, and the reset can overtake the answer (RFC 9112 section 9.6). The caller closes c.
func lingerClose(c net.Conn) {
	if closeWrite(c) != nil {
		return
	}
	_ = c.SetReadDeadline(time.Now().Add(lingerTime))
	drop(c)
}

// drop reads, within a bound, what nobody wants to know.
func drop(c net.Conn) {
	buf := make([]byte, 4<<10)
	for dropped := 0; dropped < lingerBytes; {
		n, err := c.Read(buf)
		if err != nil {
			return
		}
		dropped += n
	}
}
