package runtime

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/srt-sandbox/srt/runtime/config"
)

// world is a directory in which each of some configurations allows one directory to be written and hides one file.
type world struct {
	dir     string
	configs int
}

func newWorld(t *testing.T, configs int) world {
	t.Helper()
	w := world{t.TempDir(), configs}
	for k := range configs {
		succeed(t, os.Mkdir(fmt.Sprintf("%s/w%d", w.dir, k), 0o755))
		succeed(t, os.WriteFile(fmt.Sprintf("%s/h%d", w.dir, k), []byte("x\n"), 0o644))
	}
	return w
}

// config is configuration k. Its two halves are about the same number.
func (w world) config(k int) *config.Config {
	cfg := config.Default()
	cfg.Filesystem.AllowWrite = []config.PathEntry{{Path: fmt.Sprintf("%s/w%d", w.dir, k)}}
	cfg.Filesystem.DenyRead = []config.PathEntry{{Path: fmt.Sprintf("%s/h%d", w.dir, k)}}
	return cfg
}

// script says which directories may be written and which files are hidden. It makes no process.
func (w world) script() string {
	script := "cd " + w.dir
	for k := range w.configs {
		script += fmt.Sprintf("; true >w%[1]d/f 2>/dev/null && printf 'w%[1]d '; x=; read -r x <h%[1]d; [ \"$x\" = x ] || printf 'h%[1]d '", k)
	}
	return "{ " + script + "; } 2>/dev/null"
}

// TestLIB16_case25_OneLaunchOneConfiguration: commands that are launched while the configuration changes run each under one,
// and never under one that was replaced before their launch began.
func TestLIB16_case25_OneLaunchOneConfiguration(t *testing.T) {
	const (
		launches = 300
		configs  = 6
	)
	w := newWorld(t, configs)
	s := newSession(t, nil)
	var installed atomic.Int64 // the number of the latest update that is surely in force
	var begun atomic.Int64     // and of the latest that may be
	_, err := s.Update(t.Context(), w.config(0))
	succeed(t, err)
	launch := make(chan struct{}) // each launch asks for an update and does not wait for it
	var updating, launching sync.WaitGroup
	updating.Go(func() {
		n := int64(0)
		for range launch {
			n++
			begun.Store(n)
			if notLive, err := s.Update(context.Background(), w.config(int(n%configs))); err != nil || len(notLive) > 0 {
				t.Error(notLive, err)
			}
			installed.Store(n)
		}
	})
	for range launches {
		launching.Go(func() {
			c := plain(t, s.Command(context.Background(), "/bin/sh", "-c", w.script()))
			var out strings.Builder
			c.Stdout = &out
			launch <- struct{}{}
			first := installed.Load()
			err := c.Start()
			last := begun.Load()
			if err == nil {
				err = c.Wait()
			}
			if err != nil {
				t.Error(err)
				return
			}
			var k, hidden int
			if n, err := fmt.Sscanf(out.String(), "w%d h%d ", &k, &hidden); n != 2 || err != nil || k != hidden || len(strings.Fields(out.String())) != 2 {
				t.Errorf("not wholly under one configuration: %q", out.String())
				return
			}
			if last-first < configs-1 && (int64(k)-first%configs+configs)%configs > last-first {
				t.Errorf("under configuration %d, launched between the updates %d and %d", k, first, last)
			}
		})
	}
	launching.Wait()
	close(launch)
	updating.Wait()
}

