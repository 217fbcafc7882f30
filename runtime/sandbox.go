package runtime

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/srt-sandbox/srt/proxy"
	"github.com/srt-sandbox/srt/runtime/config"
	"github.com/srt-sandbox/srt/runtime/policy"
	"github.com/srt-sandbox/srt/runtime/violation"
)

// Errors for errors.Is.
var (
	// ErrClosed is returned by a launch after Close.
	ErrClosed = errors.New("the sandbox is closed")
	// ErrUnsupportedPlatform is returned where this version cannot confine a command.
	ErrUnsupportedPlatform = errors.New("Unsupported platform")
	// ErrUnsupportedSetting is wrapped by the error for a key that this version does not honour and may not ignore.
	ErrUnsupportedSetting = errors.New("this version of srt does not support it, and running without it would be weaker than the settings ask for")
)

// Sandbox is one session: a configuration, the proxies that hold its network policy, and the commands started in it.
// All methods are safe for concurrent use. Nothing is shared between sessions.
type Sandbox struct {
	cfg     *config.Config
	opts    options
	network atomic.Pointer[policy.Network] // the rules in force (NET-16)
	token   string
	proxy   *proxy.Server
	hooks   nameHooks

	mu       sync.Mutex
	closed   bool
	commands map[*Cmd]struct{}
	serving  sync.WaitGroup
}

// options are what a session is given beside its configuration.
type options struct {
	logger      *slog.Logger
	warn        func(string)
	onViolation func(violation.Event)
	ownFiles    []string
	timing      func(string)
}

// Option changes one thing about a session.
type Option func(*options)

// WithLogger sends debug lines to l. They never hold a token or a credential. The default discards them.
func WithLogger(l *slog.Logger) Option {
	return func(o *options) {
		if l != nil {
			o.logger = l
		}
	}
}

// WithWarnings calls f with one line for each entry of the settings that grants nothing (FS-8, FS-10) and for a hidden
// working directory (FS-49). f must be safe for concurrent use. The default sends them to the logger.
func WithWarnings(f func(line string)) Option { return func(o *options) { o.warn = f } }

// WithOnViolation calls f for every refusal. f must be safe for concurrent use and return soon.
func WithOnViolation(f func(violation.Event)) Option { return func(o *options) { o.onViolation = f } }

// WithSettingsFile names the settings file in use by its absolute path. Commands cannot change it, whatever the write
// lists say (FS-51).
func WithSettingsFile(path string) Option { return WithOwnFiles(path) }

// WithOwnFiles names further files of the caller's own by their absolute paths: settings files that a later run may read,
// for example. Commands cannot change them, nor make one that does not exist, whatever the write lists say (FS-51).
func WithOwnFiles(paths ...string) Option {
	return func(o *options) { o.ownFiles = append(o.ownFiles, paths...) }
}

// WithTiming calls f with the name of each phase of a launch when it is done: "identities read", "files planned",
// "namespaces made" and so on. f must be safe for concurrent use.
func WithTiming(f func(phase string)) Option {
	return func(o *options) {
		if f != nil {
			o.timing = f
		}
	}
}

// New validates a configuration and starts a session: when it returns, the network policy is in force and commands can
// be launched. The configuration is copied. It fails before anything is created: with a *config.Error for an invalid
// one, with ErrUnsupportedSetting for a key that this version must not ignore, with ErrUnsupportedPlatform where
// commands cannot be confined, and with ctx's cause when ctx has ended.
func New(ctx context.Context, cfg *config.Config, opts ...Option) (*Sandbox, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if err := refuseUnsupported(cfg); err != nil {
		return nil, err
	}
	s := &Sandbox{cfg: cfg.Clone(), commands: map[*Cmd]struct{}{}, opts: options{logger: slog.New(slog.DiscardHandler), timing: func(string) {}}}
	for _, o := range opts {
		o(&s.opts)
	}
	if s.opts.warn == nil {
		s.opts.warn = func(line string) { s.opts.logger.Warn(line) }
	}
	if err := checkPlatform(); err != nil {
		return nil, err
	}
	if err := s.startProxy(); err != nil {
		return nil, err
	}
	return s, nil
}

// startProxy compiles the network policy and makes the server that holds it; its listeners come with each command.
func (s *Sandbox) startProxy() error {
	n := &s.cfg.Network
	network, err := policy.NewNetwork(policy.NetworkRules{
		AllowedDomains: n.AllowedDomains, DeniedDomains: n.DeniedDomains, DeniedDomainReasons: n.DeniedDomainReasons,
		StrictAllowlist: n.StrictAllowlist, DeniedResolvedAddresses: n.DeniedResolvedAddresses,
	})
	if err != nil {
		return err
	}
	parent, err := s.parentProxy()
	if err != nil {
		return err
	}
	mitm, err := s.mitmProxy()
	if err != nil {
		return err
	}
	if n.HTTPProxyPort == 0 { // beside an external one there is no token (NET-18)
		token := make([]byte, 16)
		rand.Read(token) // never fails (crypto/rand)
		s.token = hex.EncodeToString(token)
	}
	s.network.Store(network)
	s.proxy, err = proxy.New(proxy.Options{
		Policy: s.network.Load, Token: s.token, Open: s.token == "", Parent: parent,
		MITM:             func() *proxy.MITM { return mitm },
		RequireHostMatch: n.RequireHostMatch, RefuseOpaqueTunnels: n.RefuseOpaqueTunnels,
		StripResponseHeaders: n.StripResponseHeaders, OnViolation: s.report, Logger: s.opts.logger,
	})
	return err
}

// report passes one refusal on, unless the settings ignore it: for every command, or for those whose text holds a key
// (CFG-38, NET-73, VIO-25).
func (s *Sandbox) report(e violation.Event) {
	if e.Time.IsZero() {
		e.Time = time.Now()
	}
	line := e.RawLine()
	for key, patterns := range s.cfg.IgnoreViolations {
		if (key == "*" || strings.Contains(e.CommandID, key)) && containsAny(line, patterns) {
			return
		}
	}
	if s.opts.onViolation != nil {
		s.opts.onViolation(e)
	}
}

// Config is a copy of the session's configuration.
func (s *Sandbox) Config() *config.Config { return s.cfg.Clone() }

// Close refuses further launches, kills what still runs in the session, cuts every proxied connection and waits until
// nothing of it is left. It is idempotent.
func (s *Sandbox) Close() error {
	s.mu.Lock()
	s.closed = true
	running := make([]*Cmd, 0, len(s.commands))
	for c := range s.commands {
		running = append(running, c)
	}
	s.mu.Unlock()
	var errs []error
	for _, c := range running {
		if err := c.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
			errs = append(errs, fmt.Errorf("end %s: %w", c.Path, err))
		}
	}
	if err := s.proxy.Close(); err != nil {
		errs = append(errs, fmt.Errorf("close the proxies: %w", err))
	}
	if err := s.hooks.close(); err != nil {
		errs = append(errs, fmt.Errorf("take the hooks out of the kernel: %w", err))
	}
	s.serving.Wait()
	return errors.Join(errs...)
}

// register notes a command that is about to start.
func (s *Sandbox) register(c *Cmd) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return ErrClosed
	}
	s.commands[c] = struct{}{}
	return nil
}

func (s *Sandbox) forget(c *Cmd) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.commands, c)
}
