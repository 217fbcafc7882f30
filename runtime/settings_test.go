package runtime

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/srt-sandbox/srt/runtime/config"
)

// TestUnsupportedSettingsAreRefused walks the table: a key that would weaken the boundary if it were ignored stops the
// start with its name and what to do.
func TestUnsupportedSettingsAreRefused(t *testing.T) {
	set := map[string]func(*config.Config){
		"network.tlsTerminate": func(c *config.Config) { c.Network.TLSTerminate = &config.TLSTerminate{} },
		"credentials.envVars": func(c *config.Config) {
			c.Credentials = &config.Credentials{AllowPlaintextInject: true,
				EnvVars: []config.EnvCredential{{Name: "TOKEN", Credential: config.Credential{Mode: config.ModeMask}}}}
		},
	}
	for _, u := range unsupported {
		change, ok := set[u.key]
		if !ok {
			t.Errorf("%s: no case here", u.key)
			continue
		}
		cfg := config.Default()
		change(cfg)
		_, err := New(context.Background(), cfg)
		if !errors.Is(err, ErrUnsupportedSetting) || !strings.Contains(err.Error(), u.key) || !strings.Contains(err.Error(), "Remove the key") {
			t.Errorf("%s: %v", u.key, err)
		}
		delete(set, u.key)
	}
	for key := range set {
		t.Errorf("%s is not in the table", key)
	}
}

func TestNewChecksFirst_LIB2_LIB17(t *testing.T) {
	cfg := config.Default()
	cfg.Network.AllowedDomains = []string{"*"}
	var invalid *config.Error
	if _, err := New(context.Background(), cfg); !errors.As(err, &invalid) {
		t.Errorf("an invalid configuration: %v", err)
	}
	cause := errors.New("not any more")
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(cause)
	if _, err := New(ctx, config.Default()); !errors.Is(err, cause) {
		t.Errorf("an ended context: %v", err)
	}
}
