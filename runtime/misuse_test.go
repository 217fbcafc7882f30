package runtime

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/srt-sandbox/srt/runtime/config"
)

// A session that New has not made starts nothing, and asking it is an error or an answer, never a panic (LIB-35).
func TestZeroSandbox_LIB35(t *testing.T) {
	ctx := context.Background()
	for name, ask := range map[string]func(*Sandbox) error{
		"Update":  func(s *Sandbox) error { _, err := s.Update(ctx, config.Default()); return err },
		"Start":   func(s *Sandbox) error { return s.Command(ctx, "true").Start() },
		"Prepare": func(s *Sandbox) error { _, err := s.Command(ctx, "true").Prepare(); return err },
		"Explain": func(s *Sandbox) error { _, err := s.Explain(ctx); return err },
		"Why":     func(s *Sandbox) error { _, err := s.Why(ctx, Query{QueryRead, "/"}); return err },
		"AllowDomains": func(s *Sandbox) error {
			_, err := s.AllowDomains("0123456789012345678901", []string{"a.example"})
			return err
		},
	} {
		for _, before := range []func(*Sandbox) error{func(*Sandbox) error { return nil }, (*Sandbox).Close,
			func(s *Sandbox) error { return s.Shutdown(ctx) }} {
			var s Sandbox
			if err := before(&s); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if err := ask(&s); !errors.Is(err, ErrClosed) || !strings.Contains(err.Error(), "never started") {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	var s Sandbox
	select {
	case <-s.Done():
	default:
		t.Error("it is not done")
	}
	if cfg := s.Config(); len(cfg.Network.AllowedDomains)+len(cfg.Filesystem.AllowWrite) != 0 {
		t.Errorf("it allows something: %+v", cfg)
	}
	if read, err := s.ReadPolicy(); err != nil || len(read.DenyOnly) != 0 {
		t.Errorf("%+v, %v", read, err)
	}
	if _, err := s.WritePolicy(); err != nil {
		t.Error(err)
	}
	if n := len(s.NetworkPolicy().AllowedDomains) + len(s.Warnings()); n != 0 || s.Proxy() != (ProxyInfo{}) || s.CA() != nil || s.Annotate("key", "text") != "text" {
		t.Errorf("%+v, %+v, %q", s.NetworkPolicy(), s.Proxy(), s.Warnings())
	}
}

// The violations of no session are none, and end.
func TestZeroViolations_LIB35(t *testing.T) {
	for _, v := range []*Violations{{}, new(Sandbox).Violations()} {
		if v.Len() != 0 || v.Total() != 0 || v.Lost() != 0 || len(v.Recent(1)) != 0 {
			t.Error("there are some")
		}
		v.Clear()
		v.Subscribe(func([]Violation) {})()
	}
	for range new(Violations).Watch(t.Context()) {
		t.Error("there is one")
	}
}

// A command that no session has made is an error.
func TestZeroCmd_LIB17(t *testing.T) {
	for name, ask := range map[string]func(*Cmd) error{
		"Start":          (*Cmd).Start,
		"Run":            (*Cmd).Run,
		"Output":         func(c *Cmd) error { _, err := c.Output(); return err },
		"CombinedOutput": func(c *Cmd) error { _, err := c.CombinedOutput(); return err },
		"Prepare":        func(c *Cmd) error { _, err := c.Prepare(); return err },
	} {
		err := ask(&Cmd{Path: "/bin/true", Args: []string{"true"}})
		if launch, ok := errors.AsType[*LaunchError](err); !ok || !errors.Is(err, errNoSession) || launch.Path != "/bin/true" {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, ask := range map[string]func(*Cmd) error{"Wait": (*Cmd).Wait, "Kill": (*Cmd).Kill, "Signal": func(c *Cmd) error { return c.Signal(os.Interrupt) }} {
		if err := ask(&Cmd{}); !errors.Is(err, errNotStarted) {
			t.Errorf("%s: %v", name, err)
		}
	}
	var c Cmd
	if c.Pid() != 0 || c.InCallersGroup() {
		t.Error("it runs")
	}
	for range c.Violations() {
		t.Error("it was refused something")
	}
	if err := new(Launch).Release(); err != nil {
		t.Error(err)
	}
}

// What has no context is an error, and does nothing.
func TestNoContext_LIB51(t *testing.T) {
	var none context.Context
	if s, err := New(none, config.Default()); s != nil || !errors.Is(err, errNilContext) {
		t.Errorf("New: %v, %v", s, err)
	}
	if _, err := Check(none, nil); !errors.Is(err, errNilContext) {
		t.Errorf("Check: %v", err)
	}
	s := &Sandbox{done: make(chan struct{})}
	_, updated := s.Update(none, config.Default())
	_, explained := s.Explain(none)
	_, why := s.Why(none, Query{QueryRead, "/"})
	for name, err := range map[string]error{"Update": updated, "Explain": explained, "Why": why, "Shutdown": s.Shutdown(none)} {
		if !errors.Is(err, errNilContext) {
			t.Errorf("%s: %v", name, err)
		}
	}
	v := &Violations{}
	for range v.Watch(none) {
		t.Error("a violation of no session")
	}
}

// LIB-11, NET-90: what the system would cut short is an error, which does not repeat it: it may be a secret.
func TestNUL_LIB11(t *testing.T) {
	s := &Sandbox{done: make(chan struct{})}
	tests := []struct {
		change func(*Cmd)
		want   string
	}{
		{func(c *Cmd) { c.Path = "/bin/\x00secret" }, "Path of the command"},
		{func(c *Cmd) { c.Dir = "/\x00secret" }, "Dir of the command"},
		{func(c *Cmd) { c.Args = []string{"x", "a", "secret\x00"} }, "argument 2 of the command"},
		{func(c *Cmd) { c.Env = []string{"A=1", "TOKEN=secret\x00x"} }, "TOKEN of Env"},
		{func(c *Cmd) { c.Env = []string{"A=1", "B\x00secret=1"} }, "entry 1 of Env"},
		{func(c *Cmd) { c.Env = []string{"\x00secret"} }, "entry 0 of Env"},
		{func(c *Cmd) { c.script = "secret\x00" }, "the script of the command"},
		{func(c *Cmd) { c.script, c.ShellPath = ":", "/bin/sh\x00secret" }, "ShellPath of the command"},
	}
	for _, tt := range tests {
		for name, begin := range map[string]func(*Cmd) error{"Start": (*Cmd).Start, "Prepare": func(c *Cmd) error { _, err := c.Prepare(); return err }} {
			c := s.Command(t.Context(), "true")
			tt.change(c)
			err := begin(c)
			if _, ok := errors.AsType[*LaunchError](err); !ok || !strings.HasPrefix(err.Error(), tt.want+" holds a NUL byte") || strings.Contains(err.Error(), "secret") {
				t.Errorf("%s, %s: %v", tt.want, name, err)
			}
		}
	}
}
