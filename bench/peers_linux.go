package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// peer is one way to run a command.
type peer struct {
	name string
	argv func(p place, command []string) []string
	path string // folders in front of PATH
	slow bool   // takes a fifth of the runs
	// beside is what a process that serves the peer, and that no run of it waits for, has spent so far; nil: there is none.
	beside func() (time.Duration, error)
	why    string // why it cannot run; empty: it can
}

// outside runs the command as it is.
var outside = peer{name: "outside", argv: func(_ place, command []string) []string { return command }}

// bwrap makes the namespaces and mounts of a sandbox, without a policy: the floor for a separate program.
func bwrap(extra ...string) peer {
	p := peer{name: "bwrap", argv: func(p place, command []string) []string {
		args := []string{"bwrap", "--ro-bind", "/", "/", "--bind", p.folder, p.folder, "--proc", "/proc", "--dev", "/dev",
			"--unshare-user", "--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts"}
		return slices.Concat(args, extra, []string{"--"}, command)
	}}
	if _, err := exec.LookPath("bwrap"); err != nil {
		p.why = err.Error()
	}
	return p
}

func (b *bed) srtPeer() peer {
	p := peer{name: "srt", argv: func(p place, command []string) []string {
		return slices.Concat([]string{b.srtBin, "exec", "-s", p.settings, "--"}, command)
	}}
	if b.srtBin == "" {
		p.why = b.srt + " does not exist; run make build"
	}
	return p
}

// sandboxes are srt and the reference, the peers that hold a policy.
func (b *bed) sandboxes() []peer {
	peers := []peer{b.srtPeer()}
	if b.reference {
		peers = append(peers, b.refPeer())
	}
	return peers
}

func (b *bed) refPeer() peer {
	if b.ref == nil {
		return peer{name: "reference", why: "not installed, see the note"}
	}
	return peer{name: "reference", slow: true, path: filepath.Dir(b.ref.node),
		argv: func(p place, command []string) []string {
			return slices.Concat([]string{b.ref.node, b.ref.cli, "-s", p.settings, "--"}, command)
		}}
}

// command returns command as the peer runs it at p. It ends with ctx.
func (r peer) command(ctx context.Context, p place, command ...string) *exec.Cmd {
	argv := r.argv(p, command)
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir = p.folder
	path := os.Getenv("PATH")
	if r.path != "" {
		path = r.path + ":" + path
	}
	cmd.Env = []string{"PATH=" + path, "HOME=" + p.who.home, "LANG=C.UTF-8"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: p.who.cred}
	cmd.WaitDelay = time.Second
	return cmd
}

// limit bounds every single run.
const limit = 2 * time.Minute

// result is one finished run.
type result struct {
	took   time.Duration
	cpu    time.Duration // of the process and all it has waited for
	stdout string
	ended  time.Time
}

// run runs a command to its end. A status other than 0 is an error with what it said.
func (r peer) run(p place, command ...string) (result, error) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	cmd := r.command(ctx, p, command...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	before, err := r.spentBeside()
	if err != nil {
		return result{}, err
	}
	start := time.Now()
	err = cmd.Run()
	end := time.Now()
	if err != nil {
		return result{}, fmt.Errorf("%w: %s", err, stderr.String())
	}
	after, err := r.spentBeside()
	if err != nil {
		return result{}, err
	}
	cpu := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime() + after - before
	return result{end.Sub(start), cpu, stdout.String(), end}, nil
}

func (r peer) spentBeside() (time.Duration, error) {
	if r.beside == nil {
		return 0, nil
	}
	return r.beside()
}

// alternate measures every peer n times in turn. A peer that fails once is out, with its reason in the row.
func alternate(n int, peers []peer, measure func(peer) (float64, error)) []row {
	rows := make([]row, len(peers))
	for i, p := range peers {
		rows[i] = row{who: p.name, note: p.why}
	}
	for round := range n {
		for i, p := range peers {
			if rows[i].note != "" || p.slow && round >= max(3, n/5) {
				continue
			}
			v, err := measure(p)
			if err != nil {
				rows[i].note, rows[i].samples = err.Error(), nil
				continue
			}
			if round > 0 { // the first run warms caches
				rows[i].samples = append(rows[i].samples, v)
			}
		}
	}
	return rows
}

// reference is the installed npm package.
type reference struct{ node, cli string }

// What the reference is compared as.
const (
	referencePackage = "@anthropic-ai/sandbox-runtime@0.0.83"
	referenceNode    = "node@22"
)

// installReference installs the reference and the node it asks for into cache, once.
func installReference(cache string) (*reference, error) {
	cache, err := filepath.Abs(cache)
	if err != nil {
		return nil, err
	}
	if ref, err := findReference(cache); err == nil {
		return ref, nil
	}
	for _, tool := range []string{"npm", "bwrap", "socat", "rg"} {
		if _, err := exec.LookPath(tool); err != nil {
			return nil, err
		}
	}
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "npm", "install", "--no-audit", "--no-fund", "--prefix", cache, referencePackage, referenceNode)
	cmd.WaitDelay = time.Second
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("npm install: %w: %s", err, oneLine(string(out)))
	}
	return findReference(cache)
}

func findReference(cache string) (*reference, error) {
	cli := filepath.Join(cache, "node_modules/@anthropic-ai/sandbox-runtime/dist/cli.js")
	if _, err := os.Stat(cli); err != nil {
		return nil, err
	}
	for _, pattern := range []string{"node_modules/node/node_modules/node-linux-*/bin/node", "node_modules/node-linux-*/bin/node", "node_modules/node/bin/node"} {
		found, err := filepath.Glob(filepath.Join(cache, pattern))
		if err == nil && len(found) > 0 {
			return &reference{node: found[0], cli: cli}, nil
		}
	}
	return nil, errors.New("npm installed no " + strings.ReplaceAll(referenceNode, "@", " "))
}
