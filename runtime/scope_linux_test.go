package runtime

import (
	"context"
	"testing"

	"github.com/srt-sandbox/srt/runtime/config"
)

// CRED-21: values go to the hosts of the settings, not to those that one command may reach beyond them, nor to those that were asked about.
func TestDefaultScope_CRED21(t *testing.T) {
	asked := make(chan string, 8)
	w := newWayOut(t, func(c *config.Config) {
		c.Network.AllowedDomains = []string{"h.test"}
		c.Credentials = &config.Credentials{AllowPlaintextInject: true, EnvVars: []config.EnvCredential{
			{Name: "TOKEN", Credential: config.Credential{Mode: config.ModeMask}}}}
	}, WithAsk(func(_ context.Context, d Destination) (Answer, error) {
		asked <- d.Canonical
		return Answer{Allow: true}, nil
	}))
	w.prints(`curl -s --max-time 50 -o /dev/null -w '%{http_code} ' -H "A: $TOKEN" http://h.test/ -o /dev/null http://own.test/ -o /dev/null http://asked.test/`, "200 200 200",
		func(c *Cmd) {
			c.AllowDomains = []string{"own.test"}
			c.Env = append(c.Env, "TOKEN=planted")
		})
	for host, want := range map[string]bool{"h.test": true, "own.test": false, "asked.test": false} {
		h, err := config.CanonicalHost(host)
		succeed(t, err)
		if got := w.secrets.At(h) != nil; got != want {
			t.Errorf("a value may go to %s: %v", host, got)
		}
	}
	if len(asked) != 1 || <-asked != "asked.test" {
		t.Error("the callback was not asked about the one host that is in no list")
	}
}
