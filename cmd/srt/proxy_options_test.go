package main

import (
	"slices"
	"strings"
	"testing"
)

func TestPRX1_Options(t *testing.T) {
	link := "--decider-fd 4 --listen-fd 3 "
	for words, want := range map[string]string{ // the start of the error; "" for none
		link: "",
		"--decider-fd=4 --listen-fd=3 -d --debug --plaintext-header-set --lifeline-fd 5 --ca-fd 6": "",
		"--decider-in 4 --decider-out 5 --listen 127.0.0.1:0":                                      "",
		"--decider-in 4 --decider-out 4 --listen localhost:80":                                     "",
		link + "--listen 0.0.0.0:0":                                                                "",
		link + "--strip-response-header a b --debug":                                               "",
		"":                              "a decider is required (--decider-fd, or --decider-in and --decider-out)",
		"--listen-fd 3":                 "a decider is required (--decider-fd, or --decider-in and --decider-out)",
		"--listen-fd 3 --decider-in 4":  "a decider is required",
		"--listen-fd 3 --decider-out 4": "a decider is required",
		"--decider-fd 4":                "a listener is required",
		"--decider-fd 4 --decider-in 5 --listen-fd 3": "--decider-fd excludes",
		"--decider-fd 3 --listen-fd 3":                "descriptor 3 is given to two options",
		link + "--ca-fd 4":                            "descriptor 4 is given to two options",
		link + "--bogus":                              "unknown option '--bogus'",
		link + "-x":                                   "unknown option '-x'",
		link + "--settings f":                         "unknown option '--settings'",
		link + "stray":                                "unexpected argument 'stray'",
		link + "--":                                   "unknown option '--'",
		link + "--debug=1":                            "option '--debug' takes no argument",
		link + "--ca-fd":                              "option '--ca-fd' argument missing",
		link + "--ca-fd=":                             "option '--ca-fd' argument '' is invalid",
		link + "--ca-fd 3x":                           "option '--ca-fd' argument '3x' is invalid",
		link + "--ca-fd -1":                           "option '--ca-fd' argument '-1' is invalid",
		link + "--ca-fd +5":                           "option '--ca-fd' argument '+5' is invalid",
		link + "--ca-fd 2":                            "option '--ca-fd' argument '2' is invalid",
		link + "--ca-fd 99999999999":                  "option '--ca-fd' argument",
		link + "--strip-response-header":              "option '--strip-response-header' argument missing",
		link + "--listen 127.0.0.1":                   "option '--listen' argument '127.0.0.1' is invalid",
	} {
		_, err := parseProxy(strings.Fields(words))
		if got := errorText(err); want == "" && got != "" || !strings.HasPrefix(got, want) {
			t.Errorf("%s: %q, want %q", words, got, want)
		}
	}
	o, err := parseProxy(strings.Fields(link + "--strip-response-header a b -d --strip-response-header=c --strip-response-header d"))
	if err != nil || !slices.Equal(o.strip, []string{"a", "b", "c", "d"}) || !o.debug {
		t.Errorf("%+v, %v", o, err)
	}
	for _, words := range []string{"--version", "--bogus --version", "--listen-fd 3x --version", "--help --version"} {
		if o, err := parseProxy(strings.Fields(words)); err != nil || !o.version || o.help {
			t.Errorf("%s: %+v, %v", words, o, err)
		}
	}
	if o, err := parseProxy([]string{"--bogus", "-h"}); err != nil || !o.help {
		t.Errorf("-h: %+v, %v", o, err)
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestPRX2_Loopback(t *testing.T) {
	for address, want := range map[string]string{ // "loopback", "exposed", or "" for a refusal
		"localhost:0": "loopback", "LocalHost:65535": "loopback", "127.0.0.1:80": "loopback", "127.255.255.254:1": "loopback",
		"[::1]:0": "loopback", "[0:0:0:0:0:0:0:1]:0": "loopback",
		"127.1:0": "exposed", "[::ffff:127.0.0.1]:0": "exposed", ":80": "exposed", "0.0.0.0:0": "exposed", "[::]:0": "exposed", "example.com:1": "exposed",
		"[::1%lo]:0": "exposed", "localhost.:0": "exposed", "128.0.0.1:0": "exposed",
		"127.0.0.1": "", "127.0.0.1:99999": "", "127.0.0.1:": "", "127.0.0.1:-1": "", "127.0.0.1:+1": "", "127.0.0.1:http": "", "::1:80": "", "[::1]": "", "": "",
	} {
		got := ""
		if l, err := parseListen(address); err == nil {
			got = map[bool]string{false: "loopback", true: "exposed"}[l.exposed]
		}
		if got != want {
			t.Errorf("%s: %q, want %q", address, got, want)
		}
	}
	if l, _ := parseListen("LOCALHOST:7"); l.bind != "127.0.0.1:7" {
		t.Errorf("localhost is bound as %s", l.bind)
	}
	words := strings.Fields("--decider-fd 4 --listen 0.0.0.0:0")
	if _, err := parseProxy(words); err == nil || !strings.Contains(err.Error(), "--listen-any-interface") {
		t.Errorf("case 30: %v", err)
	}
	if _, err := parseProxy(append(words, "--listen-any-interface")); err != nil {
		t.Error(err)
	}
}
