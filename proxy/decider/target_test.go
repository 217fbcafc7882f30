package decider

import "testing"

func TestPRX20_21_RequestLines(t *testing.T) {
	for target, want := range map[string]string{ // host:port target, "" for a refusal
		"http://a.com":                "a.com:80 /",
		"HTTP://A.com:8080/x":         "a.com:8080 /x",
		"https://a.com?q":             "a.com:443 /?q",
		"http://a.com/":               "a.com:80 /",
		"http://a.com./a/../b?x=1":    "a.com:80 /a/../b?x=1",
		"http://[::FFFF:1.2.3.4]:81/": "1.2.3.4:81 /",
		"http://[0::1]/":              "[::1]:80 /",
		"http://0x7f.1/":              "127.0.0.1:80 /",
		"http://a.com#f":              "a.com:80 #f", // judged as a target
		"http://a.com:0/":             "",
		"http://a.com:/":              "",
		"http://a.com:65536/":         "",
		"http://a.com:080/":           "",
		"http://u:p@a.com/":           "",
		"http://u@a.com/":             "",
		"http://@a.com/":              "",
		"http://ex%61mple.com/":       "",
		"http://a_b.com/":             "",
		"http://a..com/":              "",
		"http://.a.com/":              "",
		"http://a.com../":             "",
		"http://./":                   "",
		"http:///x":                   "",
		"http://a.com\\@b.com/":       "",
		"http://mün.de/":              "",
		"http://[::1/":                "",
		"http://[::1]x/":              "",
		"http://[fe80::1%25eth0]/":    "",
		"http://[1.2.3.4]/":           "",
		"http://::1/":                 "",
		"http://1.2.3.4.5/":           "",
		"http://256.1.1.1/":           "",
		"ftp://a.com/":                "",
		"http:/a.com/":                "",
		"//a.com/":                    "",
		"/":                           "",
		"*":                           "",
		"a.com:80":                    "",
	} {
		d, ok := parseAbsolute(target)
		got := ""
		if ok {
			got = entry{host: d.host, port: d.port}.setting() + " " + d.target
		}
		if got != want {
			t.Errorf("%s: %q, want %q", target, got, want)
		}
	}
	for target, want := range map[string]string{
		"a.com:443": "a.com:443", "A.COM.:22": "a.com:22", "[::1]:1": "[::1]:1", "127.1:65535": "127.0.0.1:65535",
		"a.com": "", "a.com:": "", "a.com:0": "", "a.com:65536": "", "::1:443": "", "[::1]": "", "a_b:1": "", "u@a.com:1": "", "a%2e:1": "", ":443": "", "": "",
		"http://a.com:443": "", "a.com:443/": "", "a.com:+1": "",
	} {
		d, ok := parseConnect(target)
		got := ""
		if ok {
			got = entry{host: d.host, port: d.port}.setting()
		}
		if got != want {
			t.Errorf("CONNECT %s: %q, want %q", target, got, want)
		}
	}
}

func TestPRX23_Targets(t *testing.T) {
	for target, want := range map[string]bool{
		"/": true, "/a/../b?x=%2e": true, "/?": true, "/a//b": true, "/\xe9": true,
		"": false, "a": false, "*": false, "//": false, "//x": false, "/\\x": false, "/a#f": false, "/#": false, "/a b": false, "/\x00": false, "/a\x7f": false,
		"http://a.com/": false, "#f": false,
	} {
		if got := validTarget(target); got != want {
			t.Errorf("%q: %v", target, got)
		}
	}
}

func TestPRX24_Host(t *testing.T) {
	for _, test := range []struct {
		target, host string
		want         bool
	}{
		{"http://a.com/", "a.com", true}, {"http://a.com/", "A.Com", true}, {"http://a.com/", "a.com:80", true}, {"http://a.com./", "a.com", true},
		{"http://a.com/", "a.com:443", false}, {"http://a.com/", "a.com.", false}, {"http://a.com/", "b.com", false}, {"http://a.com/", "", false},
		{"http://a.com/", "a.com:", false}, {"http://a.com/", "[a.com]", false}, {"http://a.com/", "a.com, a.com", false}, {"http://a.com/", "u@a.com", false},
		{"http://a.com/", "a.com:080", false},
		{"http://a.com:8080/", "a.com:8080", true}, {"http://a.com:8080/", "a.com", false}, {"http://a.com:443/", "a.com", false},
		{"https://a.com/", "a.com", true}, {"https://a.com/", "a.com:443", true}, {"https://a.com/", "a.com:80", false}, {"https://a.com:80/", "a.com", false},
		{"http://[::1]/", "[::1]", true}, {"http://[::1]/", "[0:0::1]:80", true}, {"http://[::1]/", "::1", false},
		{"http://127.1/", "127.1", true}, {"http://127.1/", "127.0.0.1", true}, {"http://127.1/", "[127.0.0.1]", false},
	} {
		d, ok := parseAbsolute(test.target)
		if !ok {
			t.Fatal(test.target)
		}
		if got := d.namedBy(test.host); got != test.want {
			t.Errorf("%s, Host %q: %v", test.target, test.host, got)
		}
	}
}
