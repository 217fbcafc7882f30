package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"syscall"

	"github.com/srt-sandbox/srt/proxy/decider"
	"github.com/srt-sandbox/srt/proxy/mitm"
)

// exitProxyStart is the status of srt proxy when it never served (PRX-3).
const exitProxyStart = 2

const proxyHelp = `Usage: srt proxy [options]

Forwards the HTTP requests of a workload that runs elsewhere, each only after the decider process at the other end of
--decider-fd has allowed it. No command is started, no settings file is read, nothing is written to disk.

Options:
  --listen-fd <fd>            accept on this inherited listening socket (Unix or TCP); wins over --listen
  --listen <host:port>        development: bind this address; port 0 to 65535, IPv6 in brackets
  --listen-any-interface      let --listen bind a non-loopback address, with a warning on standard error
  --decider-fd <fd>           one two-way stream to the decider
  --decider-in <fd>           instead: what the decider writes; a socket or pipe
  --decider-out <fd>          and what it reads
  --lifeline-fd <fd>          shut down when this stream ends or fails; what it carries is dropped
  --ca-fd <fd>                read the certificate authority (PEM, with its key) from this descriptor
  --strip-response-header <name...>  response headers that are never passed back
  --plaintext-header-set      let verdicts set headers on requests received in cleartext
  -d, --debug                 debug log on standard error
  -h, --help                  print this text
      --version               print the version

Exit status: 0 when it has served and was told to stop or lost its decider; 2 when it never served; 1 when its listening
socket failed. SRT_PROXY_REPORT_RSS_MS=<n> reports its memory on standard error every n milliseconds.

The protocol of the decider is described in docs/cli.md.
`

// proxyRun is one run of srt proxy.
type proxyRun struct {
	*app
	opts   proxyOptions
	log    *slog.Logger
	ctx    context.Context
	end    context.CancelCauseFunc
	served bool
	where  string // what is served, as PRX-4 names it
}

// proxy is the subcommand srt proxy (PRX-1 to PRX-8). Its options come after the word and are its own.
func (a *app) proxy(inv *invocation) int {
	before := inv.opts
	before.debug = false
	opts, err := parseProxy(inv.words)
	switch {
	case opts.version:
		return a.print("srt-proxy " + versionString() + "\n")
	case opts.help:
		return a.print(proxyHelp)
	case err == nil && before != (options{}):
		err = errors.New("its options go after the word proxy; only -d may come before")
	}
	if err != nil {
		return a.proxyRefuses(err)
	}
	inv.opts.debug = inv.opts.debug || opts.debug
	p := &proxyRun{app: a, opts: opts, log: a.logger(&inv.opts)}
	p.ctx, p.end = context.WithCancelCause(context.Background())
	defer p.end(nil)
	return p.run()
}

// proxyRefuses is a start that failed (PRX-3).
func (a *app) proxyRefuses(err error) int {
	fmt.Fprintf(a.stderr, "srt proxy: %v\n", err)
	return exitProxyStart
}

// run opens what was handed over and serves.
func (p *proxyRun) run() int {
	files, err := openProxyFiles(&p.opts)
	if err != nil {
		return p.proxyRefuses(err)
	}
	stop := p.catchSignals()
	defer stop()
	stopReport := p.reportMemory()
	defer stopReport()
	if files.lifeline != nil {
		defer files.lifeline.Close()
		go p.watchLifeline(files.lifeline)
	}
	ln, err := p.listen(files.listener)
	if err != nil {
		_ = files.link.Close()
		return p.proxyRefuses(err)
	}
	serve, err := p.options(files.ca)
	if err != nil {
		_, _ = files.link.Close(), ln.Close()
		return p.proxyRefuses(err)
	}
	return p.ended(decider.Serve(p.ctx, ln, files.link, serve...))
}

// ended says why serving ended, and gives the exit status (PRX-3, PRX-5).
func (p *proxyRun) ended(err error) int {
	var stopped *stopError
	var link *decider.LinkError
	switch {
	case errors.As(err, &link) && !p.served:
		return p.proxyRefuses(fmt.Errorf("decider unavailable: %s", link.Reason))
	case errors.As(err, &stopped) && !p.served:
		return p.proxyRefuses(unavailable(stopped))
	case stopped != nil || link != nil:
		fmt.Fprintf(p.stderr, "srt proxy: stopped (%v)\n", err)
		return 0
	case !p.served:
		return p.proxyRefuses(err)
	}
	fmt.Fprintf(p.stderr, "srt proxy: %v\n", err)
	return exitFailure
}

