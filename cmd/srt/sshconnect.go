package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/srt-sandbox/srt/proxy"
	"github.com/srt-sandbox/srt/runtime/policy"
)

// errSSHProxy is a helper that was started where no sandbox has set its environment.
var errSSHProxy = errors.New("sandbox proxy: HTTPS_PROXY is not set; this command only works inside an srt sandbox")

// sshConnect is the ProxyCommand of ssh inside a sandbox (NET-91): it joins its standard streams to host and port
// through the proxy that the environment names. A refusal is one line and exit 1.
func (a *app) sshConnect(inv *invocation) int {
	if len(inv.words) != 2 {
		return a.usage(&usageError{"__ssh-connect takes a host and a port"})
	}
	if err := a.connectSSH(inv.words[0], inv.words[1]); err != nil {
		fmt.Fprintln(a.stderr, err)
		return exitFailure
	}
	return 0
}

func (a *app) connectSSH(host, port string) error {
	target, err := policy.SSHTarget(host, port)
	if err != nil {
		return err
	}
	proxyURL := a.getenv("HTTPS_PROXY")
	if proxyURL == "" {
		return errSSHProxy
	}
	return proxy.SSHConnect(context.Background(), a.stdin, a.stdout, proxyURL, target)
}
