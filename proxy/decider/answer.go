package decider

import (
	"strconv"

	"github.com/srt-sandbox/srt/proxy/internal/inspect"
)

// denyField tells a client that the proxy refused, and why (PRX-65).
const denyField = "X-Deny-Reason"

// mark is a value of X-Deny-Reason.
type mark string

// The values of PRX-65.
const (
	markBadRequest  mark = "bad_request"
	markHost        mark = "host_not_allowed"
	markOpaque      mark = "opaque_tunnel"
	markTunnels     mark = "too_many_tunnels"
	markMisdirected mark = "misdirected"
	markMethod      mark = "method_refused"
	markDecider     mark = "decider"
	markUnavailable mark = "decider_unavailable"
	markBodyless    mark = "bodyless_method_body"
	markPlaintext   mark = "plaintext_header_set"
	markAddress     mark = "address_not_allowed"
	markDenied      mark = "denied"
)

// refusals are the status of each mark but markDecider, and the text where it is always the same (PRX-65).
var refusals = [...]struct {
	mark   mark
	status int
	text   string
}{
	{markBadRequest, 400, ""},
	{markHost, 403, "Connection blocked by network allowlist"},
	{markOpaque, 403, "this proxy does not tunnel CONNECTs it cannot inspect"},
	{markTunnels, 503, "too many TLS-terminated tunnels at once"},
	{markMisdirected, 421, "the request names another host than the one that it is sent to"},
	{markMethod, 405, "the TRACE method is not forwarded"},
	{markUnavailable, 503, ""},
	{markBodyless, 403, ""},
	{markPlaintext, 403, "no header or credential is set on a request received in cleartext"},
	{markAddress, 403, ""},
	{markDenied, 403, "denied: the verdict cannot be carried out"},
}

// phrases are those of the answers of this proxy; a denial with another status has "Denied".
var phrases = [...]struct {
	status int
	phrase string
}{
	{400, "Bad Request"}, {403, "Forbidden"}, {405, "Method Not Allowed"}, {421, "Misdirected Request"},
	{502, "Bad Gateway"}, {503, "Service Unavailable"},
}

// refuse is the answer of a mark. An empty text stands for the one of the table.
func refuse(m mark, text, method string) inspect.Answer {
	for _, r := range refusals {
		if r.mark != m {
			continue
		}
		if text == "" {
			text = r.text
		}
		return answer(r.status, m, text, method)
	}
	return answer(403, markDenied, "", method)
}

// answer renders an answer of the proxy's own with a one-line text, which may be empty. A response to HEAD has no body, and
// a refused CONNECT keeps its: the connection is closed after it in any case.
func answer(status int, m mark, text, method string) inspect.Answer {
	phrase := "Denied"
	for _, p := range phrases {
		if p.status == status {
			phrase = p.phrase
		}
	}
	buf := append([]byte("HTTP/1.1 "), strconv.Itoa(status)+" "+phrase+"\r\n"...)
	if m != "" {
		buf = append(buf, denyField+": "+string(m)+"\r\n"...)
	}
	if text != "" {
		text += "\n"
		kind := "text/plain"
		if !ascii(text) {
			kind += "; charset=utf-8"
		}
		buf = append(buf, "Content-Type: "+kind+"\r\n"...)
	}
	buf = append(buf, "Content-Length: "+strconv.Itoa(len(text))+"\r\nConnection: close\r\n\r\n"...)
	if method == "HEAD" {
		return buf
	}
	return append(buf, text...)
}

// defaultDenial is what a client reads for a deny without a reason (PRX-41).
const defaultDenial = "denied by sandbox policy"
