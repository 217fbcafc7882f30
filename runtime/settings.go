package runtime

import (
	"fmt"
	"slices"

	"github.com/srt-sandbox/srt/runtime/config"
)

// occasion is when a configuration is taken up.
type occasion uint8

const (
	atStart  occasion = iota // of a session
	atUpdate                 // of a running one
	atLaunch                 // of a command with an override
	atLive                   // of a running one of which only what is live counts (WithFixedLaunch)
)

// unsupported are the keys that are valid but whose feature does not exist yet, and which would weaken what the user
// asked for if they were ignored. Keys that may be ignored safely are not here.
var unsupported = []struct {
	key    string
	is     func(*config.Config) bool
	reason string
	// fixed keys count at the start alone: an update says that they are not live (LIB-23).
	fixed bool
}{
	{"network.tlsTerminate", func(c *config.Config) bool { return c.Network.TLSTerminate != nil },
		"TLS would pass through unseen", true},
	{"credentials.envVars", masksVariables, "variables with mode \"mask\" would be seen by the command", false},
}

// masksVariables reports whether a variable is to be masked. Masked files are hidden until they can be.
func masksVariables(c *config.Config) bool {
	return c.Credentials != nil && slices.ContainsFunc(c.Credentials.EnvVars,
		func(v config.EnvCredential) bool { return v.Mode == config.ModeMask })
}

// validate makes every check of a settings file (LIB-2), and names the first key that this version must not ignore.
func validate(c *config.Config, when occasion) error {
	if err := c.Validate(); err != nil {
		return err
	}
	for _, u := range unsupported {
		if u.is(c) && when != atLive && (when == atStart || !u.fixed) {
			return fmt.Errorf("%s: %w (%s). Remove the key to run without it", u.key, ErrUnsupportedSetting, u.reason)
		}
	}
	return nil
}
