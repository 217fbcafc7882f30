package runtime

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/srt-sandbox/srt/fsview"
	"github.com/srt-sandbox/srt/ns"
	"github.com/srt-sandbox/srt/runtime/config"
	"github.com/srt-sandbox/srt/runtime/policy"
	"github.com/srt-sandbox/srt/seccomp"
)

// The ports of the two proxies inside a sandbox (NET-3), on both loopback addresses. Each accepts either protocol. The
// listeners are made inside the network namespace, before the command exists (NET-4).
const (
	httpPort  = 3128
	socksPort = 1080
)

// maxListeners is how many ns.Program.Listen sends.
const maxListeners = 4

// rootKeeps are the capabilities that a command of root keeps, valid in the sandbox's own user namespace alone (design
// section 4). What holds the policy are mounts, Landlock and filters, none of which these can change.
var rootKeeps = ns.CapabilitySet(unix.CAP_CHOWN, unix.CAP_DAC_OVERRIDE, unix.CAP_FOWNER, unix.CAP_FSETID, unix.CAP_KILL,
	unix.CAP_SETGID, unix.CAP_SETUID, unix.CAP_NET_BIND_SERVICE)

// launch is everything about one command, compiled and ready to start.
type launch struct {
	cmd       *Cmd
	cfg       *config.Config // of this command; its network.allowedDomains judge nothing (config.Override.Apply)
	host      host
	plan      *fsview.Plan
	mechanism *PlannedMechanism // nil when mounts enforce the plan alone
	guard     *fsview.Guard     // what the broker judges by; nil without one
	hooked    *hookedNames      // nil unless hooks in the kernel stand in for the broker
	held      *heldNames        // nil unless placeholders do
	// uncaptured says why connections are not captured, nil if they are.
	uncaptured error
	view       *fsview.Confined // in mode confined alone, with its judge
	changes    *fsview.ConfinedJudge
	trust      launched // what the command is told to trust
	sockets    []string // locations of Unix sockets of the host that the command may connect to
	// socketEntries are the same with the entries behind them.
	socketEntries []policy.PathRule
	socketRules   *socketRules // nil where nobody asks
	tmp           string       // TMPDIR
	attempt
	monitored
	env        []string
	candidates []string
	filters    []seccomp.Filter
	streams    []ns.Stream
}

// attempt is how a launch is tried. The zero value is the first one.
type attempt struct {
	neighbours   bool   // placeholders of other sandboxes are on the disk
	dry          bool   // to be looked at, not to be started
	withoutHooks error  // begun again, without hooks in the kernel: why
	mode         Mode   // ModeFull unless something said otherwise; a dry one tells what it would be
	hostProc     bool   // with the surrounding /proc in the place of a fresh one (mode nested)
	ports        [2]int // of the proxies on the host's loopback, HTTP and SOCKS (mode confined)
	again        bool   // an earlier attempt has said what there is to say
}

// prepare compiles the settings for one command against the surroundings as they are now (LIB-16). A dry one changes
// nothing on the disk.
func (c *Cmd) prepare(h host, how attempt) (*launch, error) {
	if c.cfg == nil { // not by way of Start: a dry one
		if err := c.configure(); err != nil {
			return nil, err
		}
	}
	l := &launch{cmd: c, cfg: c.cfg, host: h, attempt: how}
	if err := l.host.readSystem(); err != nil {
		return nil, err
	}
	base := c.Env
	if base == nil {
		base = os.Environ()
	}
	cwd, home, err := surroundings(c.Dir, base)
	if err != nil {
		return nil, err
	}
	exe, err := executable()
	if err != nil {
		return nil, err
	}
	if err := c.mask(base); err != nil {
		return nil, err
	}
	if l.trust, err = c.sandbox.trust.launch(); err != nil {
		return nil, err
	}
	tmp := chooseTempDir(base, l.host.uid)
	l.tmp = tmp.path
	l.chooseCapture()
	if err := l.resolveSockets(policy.PathInput{Cwd: cwd, Home: home}); err != nil {
		return nil, err
	}
	if l.plan, err = l.planFiles(cwd, home, exe, tmp); err != nil {
		return nil, err
	}
	l.ruleSockets()
	l.composeEnv(base, exe, tmp)
	l.candidates = candidates(c.Path, l.env)
	l.chooseMonitor()
	l.chooseFilters()
	return l, nil
}

