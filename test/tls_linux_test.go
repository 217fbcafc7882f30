package test

import (
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
)

// ends are settings under which TLS is terminated.
func ends(keys object) object {
	if keys == nil {
		keys = object{}
	}
	return object{"tlsTerminate": keys}
}

// TLS case 1: a client inside verifies what srt shows it, and srt what the server shows.
func TestTLS_Case1(t *testing.T) {
	need(t, "curl")
	eachAlong(t, func(t *testing.T, b *box) {
		web, _ := b.secure()
		c := cfg{allow: list{"localhost:" + web.port}, net: ends(nil)}
		text := byProxy + "curl -sSv https://localhost:" + web.port + "/"
		r := b.sh(c, text).ok().prints("secure")
		r.says("CN=sandbox-runtime ephemeral CA\n", `subjectAltName: host "localhost" matched`)
		b.env = append(b.env[:len(b.env):len(b.env)], "SSL_CERT_FILE=/nonexistent") // TLS-36: the server's authority is none of the host's
		if r := b.sh(c, text); len(web.requests()) != 1 || r.stdout == "secure\n" {
			t.Errorf("an upstream that nobody vouches for: %v, %d requests", r, len(web.requests()))
		}
		// TLS-1: without the key the server's own certificate is seen.
		b.sh(cfg{allow: list{"localhost:" + web.port}}, byProxy+"curl -sSkv https://localhost:"+web.port+"/").ok().says("issuer: CN=srt test servers")
		// TLS-17: the same for a host that is left out.
		b.sh(cfg{allow: list{"localhost:" + web.port}, net: ends(object{"excludeDomains": list{"localhost"}})},
			byProxy+"curl -sSkv https://localhost:"+web.port+"/").ok().says("issuer: CN=srt test servers")
	})
}

// TLS case 2: an authority that cannot be used ends srt before anything runs (TLS-1, TLS-7).
func TestTLS_Case2(t *testing.T) {
	each(t, func(t *testing.T, b *box) {
		left := b.ownTemp()
		good, other, old := newAuthority(t, "good", time.Hour), newAuthority(t, "other", time.Hour), newAuthority(t, "old", -time.Hour)
		for name, text := range map[string]string{"good.pem": good.pem, "good.key": good.text, "other.key": other.text, "old.pem": old.pem,
			"old.key": old.text, "no.pem": "text\n"} {
			b.file(name, text)
		}
		for _, test := range []struct{ cert, key, want string }{
			{"good.pem", "", "must be provided together"},
			{"", "good.key", "must be provided together"},
			{"missing.pem", "good.key", "tlsTerminate.caCertPath: cannot read " + b.abs("missing.pem") + " (ENOENT)"},
			{"good.pem", "missing.key", "tlsTerminate.caKeyPath: cannot read " + b.abs("missing.key") + " (ENOENT)"},
			{"no.pem", "good.key", "no.pem is not a PEM CERTIFICATE"},
			{"good.pem", "no.pem", "no.pem is not a PEM PRIVATE KEY"},
			{"good.pem", "other.key", "key does not match certificate public key"},
			{"old.pem", "old.key", "certificate has expired"},
		} {
			keys := object{}
			if test.cert != "" {
				keys["caCertPath"] = test.cert
			}
			if test.key != "" {
				keys["caKeyPath"] = test.key
			}
			r := b.sh(cfg{aw: list{"."}, net: ends(keys)}, "touch ran").exits(1).says("Error: ", test.want)
			if strings.Contains(r.stderr, good.keyLine()) || strings.Contains(r.stderr, other.keyLine()) {
				t.Errorf("the message holds a key: %v", r)
			}
			b.absent("ran")
			if got := left(); got != "" {
				t.Errorf("%s and %s: left behind: %s", test.cert, test.key, got)
			}
		}
	})
}

// TLS case 3: what cannot be read of extra certificates is passed over, and only certificates are copied (TLS-12).
func TestTLS_Case3(t *testing.T) {
	each(t, func(t *testing.T, b *box) {
		extra := newAuthority(t, "extra", time.Hour)
		b.file("both.pem", extra.text+extra.pem)
		r := b.sh(cfg{net: ends(object{"extraCaCertPaths": list{"missing.pem", "~/p/both.pem"}})}, `cat "$SSL_CERT_FILE"`).ok()
		if !strings.Contains(r.stdout, strings.Split(extra.pem, "\n")[1]) || strings.Contains(r.stdout, "PRIVATE KEY") {
			t.Errorf("the bundle: %v", r)
		}
		if want := "Warning: network.tlsTerminate.extraCaCertPaths: cannot read " + b.abs("missing.pem") + " (ENOENT); it is left out\n"; !strings.Contains(r.stderr, want) {
			t.Errorf("no %q: %v", want, r)
		}
	})
}

