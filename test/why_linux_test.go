package test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
)

// refusedObject is what an event and an answer of "srt explain why" have in common.
type refusedObject struct {
	Path, Host, Rule, Entry string
	Port                    uint16
}

// refusedEvent is one line of --violations.
type refusedEvent struct {
	refusedObject
	Operation, Comm string
	PID             int
}

// TestWhyNamesTheRuleOfTheEvent: what is refused to a command shows up as one event for each object, and "srt explain why"
// names the same rule for the same object.
func TestWhyNamesTheRuleOfTheEvent(t *testing.T) {
	need(t, "curl", "python3")
	tests := []struct {
		name     string
		command  string   // shell text; its failure is wanted
		question []string // for srt explain why
	}{
		{"read", "cat secret/k", []string{"--read", "secret/k"}},
		{"read a hidden file", "cat secret.txt", []string{"--read", "secret.txt"}},
		{"read what is made later", "echo > later.key; cat later.key", []string{"--read", "later.key"}},
		{"write", "echo x >> ro/f", []string{"--write", "ro/f"}},
		{"write without a grant", "echo x >> ../outside", []string{"--write", "../outside"}},
		{"create", "mkdir .vscode", []string{"--write", ".vscode"}},
		{"create what a deny names", "mkdir none", []string{"--write", "none"}},
		{"create without a grant", "mkdir ../new", []string{"--write", "../new"}},
		{"rename", "mv ro ro2", []string{"--remove", "ro"}},
		{"rename what holds it", "mv holds other", []string{"--remove", "holds"}},
		{"remove", "rm -f ro/f", []string{"--remove", "ro/f"}},
		{"connect through a proxy", "curl -fsS http://evil.test/", []string{"--connect", "evil.test:80"}},
		{"connect to a port", "curl -fsSx $http_proxy http://web.test:81/", []string{"--connect", "web.test:81"}},
		{"name", `curl -fsS --noproxy "*" http://no.test:82/`, []string{"--connect", "no.test:82"}},
		{"address", `curl -fsS --noproxy "*" http://192.0.2.1/`, []string{"--connect", "192.0.2.1:80"}},
		{"Unix socket", `python3 -c 'import socket; socket.socket(socket.AF_UNIX).connect("../other.sock")'`, []string{"--unix", "../other.sock"}},
	}
	settings := cfg{dr: list{"secret", "secret.txt", "*.key"}, aw: list{"."}, dw: list{"ro", "none", "holds/f"}, allow: list{"web.test:80"}, deny: list{"evil.test"}}
	eachAlong(t, func(t *testing.T, b *box) {
		for _, name := range []string{"secret/k", "secret.txt", "ro/f", "holds/f", "../outside"} {
			b.file(name, "text")
		}
		b.greets(b.home + "/other.sock")
		for _, tt := range tests {
			t.Run(tt.name, func(t *testing.T) {
				b := *b
				b.t = t
				answer := b.answer(settings, tt.question...)
				events := b.refusals(settings, tt.command)
				count := 0
				for _, e := range events {
					if e.Path != answer.Path || e.Host != answer.Host || e.Port != answer.Port {
						continue
					}
					if count++; e.Rule != answer.Rule || e.Entry != answer.Entry {
						t.Errorf("the event says %q %q, explain why %q %q", e.Rule, e.Entry, answer.Rule, answer.Entry)
					}
				}
				// A client tries each address of a name; all else is one refusal, and one event.
				if count == 0 || answer.Host == "" && count > 1 || answer.Rule == "" {
					t.Errorf("%d events about %+v: %+v", count, answer, events)
				}
			})
		}
	})
}

// answer asks about one thing that is denied.
func (b *box) answer(c cfg, question ...string) (found refusedObject) {
	b.t.Helper()
	r := b.host(append([]string{srtPath, "explain", "why", "--json", "-s", b.settings(c)}, question...)...).exits(3)
	var list []refusedObject
	if err := json.Unmarshal([]byte(r.stdout), &list); err != nil || len(list) != 1 {
		b.t.Fatalf("%v\n%s", err, r)
	}
	return list[0]
}

// refusals runs shell text that fails, and gives what was refused to it.
func (b *box) refusals(c cfg, text string) (events []refusedEvent) {
	b.t.Helper()
	file, err := os.CreateTemp(b.dir, "refused-*.json")
	b.must(err)
	b.must(file.Close())
	b.must(os.Chown(file.Name(), b.who.uid, b.who.gid))
	r := b.host(srtPath, "-s", b.settings(c), "--violations", file.Name(), "exec", "--", "sh", "-c", text)
	if r.status == 0 && !strings.HasPrefix(text, "cat ") { // root reads a hidden file and finds it empty (FS-31)
		b.t.Errorf("it succeeded: %s", r)
	}
	data, err := os.ReadFile(file.Name())
	b.must(err)
	for line := range strings.Lines(string(data)) {
		var e refusedEvent
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			b.t.Fatalf("%v: %s", err, line)
		}
		events = append(events, e)
	}
	return events
}

// TestWhyKernelTrees_FS47: in /dev, /proc and /sys, which are the same in every sandbox, what explain why says is what happens.
func TestWhyKernelTrees_FS47(t *testing.T) {
	tests := []struct{ question, path, try string }{
		{"--read", "/dev/null", "cat /dev/null"},
		{"--write", "/dev/null", "echo x > /dev/null"},
		{"--write", "/dev/full", ": > /dev/full"},
		{"--remove", "/dev/null", "rm -f /dev/null"},
		{"--write", "/dev/new", "mkdir /dev/new"},
		{"--read", "/dev/kmsg", "cat /dev/kmsg"},
		{"--write", "/dev/shm/new", "mkdir /dev/shm/new"},
		{"--remove", "/dev/shm", "rmdir /dev/shm"},
		{"--write", "/dev/pts/new", "mkdir /dev/pts/new"},
		{"--read", "/proc/uptime", "cat /proc/uptime"},
		{"--write", "/proc/uptime", "chmod 644 /proc/uptime"},
		{"--write", "/proc/self/comm", "echo x > /proc/self/comm"},
		{"--write", "/proc/new", "mkdir /proc/new"},
		{"--remove", "/proc/uptime", "rm -f /proc/uptime"},
		{"--write", "/proc/sys/kernel/core_pattern", "chmod 644 /proc/sys/kernel/core_pattern"},
		{"--read", "/proc/sys/kernel/core_pattern", "cat /proc/sys/kernel/core_pattern"},
		{"--read", "/sys/kernel/mm", "ls /sys/kernel/mm"},
		{"--write", "/sys/kernel/mm", "chmod 755 /sys/kernel/mm"},
		{"--write", "/sys/kernel/new", "mkdir /sys/kernel/new"},
	}
	for name, settings := range map[string]cfg{"granted": {aw: list{"/"}}, "disabled": {fs: object{"disabled": true}}, "plain": {}} {
		t.Run(name, func(t *testing.T) {
			eachAlong(t, func(t *testing.T, b *box) {
				file := b.settings(settings)
				for _, tt := range tests {
					r := b.host(srtPath, "explain", "why", "-s", file, tt.question, tt.path)
					done := b.host(srtPath, "-s", file, "exec", "--", "sh", "-c", tt.try)
					if allowed := r.status == 0; allowed != (done.status == 0) || r.status != 0 && r.status != 3 {
						t.Errorf("%s: %s\n%s", tt.try, r, done)
					}
				}
			})
		})
	}
}
