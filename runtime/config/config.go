package config

// Config is one settings file, or one line of the control channel. Where a field is optional, its zero value means
// that the key is absent, and the accessor methods give the default. Build one in Go code and call [Config.Validate],
// or get one from [Decode]. A Config is plain data: it may be read by several goroutines while none changes it.
type Config struct {
	Network     Network      // required
	Filesystem  Filesystem   // required
	Credentials *Credentials // nil: no credential is touched

	// IgnoreViolations maps a part of a command ("*": every command) to parts of violation lines to drop (CFG-38).
	IgnoreViolations map[string][]string

	EnableWeakerNestedSandbox    bool // Linux: permit the modes that need no namespaces of their own
	AllowNestedUserNamespaces    bool // Linux: the command may make user namespaces
	EnableWeakerNetworkIsolation bool // macOS
	AllowAppleEvents             bool // macOS
	AllowPty                     bool // macOS

	MandatoryDenySearchDepth int    // levels, 1 to 10; 0: the default (see SearchDepth). Linux
	JavaAgentJarPath         string // absolute path; empty: the built-in agent
	Git                      Git
	Windows                  Windows

	// The keys below configure helper programs that srt does not use. They are validated and have no effect (CFG-30).

	Ripgrep   *Ripgrep
	Seccomp   *Seccomp
	BwrapPath string // absolute path
	SocatPath string // absolute path

	unknown []UnknownKey // what Decode found and ignored (CFG-14), sorted by path
}

// Git is the section git.
type Git struct {
	SafeDirectories []string // values of git's safe.directory for the command
}

// Windows is the section windows.
type Windows struct {
	Backend         string    // "srt-win" or "mxc"; empty: "srt-win"
	SandboxUser     string    // account name, 1 to 20 UTF-16 units; empty: "srt-sandbox"
	SublayerGUID    string    // 8-4-4-4-12 hexadecimal digits; empty: WFPSublayerGUID, else the built-in one (CFG-36)
	WFPSublayerGUID string    // deprecated spelling of SublayerGUID
	ProxyPortRange  PortRange // zero: 60080 to 60089
	SrtWin          *SrtWin   // ignored (CFG-30)
}

// PortRange is an inclusive range of TCP ports (CFG-36). The zero value means that none is given.
type PortRange struct{ Low, High int }

// Ripgrep is the ignored section ripgrep (CFG-30).
type Ripgrep struct {
	Command string // required
	Args    []string
	Argv0   string
}

// Seccomp is the ignored section seccomp (CFG-30).
type Seccomp struct{ ApplyPath, Argv0 string }

// SrtWin is the ignored section windows.srtWin (CFG-30).
type SrtWin struct {
	Path string // required, non-empty
}

// Filesystem is the section filesystem (FS-1). Its zero value lets every path be read and only the default write
// paths be written.
type Filesystem struct {
	Disabled       bool        // no file system rule applies at all
	DenyRead       []PathEntry // required
	AllowRead      []PathEntry
	AllowWrite     []PathEntry // required
	DenyWrite      []PathEntry // required
	AllowGitConfig bool
}

// PathEntry is an entry of a path list (CFG-60, FS-2), as written: relative to srt's working directory, below "~", or
// absolute.
type PathEntry struct {
	Path    string // non-empty, without NUL
	Literal bool   // written as {"path": ..., "literal": true}: never a pattern
}

// Network is the section network. Its zero value reaches nothing.
type Network struct {
	AllowedDomains          []string          // required; domain entries with an optional port (CFG-41)
	DeniedDomains           []string          // required; the same, and "*" (CFG-47)
	DeniedDomainReasons     map[string]string // by the DeniedDomains entry as written (CFG-31); non-empty
	StrictAllowlist         bool
	DeniedResolvedAddresses []string // addresses and CIDR ranges (CFG-55)
	AllowUnixSockets        []string // paths
	AllowAllUnixSockets     bool
	AllowLocalBinding       bool     // macOS, Windows
	AllowMachLookup         []string // macOS; "*" only at the end (CFG-32)

	HTTPProxyPort  int // TCP port on the host's loopback, 1 to 65535; 0: srt's own proxy
	SOCKSProxyPort int // TCP port on the host's loopback, 1 to 65535; 0: srt's own proxy
	MitmProxy      *MitmProxy
	ParentProxy    ParentProxy

	AllowPlaintextHeaderSet bool
	RefuseOpaqueTunnels     bool
	RequireHostMatch        bool
	StripResponseHeaders    []string // header names, non-empty
	AmbiguousRequestTarget  string   // one of the Target constants; empty: TargetRefuse

	RequestRules []RequestRule // in order; nil: requests to allowed hosts are not judged one by one

	TLSTerminate *TLSTerminate // nil: tunnels stay opaque
}

// Values of Network.AmbiguousRequestTarget.
const (
	TargetRefuse    = "refuse"
	TargetAsSpelled = "asSpelled"
	TargetNormalize = "normalize"
)

// MitmProxy is the section network.mitmProxy (NET-63).
type MitmProxy struct {
	SocketPath string   // required, non-empty
	Domains    []string // required, at least one; host patterns without port
}

// ParentProxy is the section network.parentProxy. Each field falls back on the environment on its own (CFG-33).
type ParentProxy struct {
	HTTP    string  // URL or host:port, see ParseProxyURL; empty: not given
	HTTPS   string  // URL or host:port, see ParseProxyURL; empty: not given
	NoProxy *string // comma list (NET-62); nil: not given, so that an empty list can replace NO_PROXY
}

// TLSTerminate is the section network.tlsTerminate; its presence turns TLS termination on.
type TLSTerminate struct {
	CACertPath         string   // given together with CAKeyPath; both empty: a generated CA (CFG-70)
	CAKeyPath          string   // see CACertPath
	ExcludeDomains     []string // host patterns without port
	ExtraCACertPaths   []string // non-empty
	MaxTunnels         int      // 1 to 65536; 0: the default (see TunnelLimit)
	HandshakeTimeoutMs int      // milliseconds, 100 to 600000; 0: the default (see HandshakeTimeout)
}
