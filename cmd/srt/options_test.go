package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParse(t *testing.T) {
	tests := []struct {
		name string
		args []string
		want invocation
	}{
		{"CLI-1 exec", []string{"exec", "--", "make", "-j"}, invocation{subcommand: "exec", words: []string{"make", "-j"}}},
		{"CLI-1 exec without dashes", []string{"exec", "make", "-d"}, invocation{subcommand: "exec", words: []string{"make", "-d"}}},
		{"CLI-1 compatible", []string{"make", "-d", "test"}, invocation{words: []string{"make", "-d", "test"}}},
		{"CLI-2 options before exec", []string{"-d", "-s", "f", "exec", "--", "x"},
			invocation{subcommand: "exec", opts: options{debug: true, settings: "f"}, words: []string{"x"}}},
		{"CLI-2 options on both sides, the last wins", []string{"-s", "a", "exec", "-s", "b", "x"},
			invocation{subcommand: "exec", opts: options{settings: "b"}, words: []string{"x"}}},
		{"CLI-2 grouped", []string{"-ds", "f", "x"}, invocation{opts: options{debug: true, settings: "f"}, words: []string{"x"}}},
		{"CLI-2 attached", []string{"-sf", "x"}, invocation{opts: options{settings: "f"}, words: []string{"x"}}},
		{"CLI-2 equals sign", []string{"--settings=f", "x"}, invocation{opts: options{settings: "f"}, words: []string{"x"}}},
		{"CLI-2 repeats", []string{"-s", "a", "--settings", "b", "x"}, invocation{opts: options{settings: "b"}, words: []string{"x"}}},
		{"CLI-2 a value that looks like an option", []string{"-s", "-d", "x"}, invocation{opts: options{settings: "-d"}, words: []string{"x"}}},
		{"CLI-2 -c", []string{"-c", "echo a; exit 3", "more"},
			invocation{opts: options{command: "echo a; exit 3"}, words: []string{"more"}}},
		{"CLI-2 -c with exec", []string{"exec", "-c", "true"}, invocation{subcommand: "exec", opts: options{command: "true"}}},
		{"CLI-3 dashes of the command", []string{"ls", "--", "-h"}, invocation{words: []string{"ls", "--", "-h"}}},
		{"CLI-3 after dashes options belong to the command", []string{"--", "-d"}, invocation{words: []string{"-d"}}},
		{"CLI-3 second dashes stay", []string{"exec", "--", "--", "x"}, invocation{subcommand: "exec", words: []string{"--", "x"}}},
		{"CLI-3 a lone dash is a word", []string{"-", "-d"}, invocation{words: []string{"-", "-d"}}},
		{"CLI-3 an empty word is a word", []string{"", "-d"}, invocation{words: []string{"", "-d"}}},
		{"CLI-4 proxy", []string{"proxy", "--anything"}, invocation{subcommand: "proxy", words: []string{"--anything"}}},
		{"CLI-4 windows-install", []string{"windows-install", "--force"},
			invocation{subcommand: "windows-install", words: []string{"--force"}}},
		{"CLI-4 not after dashes", []string{"--", "proxy"}, invocation{words: []string{"proxy"}}},
		{"CLI-4 not as a second word", []string{"exec", "proxy"}, invocation{subcommand: "exec", words: []string{"proxy"}}},
		{"CLI-20", []string{"--control-fd", "3", "x"}, invocation{opts: options{controlFD: 3}, words: []string{"x"}}},
		{"explain", []string{"explain", "--json", "-d", "--", "make"},
			invocation{subcommand: "explain", opts: options{json: true, debug: true}, words: []string{"make"}}},
		{"CLI-2 help stops everything", []string{"-h", "--bogus"}, invocation{opts: options{help: true}}},
		{"CLI-2 help of exec", []string{"exec", "-h"}, invocation{subcommand: "exec", opts: options{help: true}}},
		{"CLI-2 version in a group", []string{"-dV"}, invocation{opts: options{debug: true, version: true}}},
		{"CLI-6 nothing", nil, invocation{}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := parse(tt.args)
			if err != nil {
				t.Fatalf("parse(%q): %v", tt.args, err)
			}
			if len(got.words) == 0 {
				got.words = nil
			}
			if diff := cmp.Diff(tt.want, *got, cmp.AllowUnexported(invocation{}, options{})); diff != "" {
				t.Errorf("parse(%q) (-want +got):\n%s", tt.args, diff)
			}
		})
	}
}

