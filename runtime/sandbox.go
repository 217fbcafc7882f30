package runtime

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/srt-sandbox/srt/proxy"
	"github.com/srt-sandbox/srt/proxy/credential"
	"github.com/srt-sandbox/srt/runtime/config"
	"github.com/srt-sandbox/srt/runtime/policy"
	"github.com/srt-sandbox/srt/runtime/violation"
)

// Errors for errors.Is.
var (
	// ErrClosed is returned by launches and updates after Close or Shutdown (LIB-35, LIB-51).
	ErrClosed = errors.New("the sandbox is closed")
	// ErrUnsupportedPlatform is returned where this version cannot confine a command (LIB-9).
	ErrUnsupportedPlatform = errors.New("Unsupported platform")
)

// Sandbox is one session: a configuration, the proxies that hold its network policy, and the commands started in it. Any
// number of sessions coexist in a process, and nothing is shared between them (LIB-7).
//
// All methods may be called from any goroutine at any time (LIB-50). A session installs no signal handler, prints nothing,
// and leaves the environment, the working directory and the umask of the process alone (LIB-8).
//
// New makes one. The zero Sandbox is like one that is closed.
type Sandbox struct {
	opts    options
	begun   *config.Config        // what the session began with, for what stays as it was then (LIB-23); never changed
	state   atomic.Pointer[state] // what is in force, see current
	token   atomic.Pointer[string]
	trust   *trust            // nil: TLS is not terminated
	secrets *credential.Store // what is masked for commands
	proxy   *proxy.Server
	hooks   nameHooks
	tracing sessionTracing
	store   violation.Store
	lists   policy.CommandLists // of single commands (LIB-31)

	updating sync.Mutex // one update at a time, and none during Close

	mu       sync.Mutex
	refusing bool                   // no further launches
	closing  bool                   // nor those that are under way
	commands map[*Cmd]struct{}      // being launched, or running
	prepared map[*prepared]struct{} // for processes that may still come
	changed  chan struct{}          // closed when commands has shrunk; nil: nobody waits

	closed   sync.Once
	closeErr error
	done     chan struct{}
}

// New validates a configuration and starts a session: when it returns, the network policy is in force and commands can
// be launched. The configuration is copied. ctx bounds the start alone, not the session (LIB-51).
//
// It fails before anything is created (LIB-2, LIB-3, LIB-6): with a *config.Error for an invalid configuration, with a
// *mitm.CAError for a certificate authority that cannot be used (TLS-7), with a *DependencyError where commands cannot be
// confined, which matches ErrUnsupportedPlatform where srt never can, and with ctx's cause when ctx has ended. What a start has
// made that fails later is removed.
func New(ctx context.Context, cfg *config.Config, opts ...Option) (*Sandbox, error) {
	if err := ended(ctx); err != nil {
		return nil, err
	}
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	s := &Sandbox{begun: cfg.Clone(), opts: newOptions(opts), commands: map[*Cmd]struct{}{}, done: make(chan struct{})}
	if err := s.loadTrust(); err != nil {
		return nil, err
	}
	if err := checkPlatform(); err != nil {
		return nil, dependencyError(err)
	}
	if err := s.startProxy(); err != nil {
		return nil, errors.Join(err, s.trust.close())
	}
	if ctx.Err() != nil {
		return nil, errors.Join(context.Cause(ctx), s.Close())
	}
	return s, nil
}

// startProxy compiles the configuration and makes the server that holds its network policy; its listeners come with each
// command. Before that it writes what commands are to trust.
func (s *Sandbox) startProxy() error {
	st, err := compile(s.begun, s.begun, nil)
	if err != nil {
		return err
	}
	if s.secrets, err = credential.NewStore(); err != nil {
		return err
	}
	s.writeTrust()
	parent, err := s.parentProxy()
	if err != nil {
		return err
	}
	s.state.Store(st)
	s.store.SetIgnore(st.cfg.IgnoreViolations)
	n := &s.begun.Network
	token := ""
	if n.HTTPProxyPort == 0 { // beside an external one there is no token (NET-18, LIB-5)
		random := make([]byte, 16)
		rand.Read(random) // never fails (crypto/rand)
		token = hex.EncodeToString(random)
	}
	s.token.Store(&token)
	ends, values := s.trust.termination(), s.secrets
	if n.HTTPProxyPort != 0 { // nor for programs that know of no proxy: what is read would depend on the program (TLS-4)
		ends, values = nil, nil
	}
	s.proxy, err = proxy.New(proxy.Options{
		Policy: func() *proxy.Rules { return s.current().rules }, Token: token, Open: token == "", Parent: parent,
		RequireHostMatch: n.RequireHostMatch, RefuseOpaqueTunnels: n.RefuseOpaqueTunnels,
		StripResponseHeaders: n.StripResponseHeaders, OnViolation: s.report, Logger: s.opts.logger,
		Commands: &s.lists, Ask: s.askProxy(), Terminate: ends, Credentials: values,
		AllowPlaintextInject: s.begun.Credentials != nil && s.begun.Credentials.AllowPlaintextInject,
		Filtering: proxy.Filtering{Filter: s.opts.filter, AllowPlaintextHeaderSet: n.AllowPlaintextHeaderSet,
			AmbiguousRequestTarget: n.AmbiguousRequestTarget},
	})
	return err
}

// report is the one entry for what was refused, whoever refused it. The store drops what the settings ignore (VIO-25).
func (s *Sandbox) report(e violation.Event) {
	if e.Time.IsZero() {
		e.Time = time.Now()
	}
	if e.PID != 0 && e.Process == "" {
		e.Process = processName(e.PID)
	}
	if _, kept := s.store.Add(e); kept && s.opts.onViolation != nil {
		s.opts.onViolation(e)
	}
}