func unavailable(why error) error { return fmt.Errorf("decider unavailable: %w", why) }

// stopError is a cause to stop that is neither the link's nor a failure: a signal or the lifeline.
type stopError struct{ why string }

// Error returns the cause as PRX-5 spells it.
func (e *stopError) Error() string { return e.why }

// proxySignals end srt proxy. One that was ignored when srt started stays ignored.
var proxySignals = []struct {
	signal os.Signal
	name   string
}{{syscall.SIGTERM, "SIGTERM"}, {syscall.SIGINT, "SIGINT"}}

// catchSignals makes the signals end the run.
func (p *proxyRun) catchSignals() (stop func()) {
	caught := make(chan os.Signal, len(proxySignals))
	for _, s := range proxySignals {
		if !signal.Ignored(s.signal) {
			signal.Notify(caught, s.signal)
		}
	}
	go func() {
		for sig := range caught {
			for _, s := range proxySignals {
				if s.signal == sig {
					p.end(&stopError{s.name})
				}
			}
		}
	}()
	return func() { signal.Stop(caught); close(caught) }
}

// watchLifeline ends the run when the lifeline does. What comes by it is dropped.
func (p *proxyRun) watchLifeline(r io.Reader) {
	if _, err := io.Copy(io.Discard, r); err != nil {
		p.log.Debug("proxy: the lifeline failed", "error", err)
		p.end(&stopError{"lifeline error"})
		return
	}
	p.end(&stopError{"lifeline closed"})
}

// listen returns the inherited socket, or binds the address of --listen.
func (p *proxyRun) listen(inherited net.Listener) (net.Listener, error) {
	if inherited != nil {
		p.where = fmt.Sprintf("fd %d", p.opts.listenFD)
		return inherited, nil
	}
	if p.opts.listen.exposed {
		fmt.Fprintf(p.stderr, "srt proxy: warning: %s is not a loopback address: whoever reaches it can use this proxy\n", p.opts.listen.text)
	}
	ln, err := net.Listen("tcp", p.opts.listen.bind)
	if err != nil {
		return nil, fmt.Errorf("cannot listen on %s: %w", p.opts.listen.text, err)
	}
	p.where = ln.Addr().String()
	return ln, nil
}

// options are those of decider.Serve. It reads the certificate authority, which it closes.
func (p *proxyRun) options(ca *os.File) ([]decider.Option, error) {
	serve := []decider.Option{
		decider.WithLogger(p.log),
		decider.WithStripResponseHeaders(p.opts.strip...),
		decider.WithServing(func() {
			p.served = true
			fmt.Fprintf(p.stderr, "srt proxy: serving %s\n", p.where)
		}),
	}
	if p.opts.plaintextSet {
		serve = append(serve, decider.WithPlaintextHeaderSet())
	}
	if ca == nil {
		return serve, nil
	}
	authority, err := p.readCA(ca)
	if err != nil {
		return nil, err
	}
	return append(serve, decider.WithCA(authority)), nil
}

// maxProxyCA is how many bytes of PEM are read at most.
const maxProxyCA = 1 << 20

// readCA reads the certificate authority to the end of its descriptor, or until the run ends. The text is wiped; the key
// stays in memory (PRX-8).
func (p *proxyRun) readCA(r *os.File) (*mitm.CA, error) {
	stop := context.AfterFunc(p.ctx, func() { _ = r.Close() })
	defer func() {
		stop()
		_ = r.Close()
	}()
	text := make([]byte, maxProxyCA+1) // at once, so that no copy of the key is left behind by growing
	defer clear(text)
	n, err := io.ReadFull(r, text)
	switch {
	case p.ctx.Err() != nil:
		return nil, unavailable(context.Cause(p.ctx))
	case err == nil:
		return nil, fmt.Errorf("--ca-fd %d: it holds more than 1 MiB; a certificate and its key, in PEM, are expected", p.opts.caFD)
	case !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF):
		return nil, fmt.Errorf("--ca-fd %d cannot be read: %w", p.opts.caFD, err)
	}
	ca, err := mitm.FromPEM(text[:n], text[:n])
	if err != nil {
		return nil, fmt.Errorf("--ca-fd %d: %w", p.opts.caFD, err)
	}
	return ca, nil
}
