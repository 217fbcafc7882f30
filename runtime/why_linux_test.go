package runtime

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/srt-sandbox/srt/runtime/config"
)

// whySession is a session whose command would start in a directory with something in it.
func whySession(t *testing.T, change func(dir string, cfg *config.Config), opts ...Option) (*Sandbox, string) {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"secret", "work", "work/kept"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"secret/key", "work/f", "work/kept/f"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for link, target := range map[string]string{"work/in": "../secret/key", "work/loop": "loop", "work/far": dir + "/work/kept", "secret/out": "../work/f",
		"work/null": "/dev/null", "work/none": "nothing"} {
		if err := os.Symlink(target, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	cfg := &config.Config{Filesystem: config.Filesystem{DenyRead: entries(dir + "/secret"), AllowWrite: entries(dir + "/work"), DenyWrite: entries(dir + "/work/kept")}}
	if change != nil {
		change(dir, cfg)
	}
	s, err := New(context.Background(), cfg, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s, dir
}

func entries(paths ...string) (list []config.PathEntry) {
	for _, p := range paths {
		list = append(list, config.PathEntry{Path: p})
	}
	return list
}

// TestWhyPaths: links are followed as they show in the sandbox, and what is judged is what the access is about.
func TestWhyPaths(t *testing.T) {
	s, dir := whySession(t, nil)
	tests := []struct {
		kind         QueryKind
		target       string // beneath the directory
		path, access string
		rule         string // of a refusal; "" allows
	}{
		{QueryRead, "work/f", "work/f", "read", ""},
		{QueryRead, "work/in", "secret/key", "read", "filesystem.denyRead.0"},
		{QueryRead, "secret/out", "secret/out", "read", "filesystem.denyRead.0"}, // no link shows there
		{QueryRead, "work/kept/../f", "work/f", "read", ""},
		{QueryRead, "work/far/../../secret", "secret", "read", "filesystem.denyRead.0"}, // ".." after the link
		{QueryWrite, "work/far/f", "work/kept/f", "write", "filesystem.denyWrite.0"},
		{QueryWrite, "work/far/new", "work/kept/new", "create", "filesystem.denyWrite.0"},
		{QueryWrite, "work/none", "work/nothing", "create", ""},
		{QueryWrite, "work/f/", "work/f", "write", ""},
		{QueryWrite, "new", "new", "create", "filesystem.allowWrite"},
		{QueryRemove, "work/far", "work/far", "remove", ""},
		{QueryRemove, "work/kept", "work/kept", "remove", "filesystem.denyWrite.0"},
		{QueryRemove, "work", "work", "remove", "filesystem.allowWrite"},
		{QueryRead, "work/null", "/dev/null", "read", ""},
	}
	for _, tt := range tests {
		t.Run(string(tt.kind)+" "+tt.target, func(t *testing.T) {
			v, err := s.Why(context.Background(), Query{tt.kind, dir + "/" + tt.target})
			if err != nil {
				t.Fatal(err)
			}
			want := tt.path
			if !filepath.IsAbs(want) {
				want = filepath.Join(dir, want)
			}
			if v.Path != want || v.Access != tt.access || v.Allowed != (tt.rule == "") || !v.Allowed && v.Rule != tt.rule {
				t.Errorf("%+v, want %s of %s by %q", v, tt.access, want, tt.rule)
			}
			if v.Allowed == (v.Advice != "") || !v.Allowed && v.Reason == "" {
				t.Errorf("advice %q, reason %q", v.Advice, v.Reason)
			}
		})
	}
}

// TestWhyErrors: what is no question is an error, never an answer.
func TestWhyErrors(t *testing.T) {
	s, dir := whySession(t, nil)
	for name, q := range map[string]Query{
		"no kind": {Target: "x"}, "no target": {Kind: QueryRead}, "NUL": {QueryRead, "a\x00b"}, "loop": {QueryRead, dir + "/work/loop"},
		"port": {QueryConnect, "a.test:99999"}, "bracket": {QueryConnect, "[::1"},
	} {
		if v, err := s.Why(context.Background(), q); err == nil || v.Allowed {
			t.Errorf("%s: %+v", name, v)
		}
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	cause := errors.New("enough")
	cancel(cause)
	if _, err := s.Why(ctx, Query{QueryRead, "/"}); !errors.Is(err, cause) {
		t.Errorf("ended: %v", err)
	}
}

// TestWhyConnect_NET7 says what is left to others to decide.
func TestWhyConnect_NET7(t *testing.T) {
	allow := func(_ string, cfg *config.Config) {
		cfg.Network.AllowedDomains, cfg.Network.DeniedDomains = []string{"a.test", "127.0.0.1:80", "localhost:90", "[::1]:91"}, []string{"*:22"}
	}
	ask := WithAsk(func(context.Context, Destination) (Answer, error) { return Answer{}, nil })
	tests := []struct {
		name   string
		opts   []Option
		target string
		want   string // part of the line
		note   string // part of the notes; "-" wants none
	}{
		{"allowed", nil, "a.test:443", `allowed by network.allowedDomains.0 ("a.test")`, "cloud's metadata service"},
		{"allowed without a port", nil, "a.test", "on every port but 22", "cloud's metadata service"},
		{"denied port", nil, "a.test:22", `denied by network.deniedDomains.0 ("*:22"): host is on the deny list`, "connections to that"},
		{"NET-54 literal", nil, "127.0.0.1:80", `allowed by network.allowedDomains.1 ("127.0.0.1:80")`, "only else is it the host's"},
		{"NET-3 the name by its address", nil, "localhost:80", `allowed by network.allowedDomains.1 ("127.0.0.1:80")`, "the proxy goes by the spelling"},
		{"NET-3 the address by its name", nil, "127.0.0.1:90", `allowed by network.allowedDomains.2 ("localhost:90")`, "the proxy goes by the spelling"},
		{"NET-3 the other address by its name", nil, "[::1]:90", `allowed by network.allowedDomains.2 ("localhost:90")`, "the proxy goes by the spelling"},
		{"NET-3 a name beneath it", nil, "a.localhost:91", `allowed by network.allowedDomains.3 ("[::1]:91")`, "the proxy goes by the spelling"},
		{"NET-3 the name without a port", nil, "localhost", "on ports 80, 90, 91", "only else is it the host's"},
		{"NET-3 another address of loopback", nil, "127.0.0.2:90", "denied by network.allowedDomains: host is not on the allow list", "is not reported"},
		{"NET-3 another port", nil, "localhost:92", "denied by network.allowedDomains: host is not on the allow list", "is not reported"},
		{"NET-3 denied port", nil, "localhost:22", "denied by network.deniedDomains.0", "is not reported"},
		{"NET-13 loopback is never asked about", []Option{ask}, "localhost:92", "denied by network.allowedDomains", "of a program that puts it to the proxy"},
		{"undecided", nil, "b.test:80", "denied by network.allowedDomains: host is not on the allow list", "connections to that"},
		{"NET-13 undecided and asked", []Option{ask}, "b.test:80", "denied by network.allowedDomains", "whoever is asked"},
		{"NET-13 denied and not asked", []Option{ask}, "b.test:22", "denied by network.deniedDomains.0", "connections to that"},
		{"NET-9 malformed", nil, "a..test:80", "denied: malformed host", "-"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s, _ := whySession(t, allow, tt.opts...)
			v, err := s.Why(context.Background(), Query{QueryConnect, tt.target})
			if err != nil {
				t.Fatal(err)
			}
			notes := strings.Join(v.Notes, "\n")
			if !strings.Contains(v.String(), tt.want) || tt.note == "-" && notes != "" || tt.note != "-" && !strings.Contains(notes, tt.note) {
				t.Errorf("%s\n%s", &v, notes)
			}
		})
	}
}

// TestWhyFollowsUpdates_LIB20: the answer is by what is in force.
func TestWhyFollowsUpdates_LIB20(t *testing.T) {
	s, _ := whySession(t, nil)
	q := Query{QueryConnect, "a.test:443"}
	if v, err := s.Why(context.Background(), q); err != nil || v.Allowed {
		t.Fatalf("%+v, %v", v, err)
	}
	cfg := s.Config()
	cfg.Network.AllowedDomains = []string{"a.test"}
	if _, err := s.Update(context.Background(), cfg); err != nil {
		t.Fatal(err)
	}
	if v, err := s.Why(context.Background(), q); err != nil || !v.Allowed {
		t.Errorf("%+v, %v", v, err)
	}
}

// TestWhyUnix_NET80 goes by the same rules as the broker.
func TestWhyUnix_NET80(t *testing.T) {
	s, dir := whySession(t, func(dir string, cfg *config.Config) {
		cfg.Network.AllowUnixSockets = []string{dir + "/listed", dir + "/work/w", dir + "/secret", dir + "/twice"}
	})
	for _, name := range []string{"listed", "work/w", "secret/s", "other", "twice"} {
		l, err := net.Listen("unix", filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
	}
	if err := os.Link(dir+"/twice", dir+"/again"); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"listed": "allowed by network.allowUnixSockets.0", "work/w": "allowed by network.allowUnixSockets.1",
		"work/w/none": "only sockets count that are there", "secret/s": "denied by filesystem.denyRead.0", "other": "no entry names that socket",
		"work/f": "denied by network.allowUnixSockets: what is there is no socket", "twice": "more than one name",
	} {
		v, err := s.Why(context.Background(), Query{QueryUnix, filepath.Join(dir, name)})
		if err != nil || !strings.Contains(v.String(), want) {
			t.Errorf("%s: %s, %v; want %q", name, &v, err, want)
		}
	}
}

// TestVerdictText: one clean line, and keys of JSON that stay.
func TestVerdictText(t *testing.T) {
	v := Verdict{Kind: QueryWrite, Target: "~/a\x1b[31m", Path: "/h/a\x1b[31m", Rule: "filesystem.denyWrite.2", Entry: "~/a\n", Reason: "so it is", Access: "write"}
	if got, want := v.String(), `write ~/a [31m (/h/a [31m): denied by filesystem.denyWrite.2 ("~/a\n"): so it is`; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	data, err := json.Marshal(v)
	if want := `{"kind":"write","target":"~/a\u001b[31m","allowed":false,"access":"write","path":"/h/a\u001b[31m","rule":"filesystem.denyWrite.2",` +
		`"entry":"~/a\n","reason":"so it is"}`; err != nil || string(data) != want {
		t.Errorf("%s, %v", data, err)
	}
}