// executable is the path of this program, without links. An embedder's own program serves as well: only its file is
// protected and kept readable.
func executable() (string, error) {
	exe, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return "", fmt.Errorf("the path of srt's own program cannot be told: %w", err)
	}
	return exe, nil
}

func (l *launch) planFiles(cwd, home, exe string, tmp tempDir) (*fsview.Plan, error) {
	f, s := &l.cfg.Filesystem, l.cmd.sandbox
	in := policy.PathInput{Cwd: cwd, Home: home}
	if cr := l.cfg.Credentials; cr != nil {
		in.CredentialFiles = cr.Files
	}
	masks, err := policy.ResolveMasks(in)
	if err != nil {
		return nil, err
	}
	if f.Disabled {
		in.CredentialFiles = nil // only masks count (FS-56)
	} else {
		in.DenyRead, in.AllowRead, in.AllowWrite, in.DenyWrite = f.DenyRead, f.AllowRead, f.AllowWrite, f.DenyWrite
	}
	rules, err := policy.ResolvePaths(in)
	if err != nil {
		return nil, err
	}
	if len(masks) != len(l.cmd.masks.files) {
		return nil, errors.New("credentials.files has other entries than the rules made of it; nothing can be masked")
	}
	extra := fsview.DefaultWritePaths(home, rules)
	if tmp.own {
		extra = append(extra, tmp.path)
	}
	return l.planNames(fsview.Input{
		Rules: rules, Masks: masks, FakeContent: l.cmd.masks.fake, Cwd: cwd, Home: home, UID: l.host.uid,
		Private: l.private(), PrivateFiles: slices.Concat(s.opts.privateFiles, l.trust.hidden), TrustFiles: l.trust.shown, TrustDirs: l.trust.dirs,
		Program: exe, OwnFiles: s.opts.ownFiles, ExtraWrite: extra,
		MandatoryDepth: l.cfg.MandatoryDenySearchDepth, AllowGitConfig: f.AllowGitConfig, Disabled: f.Disabled,
		HideSSHConfigDir: !l.host.mapsAll && !l.confines(), KernelMounts: l.host.kernelMounts, MountMax: l.host.mountMax,
		Mounts: l.host.mounts, MountsInUse: len(l.host.mounts), Supplied: l.supplied(),
		ForeignProcesses: l.judgesProcesses(),
	})
}

// supplied are the files that srt shows in the place of the host's: with a resolver of its own the command has nothing of
// what the host says about names.
func (l *launch) supplied() []fsview.SuppliedFile {
	if !l.captured() {
		return nil
	}
	return fsview.ResolverFiles(os.ReadFile)
}

// private are the directories that no command may see.
func (l *launch) private() []string {
	if state, err := stateDir(l.host.uid); err == nil {
		return []string{state}
	}
	return nil // nothing is kept anywhere
}

// planNames makes the plan, and chooses what holds the rules in it that no mount can.
func (l *launch) planNames(in fsview.Input) (*fsview.Plan, error) {
	if err := l.denyPlaceholders(&in); err != nil {
		return nil, err
	}
	plan, err := l.build(in)
	if err != nil {
		return nil, err
	}
	if l.confines() {
		err = l.holdConfined(in, plan)
	} else {
		plan, err = l.holdNames(in, plan)
	}
	if err != nil {
		return nil, err
	}
	if l.again {
		return plan, nil // the first attempt has said it
	}
	for _, w := range plan.Warnings {
		l.cmd.sandbox.opts.warn(w)
	}
	for _, n := range plan.Notes {
		l.cmd.sandbox.opts.logger.Debug(n)
	}
	return plan, nil
}