// TestLIB13_case18_case19_OverridesOfOneCommand walks the rows of the table that Linux has.
func TestLIB13_case18_case19_OverridesOfOneCommand(t *testing.T) {
	w := newWorld(t, 2)
	cfg := w.config(0)
	cfg.Git.SafeDirectories = []string{"/one"}
	allow := &config.FilesystemOverride{AllowWrite: []config.PathEntry{{Path: w.dir + "/w1"}}}
	none := &config.FilesystemOverride{DenyRead: []config.PathEntry{}}
	for _, c := range []struct {
		name     string
		disabled bool // the session's
		override *config.Override
		script   string
		want     string
	}{
		{"none", false, nil, w.script(), "w0 h0 "},
		{"nothing", false, &config.Override{}, w.script(), "w0 h0 "},
		{"a list replaces, another is inherited", false, &config.Override{Filesystem: allow}, w.script(), "h0 w1 "},
		{"an empty list replaces", false, &config.Override{Filesystem: none}, w.script(), "w0 "},
		{"disabled in the session", true, nil, w.script(), "w0 w1 "},
		{"case 18 the section turns the rules on", true, &config.Override{Filesystem: &config.FilesystemOverride{
			DenyWrite: []config.PathEntry{{Path: w.dir + "/w0"}}}}, w.script(), "h0 "},
		{"disabled for one command", false, &config.Override{Filesystem: &config.FilesystemOverride{Disabled: true}}, w.script(), "w0 w1 "},
		{"a variable is denied", false, &config.Override{Credentials: &config.Credentials{EnvVars: []config.EnvCredential{
			{Name: "SECRET", Credential: config.Credential{Mode: config.ModeDeny}}}}}, `echo "<$SECRET$OTHER>"`, "<o>\n"},
		{"git.safeDirectories append", false, &config.Override{Git: config.Git{SafeDirectories: []string{"/two"}}},
			`env | sed -n 's/^GIT_CONFIG_VALUE_[0-9]*=\(\/[a-z]*\)$/\1/p'`, "/one\n/two\n"},
		{"user namespaces", false, &config.Override{AllowNestedUserNamespaces: new(true)}, `unshare -U true && echo made`, "made\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg := cfg.Clone()
			cfg.Filesystem.Disabled = c.disabled
			s := newSession(t, func(c *config.Config) { *c = *cfg })
			cmd := sh(t, s, c.script)
			cmd.Env = append(cmd.Env, "SECRET=s", "OTHER=o")
			cmd.Override = c.override
			out, err := cmd.Output()
			if err != nil || string(out) != c.want {
				t.Errorf("%q, %v, want %q", out, err, c.want)
			}
			out, err = sh(t, s, w.script()).Output() // the next one is the session's again
			if want := map[bool]string{false: "w0 h0 ", true: "w0 w1 "}[c.disabled]; err != nil || string(out) != want {
				t.Errorf("without an override: %q, %v", out, err)
			}
		})
	}
}

// TestLIB2_BadOverridesLaunchNothing: an override passes the checks of a settings file before anything is made.
func TestLIB2_BadOverridesLaunchNothing(t *testing.T) {
	s := newSession(t, nil, WithTiming(func(phase string) { t.Errorf("a launch has come to %q", phase) }))
	for _, o := range []*config.Override{
		{Filesystem: &config.FilesystemOverride{DenyRead: []config.PathEntry{{}}}},
		{Network: config.NetworkOverride{AllowedDomains: []string{"*"}}},
	} {
		c := sh(t, s, "true")
		c.Override = o
		var bad *config.Error
		if err := c.Start(); !errors.As(err, &bad) {
			t.Errorf("%v", err)
		}
	}
}

func TestLIB14_DefaultsAndCredentialsStay(t *testing.T) {
	w := newWorld(t, 1)
	home := t.TempDir()
	succeed(t, os.MkdirAll(home+"/.npm/_logs", 0o755))
	s := newSession(t, func(c *config.Config) {
		c.Credentials = &config.Credentials{Files: []config.FileCredential{{Path: w.dir + "/h0", Credential: config.Credential{Mode: config.ModeDeny}}}}
	})
	for name, o := range map[string]*config.Override{"session": nil, "override": {Filesystem: &config.FilesystemOverride{
		AllowWrite: []config.PathEntry{{Path: w.dir + "/w0"}}, DenyRead: []config.PathEntry{}}}} {
		c := sh(t, s, `: >/dev/null && : >"$HOME/.npm/_logs/x" && echo written; read -r x <`+w.dir+`/h0; echo "<$x>"`)
		c.Env = []string{"PATH=/usr/bin:/bin", "HOME=" + home}
		c.Override, c.Stderr = o, io.Discard
		if out, err := c.Output(); err != nil || string(out) != "written\n<>\n" {
			t.Errorf("%s: %q, %v", name, out, err)
		}
	}
}

var plainConfig = cmpopts.IgnoreUnexported(config.Config{})

