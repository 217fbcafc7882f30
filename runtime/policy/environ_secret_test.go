package policy

import "testing"

// CRED-3, CRED-4, TLS-14: what is denied is absent, what is masked has the fake's value, and what srt generates wins over both.
func TestEnvironSecrets_CRED3_CRED4_TLS14(t *testing.T) {
	const unset = "\x00" // stands for a variable that must not be there
	in := sandboxed("DENIED=real", "MASKED=real1", "A=1", "MASKED=real2", "EMPTY=", "BOTH=real", "SSL_CERT_FILE=/etc/host.pem",
		"CURL_CA_BUNDLE=/etc/host.pem", "PIP_CERT=/etc/host.pem")
	in.Unset = []string{"DENIED", "SSL_CERT_FILE", "BOTH"}
	in.Replace = map[string]string{"MASKED": "fake1", "EMPTY": "fake2", "NOT_SET": "fake3", "CURL_CA_BUNDLE": "fake4", "BOTH": "fake5", "HTTP_PROXY": "fake6"}
	for _, name := range []string{"SSL_CERT_FILE", "CURL_CA_BUNDLE", "PIP_CERT", "GIT_SSL_CAINFO"} {
		in.Trust = append(in.Trust, Variable{name, "/t/bundle"})
	}
	env := Environ(in)
	for name, want := range map[string]string{
		"DENIED": unset, "MASKED": "fake1", "EMPTY": "fake2", "NOT_SET": unset, "A": "1", "BOTH": unset,
		"SSL_CERT_FILE": "/t/bundle", "CURL_CA_BUNDLE": "/t/bundle", "PIP_CERT": "/t/bundle", "GIT_SSL_CAINFO": "/t/bundle",
	} {
		if got, ok := get(env, name); ok != (want != unset) || ok && got != want {
			t.Errorf("%s: %q (set: %v), want %q", name, got, ok, want)
		}
	}
	if got, _ := get(env, "HTTP_PROXY"); got == "fake6" {
		t.Error("a generated variable was replaced")
	}
}

// CRED-4: a variable is looked up as the command would inherit it.
func TestLookup_CRED4(t *testing.T) {
	base := []string{"A=1", "B=", "A=2=3", "broken", "A=\x00", "=C"}
	for name, want := range map[string]string{"A": "2=3", "B": "", "C": "unset", "broken": "unset", "": "unset", "A=2": "unset"} {
		got, ok := Lookup(base, name)
		if !ok {
			got = "unset"
		}
		if got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}