func TestParseErrors(t *testing.T) {
	tests := []struct {
		name string
		args []string
		want string // must be in the sentence
	}{
		{"CLI-5 unknown long option", []string{"--bogus", "true"}, "unknown option '--bogus'"},
		{"CLI-5 unknown option with a value", []string{"--bogus=secret", "true"}, "unknown option '--bogus'"},
		{"CLI-5 unknown short option", []string{"-x", "true"}, "unknown option '-x'"},
		{"CLI-5 unknown in a group", []string{"-dx", "true"}, "unknown option '-dx'"},
		{"CLI-5 after exec", []string{"exec", "--bogus"}, "unknown option '--bogus'"},
		{"CLI-5 what pflag would drop", []string{"-test.v", "true"}, "unknown option '-test.v'"},
		{"CLI-5 what pflag would drop in a group", []string{"-dtest.v", "true"}, "unknown option '-dtest.v'"},
		{"CLI-5 -c has no long spelling", []string{"--c", "true"}, "unknown option '--c'"},
		{"CLI-5 -c has no long spelling with a value", []string{"--c=true"}, "unknown option '--c'"},
		{"CLI-5 json belongs to explain and check", []string{"--json", "true"}, "unknown option '--json'"},
		{"CLI-5 three dashes", []string{"---d", "true"}, "unknown option '---d'"},
		{"CLI-5 -s without a value", []string{"-s"}, "option '-s, --settings <path>' argument missing"},
		{"CLI-5 -c without a value", []string{"-c"}, "option '-c <string>' argument missing"},
		{"CLI-5 a switch with a bad value", []string{"--debug=maybe", "true"}, "option '-d, --debug'"},
		{"CLI-2 empty -s", []string{"-s", "", "true"}, "option '-s, --settings <path>' argument ''"},
		{"CLI-2 empty --settings=", []string{"--settings=", "true"}, "option '-s, --settings <path>' argument ''"},
		{"CLI-20 two", []string{"--control-fd", "2", "x"}, "integer file descriptor >= 3"},
		{"CLI-20 negative", []string{"--control-fd", "-1", "x"}, "integer file descriptor >= 3"},
		{"CLI-20 sign", []string{"--control-fd", "+5", "x"}, "integer file descriptor >= 3"},
		{"CLI-20 space", []string{"--control-fd", " 5", "x"}, "integer file descriptor >= 3"},
		{"CLI-20 hexadecimal", []string{"--control-fd", "0x10", "x"}, "integer file descriptor >= 3"},
		{"CLI-20 fraction", []string{"--control-fd", "3.0", "x"}, "integer file descriptor >= 3"},
		{"CLI-20 exponent", []string{"--control-fd", "1e1", "x"}, "integer file descriptor >= 3"},
		{"CLI-20 underscore", []string{"--control-fd", "1_0", "x"}, "integer file descriptor >= 3"},
		{"CLI-20 empty", []string{"--control-fd=", "x"}, "integer file descriptor >= 3"},
		{"CLI-20 beyond any descriptor", []string{"--control-fd", "99999999999", "x"}, "integer file descriptor >= 3"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			inv, err := parse(tt.args)
			if err == nil {
				t.Fatalf("parse(%q) = %+v, want an error", tt.args, inv)
			}
			if !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("parse(%q): %q, want one line with %q", tt.args, err, tt.want)
			}
		})
	}
}

// FuzzParse holds that whatever srt does not consume reaches the command untouched and in order (CLI-3).
func FuzzParse(f *testing.F) {
	for _, seed := range []string{"exec\x00--\x00make", "-ds\x00f\x00ls\x00-d", "-c\x00true\x00proxy", "--\x00-h", "-test.v\x00x"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, line string) {
		args := strings.Split(line, "\x00")
		inv, err := parse(args)
		if err != nil {
			return
		}
		tail := args[len(args)-len(inv.words):]
		if diff := cmp.Diff(strings.Join(tail, "\x00"), strings.Join(inv.words, "\x00")); diff != "" {
			t.Errorf("the command's words changed (-want +got):\n%s", diff)
		}
	})
}
