package proxy

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"github.com/srt-sandbox/srt/runtime/policy"
)

// sshThrough runs the OpenSSH client with a ProxyCommand and returns what its user gets to see.
func sshThrough(t *testing.T, ssh, host, proxyCommand string) string {
	t.Helper()
	out, err := exec.Command(ssh, "-F", "none", "-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=no",
		"-o", "UserKnownHostsFile=/dev/null", "-o", "ControlMaster=no", "-o", "ControlPath=none",
		"-o", "ProxyCommand="+proxyCommand, "git@"+host, "true").CombinedOutput()
	if err == nil {
		t.Errorf("ssh to %s succeeds", host)
	}
	return string(out)
}

// TestNET44_OpenSSH: a real client shows its user the reason, for a tunnel that it was refused.
func TestNET44_OpenSSH(t *testing.T) {
	ssh, err := exec.LookPath("ssh")
	if err != nil {
		t.Skip("wants an OpenSSH client, has none: TestCase10_NET44_SSHRefusal checks the bytes")
	}
	long := strings.Repeat("0123456789", 150)
	rules := policy.NetworkRules{
		AllowedDomains: []string{"allowed.test"}, DeniedDomains: []string{"github.com", "why.test", "long.test"},
		DeniedDomainReasons: map[string]string{"why.test": "use\r\nthe\x1b[31m internal mirror", "long.test": long},
	}
	h := start(t, rules)
	// OpenSSH itself shows the first 400 bytes or so of a description.
	t.Run("SOCKS without authentication", func(t *testing.T) {
		for host, want := range map[string]string{
			"github.com": "host is on the deny list", "why.test": "use the [31m internal mirror", "long.test": long[:400],
			"allowed.test": noAuthentication, "other.test": noAuthentication,
		} {
			got := sshThrough(t, ssh, host, helperCommand(t, "socks-without-authentication "+h.addr+" %h %p"))
			// "Received disconnect from UNKNOWN port 65535:1: <description>"
			if !strings.Contains(got, "Received disconnect from ") || !strings.Contains(got, ":1: "+want) {
				t.Errorf("%s: ssh says %q, want %q", host, got, want)
			}
		}
	})
	t.Run("NET91 CONNECT", func(t *testing.T) {
		for host, want := range map[string]string{
			"github.com": "403 host is on the deny list", "why.test": "403 use the [31m internal mirror", "other.test": "403 host is not on the allow list",
		} {
			got := sshThrough(t, ssh, host, helperCommand(t, fmt.Sprintf("ssh-connect http://srt:%s@%s %%h:%%p", testToken, h.addr)))
			if !strings.Contains(got, "sandbox proxy: "+host+":22: "+want+"\n") && !strings.Contains(got, "sandbox proxy: "+host+":22: "+want+"\r\n") {
				t.Errorf("%s: ssh says %q, want %q", host, got, want)
			}
		}
	})
}