// TLS-14, case 35: every variable leads to the bundle, over what is inherited, denied or masked; JVMs are told by an option of
// theirs, and say so only where TLS is terminated.
func TestTLS_14_Case35(t *testing.T) {
	each(t, func(t *testing.T, b *box) {
		names := strings.Fields("NODE_EXTRA_CA_CERTS SSL_CERT_FILE CURL_CA_BUNDLE REQUESTS_CA_BUNDLE PIP_CERT GIT_SSL_CAINFO AWS_CA_BUNDLE " +
			"CARGO_HTTP_CAINFO DENO_CERT CLOUDSDK_CORE_CUSTOM_CA_CERTS_FILE NIX_SSL_CERT_FILE HTTPLIB2_CA_CERTS GRPC_DEFAULT_SSL_ROOTS_FILE_PATH " +
			"PERL_LWP_SSL_CA_FILE BUNDLE_SSL_CA_CERT npm_config_cafile NPM_CONFIG_CAFILE")
		b.file("host.pem", newAuthority(t, "host", time.Hour).pem)
		for _, name := range names {
			b.env = append(b.env, name+"="+b.abs("host.pem"))
		}
		c := cfg{net: ends(nil), top: object{"credentials": object{"envVars": list{
			object{"name": "SSL_CERT_FILE", "mode": "deny"},
			object{"name": "CURL_CA_BUNDLE", "mode": "mask", "injectHosts": list{"localhost"}}}}}, allow: list{"localhost"}}
		script := "for n in " + strings.Join(names, " ") + "; do eval \"v=\\$$n\"; [ \"$v\" = \"$SSL_CERT_FILE\" ] && [ -r \"$v\" ] || echo \"$n is $v\"; done; " +
			`case $SSL_CERT_FILE in */srt-ca-*/trust-bundle.crt) ;; *) echo "$SSL_CERT_FILE" ;; esac; echo "<$JAVA_TOOL_OPTIONS>"`
		r := b.sh(c, script).ok()
		if !strings.HasPrefix(r.stdout, "<-Djavax.net.ssl.trustStore=") || strings.Count(r.stdout, "\n") != 1 {
			t.Errorf("%v", r)
		}
		b.sh(cfg{}, `echo "<$JAVA_TOOL_OPTIONS>$CURL_CA_BUNDLE"`).ok().prints("<>" + b.abs("host.pem"))
	})
}

// TLS case 4, TLS-9: no key is readable, whatever else the settings allow, and what commands are told to trust stays as it is.
func TestTLS_Case4(t *testing.T) {
	each(t, func(t *testing.T, b *box) {
		b.ownTemp()
		ca := newAuthority(t, "company", time.Hour)
		b.file("ca/cert.pem", ca.pem)
		b.file("ca/key.pem", ca.text)
		b.file("ca2/both.pem", ca.text+ca.pem)
		b.link("ca/key.pem", "link.pem")
		given := ends(object{"caCertPath": "ca/cert.pem", "caKeyPath": "~/p/link.pem"})
		together := ends(object{"caCertPath": "ca2/both.pem", "caKeyPath": "ca2/both.pem"})
		made, disabled, all := ends(nil), object{"disabled": true}, list{b.work, b.dir + "/own-tmp"}
		beneath := object{"credentials": object{"files": list{object{"path": b.dir + "/own-tmp", "mode": "deny"}}}}
		const keys = "link.pem ca/key.pem"
		for _, test := range []struct {
			name, keys string
			c          cfg
		}{
			{"nothing is said", keys, cfg{net: given}},
			{"everything may be written", keys, cfg{net: given, aw: all}},
			{"everything is hidden", keys, cfg{net: given, aw: all, dr: all}},
			{"the key is allowed", keys, cfg{net: given, aw: all, dr: all, ar: list{"ca/key.pem", "link.pem", "ca"}}},
			{"no rules", keys, cfg{net: given, fs: disabled}},
			{"a file with both", "ca2/both.pem", cfg{net: together, aw: all}},
			{"a file with both, no rules", "ca2/both.pem", cfg{net: together, fs: disabled}},
			{"made", "", cfg{net: made, aw: all}},
			{"made, hidden", "", cfg{net: made, aw: all, dr: all}},
			{"made, no rules", "", cfg{net: made, fs: disabled}},
			{"made, beneath a credential", "", cfg{net: made, aw: all, top: beneath}},
		} {
			r := b.run(test.c, "sh", "-c", `cd /; for f in `+test.keys+`; do cat "$0/$f" 2>&1; done; d=${SSL_CERT_FILE%/*}
				grep -q BEGIN "$SSL_CERT_FILE" || echo "no bundle"
				(echo x >>"$SSL_CERT_FILE") 2>&1 | grep -q Read-only || echo "the bundle is not read-only"
				rm "$SSL_CERT_FILE" 2>/dev/null && echo "the bundle is removed"
				mv "$SSL_CERT_FILE" "$d/x" 2>/dev/null && echo "the bundle is moved"
				grep -r PRIVATE "$d"; true`, b.work)
			for _, bad := range []string{"PRIVATE", ca.keyLine(), "no bundle", "not read-only", "is removed", "is moved"} {
				if strings.Contains(r.stdout, bad) {
					t.Errorf("%s: %q in %v", test.name, bad, r)
				}
			}
			if r.status != 0 {
				t.Errorf("%s: %v", test.name, r)
			}
		}
		b.holds("ca/key.pem", ca.text)
		b.holds("ca/cert.pem", ca.pem)
	})
}

