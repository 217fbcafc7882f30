package config

import (
	"errors"
	"testing"
)

func TestParseProxyURL(t *testing.T) {
	for raw, want := range map[string]string{
		"http://proxy.example:3128":      "http://proxy.example:3128",
		"https://proxy.example":          "https://proxy.example",
		"HTTP://Proxy.Example:3128/":     "http://proxy.example:3128/",
		"http://user:p%40ss@proxy:3128":  "http://user:p%40ss@proxy:3128",
		"10.0.0.1:3128":                  "http://10.0.0.1:3128",
		"proxy:8080":                     "http://proxy:8080",
		"[::1]:8080":                     "http://[::1]:8080",
		"http://[2001:DB8:0::1]":         "http://[2001:db8::1]",
		"http://127.1:80":                "http://127.0.0.1:80",
		"http://proxy.example.:80/a/b?c": "http://proxy.example:80/a/b?c",
		"http://bücher.example:80":       "http://xn--bcher-kva.example:80",
	} {
		u, err := ParseProxyURL(raw)
		if err != nil || u.String() != want {
			t.Errorf("CFG-33: ParseProxyURL(%q) = %v, %v; want %s", raw, u, err, want)
		}
	}
	for _, raw := range []string{"", "proxy", "proxy:", "proxy:0", "proxy:65536", "proxy:080", "proxy:x", "ftp://proxy:1", "socks5://p:1",
		"http://", "http:proxy:80", "http:/proxy:80", "//proxy:80", "http://:80", "http://u@:80", "http://proxy:99999", "http://proxy:",
		"u:p@proxy:80", "proxy:80/x", "proxy:80?x", "proxy:80#x", "::1:80", "http://[fe80::1%25eth0]:80", "http://[::1", "http://a b",
		" http://proxy:80", "http://proxy:80\n", "http://1.2.3.4.5", "http://a..b", "http://%zz", "http://a%2fb", "http://ü..b", "http://\u00ad:80", "https//proxy:80"} {
		if u, err := ParseProxyURL(raw); !errors.Is(err, ErrInvalidProxyURL) {
			t.Errorf("CFG-33: ParseProxyURL(%q) = %v, %v; want ErrInvalidProxyURL", raw, u, err)
		}
	}
}
