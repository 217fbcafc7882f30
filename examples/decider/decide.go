package main

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// policy is what this decider decides by. It is made for one link and not safe for concurrent use: it answers one question
// after another, which is enough as long as an answer needs no waiting.
type policy struct {
	allow          []string
	forbid         string
	credentialHost string
	credential     string
}

// message is a frame of the proxy, of whatever type. What this policy does not ask for is left out.
type message struct {
	T      string `json:"t"`
	Proto  int    `json:"proto"`
	ID     uint64 `json:"id"`
	Method string `json:"method"`
	Host   string `json:"host"`
	SNI    string `json:"sni"`
	Data   string `json:"data"`
	Cut    bool   `json:"cut"`
}

// verdict is an answer. Optional fields are left out when empty: the protocol has no empty ones.
type verdict struct {
	T          string `json:"t"`
	ID         uint64 `json:"id"`
	Action     string `json:"action"`
	Status     int    `json:"status,omitempty"`
	Reason     string `json:"reason,omitempty"`
	Max        int    `json:"max,omitempty"`
	Cred       string `json:"cred,omitempty"`
	Credential string `json:"credential,omitempty"`
}

// maxBody is how much of a body is looked at, in bytes.
const maxBody = 64 << 10

// decide answers the proxy until it ends the link.
func (p *policy) decide(r io.Reader, w io.Writer) error {
	waiting := map[uint64]message{} // requests whose bodies were asked for
	for {
		var m message
		if err := readFrame(r, &m); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		var answer any
		switch m.T {
		case "hello":
			if m.Proto != 1 {
				return fmt.Errorf("the proxy speaks protocol %d", m.Proto)
			}
			answer = map[string]any{"t": "hello", "proto": 1, "allowedDomains": append([]string{}, p.allow...), "deniedDomains": []string{}}
		case "req":
			v := p.request(m)
			if v.Action == "need_body" {
				waiting[m.ID] = m
			}
			answer = v
		case "body":
			answer = p.body(waiting[m.ID], m)
			delete(waiting, m.ID)
		default:
			return fmt.Errorf("the proxy sends %q, which this decider does not know", m.T)
		}
		if err := writeFrame(w, answer); err != nil {
			return err
		}
	}
}

// request decides about a request: what only reads is allowed at once.
func (p *policy) request(m message) verdict {
	switch m.Method {
	case "GET", "HEAD", "OPTIONS":
		return p.allowed(m)
	}
	if p.forbid == "" {
		return p.allowed(m)
	}
	return verdict{T: "verdict", ID: m.ID, Action: "need_body", Max: maxBody}
}

// body decides about a request whose body was asked for: what cannot be seen to the end is denied.
func (p *policy) body(m, body message) verdict {
	data, err := base64.StdEncoding.DecodeString(body.Data)
	switch {
	case err != nil || body.Cut:
		return deny(body.ID, 413, "the body is longer than this host looks at")
	case strings.Contains(string(data), p.forbid):
		return deny(body.ID, 403, "the body holds what must not leave")
	}
	return p.allowed(m)
}

func deny(id uint64, status int, reason string) verdict {
	return verdict{T: "verdict", ID: id, Action: "deny", Status: status, Reason: reason}
}

// allowed lets a request through, with the credential if it is for its host and nobody can read along: only a tunnel has a
// server name, and the proxy has checked that it is the target's.
func (p *policy) allowed(m message) verdict {
	v := verdict{T: "verdict", ID: m.ID, Action: "allow"}
	if p.credential != "" && m.SNI != "" && m.Host == p.credentialHost {
		v.Cred, v.Credential = "example", p.credential
	}
	return v
}

// readFrame reads a 4-byte big-endian length and that many bytes of JSON. The proxy's frames are as long as the bodies that
// were asked for.
func readFrame(r io.Reader, v any) error {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return err
	}
	text := make([]byte, binary.BigEndian.Uint32(head[:]))
	if _, err := io.ReadFull(r, text); err != nil {
		return err
	}
	return json.Unmarshal(text, v)
}

// writeFrame writes a frame in one piece.
func writeFrame(w io.Writer, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = w.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(text))), text...))
	return err
}
