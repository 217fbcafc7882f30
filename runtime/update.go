package runtime

import (
	"context"

	"github.com/srt-sandbox/srt/runtime/config"
)

// Update replaces the whole configuration, atomically and after the validation of a settings file; on an error the old one
// stays wholly in force (LIB-20). The configuration is copied. What it says about hosts is in force from the next connection
// or request, for running commands too; established tunnels are not cut (LIB-21). What it says about launches counts from
// the next launch on (LIB-22). The rest is fixed until a new session: notLive names, as dotted paths in the order of the
// schema, the settings of that kind that differ from those the session began with (LIB-23).
//
// Updates are installed one after another. The error is a *config.Error for an invalid configuration, ErrClosed after
// Close, and ctx's cause when ctx has ended.
func (s *Sandbox) Update(ctx context.Context, cfg *config.Config) (notLive []string, err error) {
	if err := s.begunIn(ctx); err != nil {
		return nil, err
	}
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	own := cfg.Clone()
	s.updating.Lock()
	defer s.updating.Unlock()
	if s.isClosing() {
		return nil, ErrClosed
	}
	st, err := compile(own, s.begun, s.current())
	if err != nil {
		return nil, err
	}
	s.store.SetIgnore(own.IgnoreViolations)
	s.state.Store(st)
	return s.opts.notLive(s.begun, own), nil
}

// Config is a copy of the configuration in force, after Close of the last one.
func (s *Sandbox) Config() *config.Config { return s.current().cfg.Clone() }
