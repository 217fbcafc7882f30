package runtime

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/srt-sandbox/srt/runtime/config"
)

func TestLIB9_Check(t *testing.T) {
	r, err := Check(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if (checkPlatform() == nil) != (len(r.Errors) == 0) {
		t.Errorf("%v, and the platform: %v", r.Errors, checkPlatform())
	}
	if (r.Err() == nil) != (len(r.Errors) == 0) {
		t.Errorf("%v, %v", r.Err(), r.Errors)
	}
	bad := config.Default()
	bad.Network.AllowedDomains = []string{"*"}
	var invalid *config.Error
	if _, err := Check(t.Context(), bad); !errors.As(err, &invalid) {
		t.Errorf("an invalid configuration: %v", err)
	}
	cause := errors.New("not any more")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	if _, err := Check(ctx, nil); !errors.Is(err, cause) {
		t.Errorf("an ended context: %v", err)
	}
}

// TestLIB10_OwnExecutable: it is warned of where commands could replace the embedder's program, and only there.
func TestLIB10_OwnExecutable(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Dir(exe)
	for name, c := range map[string]struct {
		change func(*config.Config)
		warns  bool
	}{
		"elsewhere": {func(*config.Config) {}, false},
		"writable":  {func(c *config.Config) { c.Filesystem.AllowWrite = []config.PathEntry{{Path: dir}} }, true},
		"disabled": {func(c *config.Config) {
			c.Filesystem.AllowWrite, c.Filesystem.Disabled = []config.PathEntry{{Path: dir}}, true
		}, false},
		"denied": {func(c *config.Config) {
			c.Filesystem.AllowWrite, c.Filesystem.DenyWrite = []config.PathEntry{{Path: dir}}, []config.PathEntry{{Path: exe}}
		}, false},
	} {
		cfg := config.Default()
		c.change(cfg)
		r, err := Check(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		if said := strings.Contains(strings.Join(r.Warnings, "\n"), exe); said != c.warns {
			t.Errorf("%s: %q", name, r.Warnings)
		}
	}
}

// TestLIB3_DependencyError states the texts and what the error matches.
func TestLIB3_DependencyError(t *testing.T) {
	first, second := errors.New("no first"), errors.New("no second")
	r := Report{Errors: []string{first.Error(), second.Error()}, reasons: []error{first, second}}
	err := r.Err()
	var typed *DependencyError
	if !errors.As(err, &typed) || !errors.Is(err, second) || err.Error() != "Sandbox dependencies not available: no first, no second" {
		t.Errorf("%v", err)
	}
	if err := dependencyError(ErrUnsupportedPlatform); !errors.Is(err, ErrUnsupportedPlatform) || err.Error() != "Unsupported platform" {
		t.Errorf("%v", err)
	}
	both := config.Default()
	both.Network.TLSTerminate, both.Network.MitmProxy = &config.TLSTerminate{}, &config.MitmProxy{SocketPath: "/s", Domains: []string{"a.example"}}
	if _, err := New(t.Context(), both); err == nil || !strings.Contains(err.Error(), "network.tlsTerminate and network.mitmProxy are mutually exclusive") {
		t.Errorf("%v", err)
	}
}
