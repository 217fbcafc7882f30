package proxy

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/srt-sandbox/srt/runtime/policy"
)

// A real rsync, which presents no credentials to RSYNC_PROXY, copies through the listener of its command, and is refused
// by a listener that tells nothing and for a host that is not allowed.
func TestNET18_RealRsync(t *testing.T) {
	path := needProgram(t, "rsync", "rsync")
	port := closedPort(t)
	dir := peerDir(t, map[string]string{"file": "content", "conf": ""})
	conf := fmt.Sprintf("use chroot = no\n[m]\npath = %s\n", dir)
	if err := os.WriteFile(filepath.Join(dir, "conf"), []byte(conf), 0o644); err != nil {
		t.Fatal(err)
	}
	runProxy(t, []int{port}, path, "--daemon", "--no-detach", "--address=127.0.0.1", fmt.Sprintf("--port=%d", port), "--config="+filepath.Join(dir, "conf"))
	c := capture(t, policy.NetworkRules{AllowedDomains: []string{"rsync.test:873"}}, func(o *Options) { o.Resolver = resolves("rsync.test", "192.0.2.1") })
	c.lead(port)
	identified, anonymous := c.servingFor("the key"), c.servingFor("")
	for _, tc := range []struct {
		name, proxy, host string
		ok                bool
	}{
		{"listener of the command", identified, "rsync.test", true},
		{"listener without identity", anonymous, "rsync.test", false},
		{"not allowed", identified, "nope.test", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			to := filepath.Join(t.TempDir(), "copy")
			cmd := exec.CommandContext(t.Context(), path, "rsync://"+tc.host+"/m/file", to)
			cmd.Env = append(os.Environ(), "RSYNC_PROXY="+tc.proxy)
			out, err := cmd.CombinedOutput()
			if (err == nil) != tc.ok {
				t.Fatalf("%v: %s", err, out)
			}
			if got, _ := os.ReadFile(to); tc.ok != (string(got) == "content") {
				t.Errorf("copied %q", got)
			}
		})
	}
	c.wantLines("deny network-outbound nope.test:873 (host is not on the allow list)")
}