// TLS-9, FS-45: a key that can be had by another name stops the launch.
func TestTLS_9_KeyWithASecondName(t *testing.T) {
	each(t, func(t *testing.T, b *box) {
		ca := newAuthority(t, "company", time.Hour)
		b.file("ca/cert.pem", ca.pem)
		b.file("ca/key.pem", ca.text)
		b.must(os.Link(b.abs("ca/key.pem"), b.abs("second")))
		for _, fs := range []object{nil, {"disabled": true}} {
			r := b.sh(cfg{aw: list{"."}, fs: fs, net: ends(object{"caCertPath": "ca/cert.pem", "caKeyPath": "ca/key.pem"})}, "touch ran; cat second").exits(1)
			b.absent("ran")
			if strings.Contains(r.stdout+r.stderr, ca.keyLine()) {
				t.Errorf("%v", r)
			}
		}
	})
}

// TLS case 5, TLS-8: nothing is left after an end, a signal or a failed start.
func TestTLS_Case5(t *testing.T) {
	each(t, func(t *testing.T, b *box) {
		left := b.ownTemp()
		b.file("token", "text")
		c := cfg{aw: list{"."}, allow: list{"localhost"}, net: ends(nil),
			top: object{"credentials": object{"files": list{object{"path": "token", "mode": "mask"}}}}}
		b.sh(c, "exit 3").exits(3)
		none := func(when string) {
			t.Helper()
			if got := left(); got != "" {
				t.Errorf("%s: left behind: %s", when, got)
			}
		}
		none("exit")
		for sig, want := range map[syscall.Signal]int{syscall.SIGTERM: 143, syscall.SIGINT: 130, syscall.SIGHUP: 129, syscall.SIGQUIT: 131} {
			cmd := b.command(b.srt(c, "sh", "-c", "ulimit -c 0; touch ready; exec sleep 60")...)
			b.must(cmd.Start())
			b.appears("ready")
			if !strings.HasPrefix(left(), "srt-ca-") {
				t.Errorf("while it runs: %q", left())
			}
			b.must(cmd.Process.Signal(sig))
			_ = cmd.Wait()
			if got := exitStatus(cmd.ProcessState); got != want {
				t.Errorf("%v: status %d, want %d", sig, got, want)
			}
			b.must(os.Remove(b.abs("ready")))
			none(sig.String())
		}
		failing := c
		failing.top = object{"credentials": object{"files": list{object{"path": "token", "mode": "mask", "extract": "(nothing)", "onExtractNoMatch": "error"}}}}
		b.sh(failing, "true").exits(1)
		none("a failed launch")
		failing.dw = list{"/sys/x\x00y"}
		b.sh(failing, "true").exits(1)
		none("settings that are refused")
		b.host(srtPath, "-s", b.settings(c), "explain").ok()
		none("explain")
	})
}
