package test

import (
	"os"
	"strings"
	"testing"
)

// CRED-9: what srt itself may not read is passed over, and stays what it was for everybody; what cannot be masked is hidden by every name,
// whatever else is allowed.
func TestCRED_9_UnreadableAndHidden(t *testing.T) {
	each(t, func(t *testing.T, b *box) {
		b.file("closed", "planted")
		b.must(os.Chmod(b.abs("closed"), 0))
		b.file("dir/token", "planted")
		b.link("dir", "link")
		b.file("binary", "planted\xff")
		c := cfg{aw: list{"."}, dr: list{"dir"}, ar: list{"dir/token", "link", "binary", "."}, allow: list{"localhost"}, net: ends(nil), top: masks(object{"files": list{
			object{"path": "closed"}, object{"path": "link"}, object{"path": "binary"}}})}
		r := b.sh(c, `cat closed dir/token link/token binary 2>/dev/null; chmod 600 closed 2>/dev/null && cat closed; ls dir; (echo x >binary) 2>/dev/null; true`)
		if r.status != 0 || strings.Contains(r.stdout+r.stderr, "planted") {
			t.Errorf("%v", r)
		}
		b.must(os.Chmod(b.abs("closed"), 0o600))
		b.holds("closed", "planted")
		b.holds("dir/token", "planted")
	})
}

// CRED-7: the fakes are no file that a command could write, by whatever way; those of two commands have nothing to do with each other.
func TestCRED_7_FakesCannotBeWritten(t *testing.T) {
	each(t, func(t *testing.T, b *box) {
		left := b.ownTemp()
		b.file("token", "planted\n")
		c := cfg{aw: list{".", b.dir + "/own-tmp", "/tmp"}, allow: list{"localhost"}, net: ends(nil), top: masks(object{"files": list{object{"path": "token"}}})}
		r := b.sh(c, `before=$(cat token); exec 7<token
			d=${SSL_CERT_FILE%/srt-ca-*}; ls -d "$d"/srt-ca-* >/dev/null || echo nothing
			for f in token /proc/self/fd/7 "$d"/*/* "$d"/*; do [ -f "$f" ] && (printf evil >>"$f") 2>/dev/null && echo "wrote $f"; done
			chmod 666 token 2>/dev/null && echo chmod; (: >token) 2>/dev/null && echo truncated
			ln token other 2>/dev/null && echo linked; cp -l token other 2>/dev/null && echo linked
			[ "$(cat token)" = "$before" ] && echo same; true`).ok()
		if got := strings.TrimSpace(r.stdout); got != "same" {
			t.Errorf("%v", r)
		}
		b.holds("token", "planted\n")
		if got := left(); got != "" {
			t.Errorf("left behind: %s", got)
		}
	})
}

// CRED-3, TLS-14: what srt sets itself survives an entry that denies or masks it.
func TestCRED_3_OwnVariablesSurvive(t *testing.T) {
	each(t, func(t *testing.T, b *box) {
		names := strings.Fields("HTTP_PROXY http_proxy HTTPS_PROXY https_proxy ALL_PROXY NO_PROXY SSL_CERT_FILE NODE_EXTRA_CA_CERTS JAVA_TOOL_OPTIONS")
		var denied, masked list
		for _, name := range names {
			b.env = append(b.env, name+"=planted")
			denied = append(denied, object{"name": name, "mode": "deny"})
			masked = append(masked, object{"name": name, "mode": "mask"})
		}
		script := `for n in ` + strings.Join(names, " ") + `; do eval "v=\$$n"; case $v in ""|*planted*|fake_value_*) echo "$n is <$v>";; esac; done`
		for what, entries := range map[string]list{"deny": denied, "mask": masked} {
			c := cfg{allow: list{"localhost"}, net: ends(nil), top: object{"credentials": object{"envVars": entries}}}
			if r := b.sh(c, script).ok(); r.stdout != "" {
				t.Errorf("%s: %v", what, r)
			}
		}
	})
}

// CRED-35: the process that holds the values is neither seen nor reached from a sandbox.
func TestCRED_35_HoldersAreOutOfReach(t *testing.T) {
	need(t, "python3")
	eachAlong(t, func(t *testing.T, b *box) {
		_, c := b.plant("localhost")
		const reach = `
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
mine = os.getpid()
for p in sorted(int(n) for n in os.listdir("/proc") if n.isdigit()):
    try: comm = open("/proc/%d/comm" % p).read().strip()
    except OSError: continue
    for name in ("mem", "environ"):
        if p == mine: continue
        try:
            with open("/proc/%d/%s" % (p, name), "rb") as f:
                if name == "environ" and b"planted" in f.read(): print("environ", p, comm)
        except OSError: pass
    if p != mine and p == 1:
        if libc.ptrace(16, p, 0, 0) == 0: print("traced", p, comm)
        try: print("opened the memory of pid 1", open("/proc/1/mem", "rb"))
        except OSError: pass
    if "srt" in comm and p != 1: print("seen", p, comm)
print("done")
`
		b.file("reach.py", reach)
		b.sh(c, "python3 reach.py").ok().prints("done")
	})
}
