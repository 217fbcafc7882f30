package ns

import (
	"os"
	"testing"
)

// self is the identity map of the test's own user.
func self(t testing.TB) (uids, gids []IDMap, deny bool) {
	t.Helper()
	if os.Geteuid() == 0 {
		all := []IDMap{{0, 0, 1<<32 - 1}}
		return all, all, false
	}
	u, g := uint32(os.Geteuid()), uint32(os.Getegid())
	return []IDMap{{u, u, 1}}, []IDMap{{g, g, 1}}, true
}

func minimal(t testing.TB, args ...string) *Config {
	t.Helper()
	p := &Program{}
	p.AwaitGo()
	u, g, deny := self(t)
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { null.Close() })
	return &Config{Namespaces: Full, UIDs: u, GIDs: g, DenySetgroups: deny, Setup: p, Candidates: []string{args[0]},
		Args: args, Env: os.Environ(), Stdin: null, Stdout: os.Stdout, Stderr: os.Stderr}
}

func TestStatus(t *testing.T) {
	for _, c := range []struct {
		script string
		code   int
	}{{"exit 0", 0}, {"exit 3", 3}, {"kill -9 $$", 137}, {"kill -TERM $$", 143}} {
		p, err := Start(minimal(t, "/bin/sh", "-c", c.script))
		if err != nil {
			t.Fatal(err)
		}
		st, err := p.Wait()
		if err != nil || st.Code != c.code {
			t.Errorf("%s: %v, %v; want %d", c.script, st, err, c.code)
		}
	}
}

func BenchmarkStart(b *testing.B) {
	for range b.N {
		p, err := Start(minimal(b, "/bin/true"))
		if err != nil {
			b.Fatal(err)
		}
		if _, err := p.Wait(); err != nil {
			b.Fatal(err)
		}
	}
}