func TestLIB20_case20_case21_Update(t *testing.T) {
	s := newSession(t, func(c *config.Config) { c.Network.AllowedDomains = []string{"a.example"} })
	bad := s.Config()
	bad.Network.DeniedResolvedAddresses, bad.Network.AllowedDomains = []string{"nonsense"}, []string{"b.example"}
	var invalid *config.Error
	if _, err := s.Update(t.Context(), bad); !errors.As(err, &invalid) {
		t.Errorf("case 20: %v", err)
	}
	if _, err := s.Update(t.Context(), nil); !errors.As(err, &invalid) {
		t.Errorf("no configuration: %v", err)
	}
	ended, cancel := context.WithCancelCause(t.Context())
	cancel(errCause)
	if _, err := s.Update(ended, s.Config()); err != errCause { //nolint:errorlint // the cause itself
		t.Errorf("an ended context: %v", err)
	}
	if got := s.NetworkPolicy(); !cmp.Equal(got.AllowedDomains, []string{"a.example"}) || s.current().network().Decide("b.example", 1).Allowed {
		t.Errorf("case 20: after updates that failed: %v", got)
	}
	next := s.Config()
	next.Network.ParentProxy.HTTP = "proxy.example:1"
	if notLive, err := s.Update(t.Context(), next); err != nil || !cmp.Equal(notLive, []string{"network.parentProxy"}) {
		t.Errorf("case 21: %v, %v", notLive, err)
	}
	want := next.Clone()
	next.Network.AllowedDomains[0] = "changed" // LIB-20: copied in
	s.Config().Network.AllowedDomains[0] = "changed"
	if d := cmp.Diff(want, s.Config(), plainConfig); d != "" {
		t.Errorf("the configuration in force (-want +got):\n%s", d)
	}
	next = want.Clone()
	next.Network.TLSTerminate = &config.TLSTerminate{}
	if notLive, err := s.Update(t.Context(), next); err != nil || !cmp.Equal(notLive, []string{"network.parentProxy", "network.tlsTerminate"}) {
		t.Errorf("LIB-23: fixed settings are named as long as they differ: %v, %v", notLive, err)
	}
}

// TestNET16_RulesThatStayAreTheSameObject: idle connections are kept for the very rules they were dialled under.
func TestNET16_RulesThatStayAreTheSameObject(t *testing.T) {
	s := newSession(t, func(c *config.Config) {
		c.Network.AllowedDomains, c.Network.MitmProxy = []string{"a.example"}, &config.MitmProxy{SocketPath: "/run/x", Domains: []string{"a.example"}}
	})
	before := s.current()
	next := s.Config()
	next.Filesystem.AllowWrite = []config.PathEntry{{Path: "/tmp"}}
	_, err := s.Update(t.Context(), next)
	succeed(t, err)
	if now := s.current(); now == before || now.rules != before.rules {
		t.Error("an update of other settings has changed the rules")
	}
	next.Network.AllowedDomains, next.Network.MitmProxy = []string{"b.example"}, nil
	_, err = s.Update(t.Context(), next)
	succeed(t, err)
	if now := s.current(); now.rules == before.rules || now.rules.MITM != nil {
		t.Error("an update of the rules has not changed them")
	}
}

// TestLIB12_LIB21_LIB22_WhatAnUpdateReaches: hosts open and close for a command that runs, although its session began with
// none, and its rules about files stay; the next launch has the new ones. What is ignored counts at once.
func TestLIB12_LIB21_LIB22_WhatAnUpdateReaches(t *testing.T) {
	port := greeter(t)
	w := newWorld(t, 2)
	s := newSession(t, func(c *config.Config) { *c = *w.config(0) })
	d := converse(t, s, `case $q in
		connect) (exec 3<>/dev/tcp/127.0.0.1/`+port+` && head -n 1 <&3) 2>/dev/null || echo refused;;
		other) (exec 3<>/dev/tcp/192.0.2.1/9) 2>/dev/null || echo refused;;
		files) `+w.script()+`; echo;;
		esac`)
	if got := d.ask("connect"); got != "refused" {
		t.Errorf("no host is allowed: %q", got)
	}
	for _, c := range []struct {
		name    string
		allowed []string
		denied  []string
		ignored string
		connect string
		total   uint64
	}{
		{"allowed", []string{"127.0.0.1:" + port}, nil, "nothing", "hello", 1},
		{"denied", []string{"127.0.0.1:" + port}, []string{"127.0.0.1"}, "192.0.2.1", "refused", 1},
		{"allowed no more", nil, nil, "nothing", "refused", 2},
	} {
		next := w.config(1)
		next.Network.AllowedDomains, next.Network.DeniedDomains = c.allowed, c.denied
		next.IgnoreViolations = map[string][]string{"*": {c.ignored}}
		if notLive, err := s.Update(t.Context(), next); err != nil || len(notLive) > 0 {
			t.Fatal(notLive, err)
		}
		if got := d.ask("connect"); got != c.connect {
			t.Errorf("%s: %q", c.name, got)
		}
		if got := d.ask("other"); got != "refused" {
			t.Errorf("%s, another host: %q", c.name, got)
		}
		if total := s.Violations().Total(); total != c.total {
			t.Errorf("%s: %d violations, want %d", c.name, total, c.total)
		}
	}
	if got := d.ask("files"); got != "w0 h0" {
		t.Errorf("the rules of a running command: %q", got)
	}
	if out, err := sh(t, s, w.script()).Output(); err != nil || string(out) != "w1 h1 " {
		t.Errorf("the next launch: %q, %v", out, err)
	}
	d.in.Close()
	succeed(t, d.Wait())
}
