package credential

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/srt-sandbox/srt/runtime/config"
)

// TestConcurrent: launches that rotate values, requests that read them and the end of the session at once. A value is
// always seen whole, and never that of another variable.
func TestConcurrent(t *testing.T) {
	s := newStore(t)
	host := canonical(t, "api.example.com")
	c := maskEnv(env("A", config.Credential{}), env("B", config.Credential{}))
	var running sync.WaitGroup
	run := func(f func(i int)) {
		running.Go(func() {
			for i := range 300 {
				f(i)
			}
		})
	}
	mask := func(i int) error {
		_, err := s.Mask(Spec{Credentials: c, DefaultHosts: []string{"api.example.com"}, LookupEnv: func(name string) (string, bool) {
			return string(bytes.Repeat([]byte(name), 1+i%90)), true
		}})
		return err
	}
	for range 2 {
		run(func(i int) {
			if err := mask(i); err != nil {
				t.Error(err)
			}
		})
		run(func(int) {
			for _, x := range s.at(host) {
				value, ok := x.appendTo(nil)
				name := x.name[len(x.name)-2 : len(x.name)-1]
				if !ok || len(value) == 0 || bytes.Count(value, []byte(name)) != len(value) {
					t.Errorf("%s stands for %q", x.name, value)
				}
			}
		})
	}
	running.Wait()
	held := s.at(host)
	if len(held) != 2 {
		t.Fatalf("CRED-6: %d secrets, want one for each variable", len(held))
	}
	run(func(int) { held[0].use(func(value []byte) { _ = bytes.Clone(value) }) })
	run(func(i int) { _ = mask(i) })
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	running.Wait()
}

// TestManyHosts: a command that asks for any number of hosts does not fill the memory.
func TestManyHosts(t *testing.T) {
	s := newStore(t)
	mustLaunch(t, s, maskEnv(env("A", config.Credential{InjectHosts: []string{"*.example.com"}})), map[string]string{"A": "a"})
	for i := range 3 * maxHosts {
		if n := len(s.at(canonical(t, fmt.Sprintf("h%d.example.com", i)))); n != 1 {
			t.Fatalf("host %d: %d secrets", i, n)
		}
	}
	if len(s.byHost) > maxHosts {
		t.Errorf("answers for %d hosts are kept", len(s.byHost))
	}
}

// TestManyPatterns: settings that change without end do not fill the memory either.
func TestManyPatterns(t *testing.T) {
	var p programs
	for i := range 2 * maxPrograms {
		if _, err := p.compile(fmt.Sprintf("(a{%d})", i+1)); err != nil {
			t.Fatal(err)
		}
	}
	if len(p.byIt) > maxPrograms {
		t.Errorf("%d patterns are kept", len(p.byIt))
	}
}

// BenchmarkFile is what a launch pays for a masked file of 1 KiB, from the second one of its session on.
func BenchmarkFile(b *testing.B) {
	path := filepath.Join(b.TempDir(), "f")
	if err := os.WriteFile(path, append(bytes.Repeat([]byte("# comment line\n"), 64), "token=s3cr3t-value-of-the-token\n"...), 0o600); err != nil {
		b.Fatal(err)
	}
	for name, rule := range map[string]config.Credential{
		"whole":   {Mode: config.ModeMask},
		"extract": {Mode: config.ModeMask, Extract: `token=(\S+)`},
	} {
		b.Run(name, func(b *testing.B) {
			s := newStore(b)
			spec := Spec{Credentials: &config.Credentials{Files: []config.FileCredential{{Path: "~/f", Credential: rule}}},
				DefaultHosts: []string{"api.example.com"}}
			b.ReportAllocs()
			for b.Loop() {
				m, err := s.Mask(spec)
				if err != nil {
					b.Fatal(err)
				}
				if _, err := m.File(0, path); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkVariable is what a launch pays for a masked variable.
func BenchmarkVariable(b *testing.B) {
	s := newStore(b)
	spec := Spec{Credentials: maskEnv(env("TOKEN", config.Credential{})), DefaultHosts: []string{"api.example.com"},
		LookupEnv: func(string) (string, bool) { return "s3cr3t-value-of-the-token", true }}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.Mask(spec); err != nil {
			b.Fatal(err)
		}
	}
}
