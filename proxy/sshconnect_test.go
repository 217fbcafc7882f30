package proxy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/srt-sandbox/srt/runtime/policy"
)

func TestNET91_SSHConnect(t *testing.T) {
	_, port := echo(t)
	h := start(t, policy.NetworkRules{AllowedDomains: []string{"127.0.0.1"}})
	url := "http://srt.QQ%3D%3D:" + testToken + "@" + h.addr
	silent := serveEach(t, func(*net.TCPConn) {})
	for _, tc := range []struct{ url, target, want string }{
		{url, fmt.Sprintf("127.0.0.1:%d", port), ""},
		{url, "github.com:22", "sandbox proxy: github.com:22: 403 host is not on the allow list"},
		{url, "[2001:db8::1]:22", "sandbox proxy: [2001:db8::1]:22: 403 host is not on the allow list"},
		{strings.Replace(url, testToken, "x", 1), "github.com:22", "sandbox proxy: github.com:22: 407 Proxy Authentication Required"},
		{"http://" + silent.String(), "github.com:22", "sandbox proxy: github.com:22: no answer"},
		{fmt.Sprintf("http://127.0.0.1:%d", closedPort(t)), "github.com:22", "sandbox proxy: github.com:22: no answer"},
		{"", "github.com:22", "sandbox proxy: github.com:22: no answer"},
		{url, "git\r\nhub.com:22", "sandbox proxy: bad host"},
		{url, "a b:22", "sandbox proxy: bad host"},
		{url, ":22", "sandbox proxy: bad host"},
		{url, "github.com", "sandbox proxy: bad port"},
		{url, "github.com:0x16", "sandbox proxy: bad port"},
	} {
		var out bytes.Buffer
		err := SSHConnect(context.Background(), strings.NewReader("hello"), &out, tc.url, tc.target)
		got := ""
		if err != nil {
			got = err.Error()
		}
		if got != tc.want || tc.want == "" && out.String() != "hello" || tc.want != "" && out.Len() > 0 {
			t.Errorf("%s: %q, %q, want %q", tc.target, got, out.String(), tc.want)
		}
	}
}

func TestNET91_EndsWithTheNetworkSide(t *testing.T) {
	port := serveEach(t, func(c *net.TCPConn) { _, _ = io.WriteString(c, "SSH-2.0-bye\r\n") }).Port
	h := start(t, policy.NetworkRules{AllowedDomains: []string{"127.0.0.1"}})
	stdin, keepOpen := io.Pipe()
	defer keepOpen.Close()
	var out bytes.Buffer
	err := SSHConnect(context.Background(), stdin, &out, "http://srt:"+testToken+"@"+h.addr, fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil || out.String() != "SSH-2.0-bye\r\n" {
		t.Errorf("%v, %q", err, out.String())
	}
}

func TestNET64_Forward(t *testing.T) {
	_, port := echo(t)
	for _, tc := range []struct {
		port int
		want string
	}{{port, "any bytes"}, {closedPort(t), ""}, {0, ""}} {
		s, err := New(Options{})
		if err != nil {
			t.Fatal(err)
		}
		l := listen(t)
		served := make(chan error, 1)
		go func() { served <- s.Forward(l, tc.port) }()
		p := connect(t, l.Addr().String())
		if tc.want != "" {
			p.send("any bytes")
			p.CloseWrite()
		}
		if got := p.rest(); got != tc.want {
			t.Errorf("%d: %q", tc.port, got)
		}
		s.Close()
		if err := <-served; err != nil {
			t.Error(err)
		}
		if err := s.Serve(listen(t)); !errors.Is(err, ErrServerClosed) {
			t.Errorf("after Close: %v", err)
		}
	}
}