func (l *launch) build(in fsview.Input) (*fsview.Plan, error) {
	return fsview.BuildWithin(fsview.Host(), in, 0)
}

func (l *launch) composeEnv(base []string, exe string, tmp tempDir) {
	s := l.cmd.sandbox
	unset, replace := l.cmd.masks.variables()
	http, socks := l.proxyPorts()
	in := policy.EnvironInput{
		Base: base, HTTPPort: http, SOCKSPort: socks, Token: s.secret(), User: policy.ProxyUser(l.cmd.Key()), Restricted: true,
		Debug: l.cmd.Debug, Unset: unset, Replace: replace, Trust: l.trust.variables, JavaOptions: l.trust.java,
		AWSKey: l.cmd.masks.signsAWS(), SafeDirectories: l.cfg.Git.SafeDirectories,
		SSHCommand: policy.SSHCommand(exe), PWD: l.plan.Dir, JavaAgent: l.cfg.JavaAgentJarPath,
	}
	if !l.cfg.Filesystem.Disabled {
		in.TMPDIR = tmp.path
		if tmp.note != "" {
			s.opts.logger.Debug(tmp.note)
		}
	}
	l.env = policy.Environ(in)
}

// defaultPath is where programs are looked up when the environment has no PATH (execvp(3)).
const defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// candidates are the paths at which a program may be found, in the order of execvp(3).
func candidates(name string, env []string) []string {
	if name == "" || strings.Contains(name, "/") {
		return []string{name}
	}
	search := defaultPath
	for _, e := range env {
		if v, ok := strings.CutPrefix(e, "PATH="); ok {
			search = v
		}
	}
	var list []string
	for _, dir := range strings.Split(search, ":") {
		if dir == "" {
			dir = "."
		}
		list = append(list, dir+"/"+name)
	}
	return list
}

// chooseFilters stacks the system call filters that the settings ask for. Each is lifted by its own key alone.
func (l *launch) chooseFilters() {
	if l.confines() {
		l.chooseConfinedFilters()
		return
	}
	l.filters = []seccomp.Filter{seccomp.Base()}
	if !l.cfg.AllowNestedUserNamespaces {
		l.filters = append(l.filters, seccomp.Namespaces())
	}
	l.filters = append(l.filters, l.socketFilters()...)
	l.chooseNameFilter() // last: what another filter refuses is not put to the broker (seccomp.Stack)
	l.chooseObserver()
}

// writeNetwork writes the first part of the launch program, which needs nothing of the plan: pid 1 runs it while that is
// being made.
func writeNetwork(p *ns.Program) {
	p.LoopbackUp()
	p.ProhibitRoutes()
	p.UnpacedTCP()
	p.Listen(0, httpPort, socksPort)
	if noCapture() == nil { // as launch.captured
		p.ListenCapture(captureIndex)
	}
	p.Ahead()
}

// write writes the rest of the launch program: what pid 1 does before the command exists. The order is that of
// docs/architecture.md.
func (l *launch) write(p *ns.Program) error {
	umask := p.ClearUmask()
	if !l.cfg.AllowNestedUserNamespaces {
		p.ForbidUserNamespaces(l.hostProc)
	}
	opts := fsview.CompileOptions{LandlockABI: l.host.landlockABI, NestedNamespaces: l.cfg.AllowNestedUserNamespaces,
		OwnAbstractNames: l.captured(), TTYGroup: l.host.mapsTTYGroup(), ProcEntries: l.host.procEntries, HostProc: l.hostProc,
		Lacks: l.host.lacks}
	if err := l.plan.Compile(p, opts); err != nil {
		return err
	}
	for _, s := range l.streams {
		p.Reopen(s)
	}
	ruleset := l.plan.CompileLandlock(p, opts)
	p.Chdir(l.plan.Dir)
	p.RestoreUmask(umask)
	p.NewKeyring()
	p.Undumpable()
	p.KeepCapabilities(l.keeps())
	p.NoNewPrivs()
	l.writeFilters(p, ruleset)
	return nil
}
