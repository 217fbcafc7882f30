package runtime

import (
	"context"
	"errors"
	"testing"

	"github.com/srt-sandbox/srt/runtime/config"
)

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
