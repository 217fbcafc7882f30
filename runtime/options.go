package runtime

import (
	"log/slog"

	"github.com/srt-sandbox/srt/proxy"
	"github.com/srt-sandbox/srt/runtime/violation"
)

// options are what a session is given beside its configuration (LIB-1). They never change once New has returned.
type options struct {
	logger      *slog.Logger
	warn        func(string)
	onViolation func(violation.Event)
	ownFiles    []string
	keep        // private.go
	timing      func(string)
	monitor     Monitor
	ask         asking
	filter      proxy.RequestFilter
}

// newOptions applies options to the defaults.
func newOptions(list []Option) options {
	o := options{logger: slog.New(slog.DiscardHandler), timing: func(string) {}}
	for _, change := range list {
		if change != nil {
			change(&o)
		}
	}
	if o.warn == nil {
		o.warn = func(line string) { o.logger.Warn(line) }
	}
	return o
}

// Option changes one thing about a session.
type Option func(*options)

// WithLogger sends debug lines to l. They never hold a token or a credential. The default discards them (LIB-8).
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

// WithOnViolation calls f for every refusal that the settings do not ignore, at once, by whatever refused it: f must be safe
// for concurrent use, return soon, and not call Close or Shutdown, which wait for it. Violations.Subscribe and Violations.Watch
// have no such limits.
func WithOnViolation(f func(violation.Event)) Option { return func(o *options) { o.onViolation = f } }

// WithSettingsFile names the settings file in use by its absolute path. Commands cannot change it, whatever the write
// lists say (FS-51).
func WithSettingsFile(path string) Option { return WithOwnFiles(path) }

// WithOwnFiles names further files of the caller's own by their absolute paths: settings files that a later run may read,
// for example. Commands cannot change them, nor make one that does not exist, whatever the write lists say (FS-51). One that
// has a second name (a hard link) at a launch is an error of that launch where a command could change it by the other name:
// an earlier one may have made it. The caller's own program is protected without being named, and may have further names:
// nobody can write to a program that runs.
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

// WithRequestFilter lets f decide about each HTTP request to an allowed host, after every other check and before anything is
// dialled (LIB-1, NET-35 to NET-37, REQ-12): those in cleartext, and where network.tlsTerminate is set those inside TLS. It is
// fixed for the life of the session (LIB-23), and so are the settings that go with it: network.ambiguousRequestTarget and
// network.allowPlaintextHeaderSet. What passes through a tunnel that is not terminated it does not see (SOCKS, excluded hosts,
// what is not TLS): network.refuseOpaqueTunnels refuses those. f may call every method of the session. A nil f is none.
func WithRequestFilter(f proxy.RequestFilter) Option { return func(o *options) { o.filter = f } }

// Monitor says which refusals of the kernel are reported beside those of the proxies and the broker, which always are
// (LIB-1).
type Monitor uint8

const (
	// MonitorOff reports none. It is the default, and costs nothing.
	MonitorOff Monitor = iota
	// MonitorWrites reports refused calls that change something: the calls of VIO-10, openat2, setxattr and truncation.
	MonitorWrites
	// MonitorAll reports refused reads too: open for reading, readlink, execve, chdir.
	MonitorAll
)

// WithMonitor chooses which refusals of the kernel are reported. It is fixed for the life of the session (LIB-23).
func WithMonitor(m Monitor) Option { return func(o *options) { o.monitor = m } }
