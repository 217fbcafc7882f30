package proxy

import (
	"encoding/binary"
	"strings"
	"time"

	"github.com/srt-sandbox/srt/runtime/violation"
)

// sshPort is where a refusal can be told in the protocol of the client.
const sshPort = 22

// sshBanner is the identification that precedes our only packet (RFC 4253 section 4.2).
const sshBanner = "SSH-2.0-policy_refusal\r\n"

// noAuthentication tells a client that can never connect why (NET-44).
const noAuthentication = "This proxy requires authentication, and this client did not offer an authentication method, " +
	"so the connection was refused."

// refuseUnauthenticated serves a client that offered no authentication although a token exists (NET-43). It never
// connects and consults the deny list alone. To port 22 the refusal is an SSH message, which the user sees; elsewhere
// there is only the reply code.
func (c *client) refuseUnauthenticated() {
	_ = c.conn.SetReadDeadline(time.Now().Add(c.limits.SOCKSRefusal))
	req, ok := c.nextSOCKSRequest()
	if !ok {
		return
	}
	v := c.policy().DenyOnly(req.host, req.port)
	if v.Denied {
		c.reportVerdict(v, req.host, req.port, "")
	}
	if v.Malformed || req.port != sshPort {
		c.replyLast(socksRefused)
		return
	}
	description := noAuthentication
	if v.Denied {
		description = v.Reason
	}
	if !c.reply(socksGranted) {
		return
	}
	if _, err := c.conn.Write(sshDisconnect(description)); err == nil {
		c.awaitEnd()
	}
}

// awaitEnd drops what an SSH client still sends until it ends, within the time of NET-43. Its output ends only then: a
// ProxyCommand that sees the end exits, and ssh, whose next write fails, shows "Broken pipe" in the place of the message.
func (c *client) awaitEnd() {
	_ = c.conn.SetReadDeadline(time.Now().Add(c.limits.SOCKSRefusal))
	drop(c.conn)
}

// sshDisconnect is an identification and an unencrypted SSH_MSG_DISCONNECT with reason "host not allowed to connect"
// (RFC 4253 sections 6 and 11.1).
func sshDisconnect(description string) []byte {
	description = sshDescription(description)
	payload := []byte{1}                                // SSH_MSG_DISCONNECT
	payload = binary.BigEndian.AppendUint32(payload, 1) // SSH_DISCONNECT_HOST_NOT_ALLOWED_TO_CONNECT
	payload = binary.BigEndian.AppendUint32(payload, uint32(len(description)))
	payload = append(payload, description...)
	payload = binary.BigEndian.AppendUint32(payload, 0) // language tag
	// Length, padding length, payload and padding together are a multiple of 8, with 4 bytes of padding or more.
	padding := 8 - (5+len(payload))%8
	if padding < 4 {
		padding += 8
	}
	packet := []byte(sshBanner)
	packet = binary.BigEndian.AppendUint32(packet, uint32(1+len(payload)+padding))
	packet = append(packet, byte(padding))
	packet = append(packet, payload...)
	return append(packet, make([]byte, padding)...)
}

// sshDescription cleans a reason: each run of C0, DEL and C1 becomes a space, and at most 1000 UTF-16 units stay (NET-44).
func sshDescription(s string) string {
	const limit = 1000
	var b strings.Builder
	inRun := false
	for _, r := range s {
		control := r < 0x20 || 0x7f <= r && r <= 0x9f
		switch {
		case !control:
			b.WriteRune(r)
		case !inRun:
			b.WriteByte(' ')
		}
		inRun = control
	}
	return violation.CutUTF16(b.String(), limit)
}
