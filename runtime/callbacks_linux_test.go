package runtime

import (
	"context"
	"testing"

	"github.com/srt-sandbox/srt/proxy"
	"github.com/srt-sandbox/srt/runtime/config"
)

// TestLIB50_CallbacksMayClose: whoever is asked, or told, may close the session it is asked by: no lock is held, and Close
// waits for none of them. What they answer then lets nothing through.
func TestLIB50_CallbacksMayClose(t *testing.T) {
	var w *askWorld
	closes := func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	}
	ask := WithAsk(func(context.Context, Destination) (Answer, error) { closes(); return Answer{Allow: true}, nil })
	filter := WithRequestFilter(func(context.Context, *proxy.FilterRequest) (proxy.FilterDecision, error) {
		closes()
		return proxy.FilterDecision{Action: proxy.FilterAllow}, nil
	})
	for _, tt := range []struct {
		name, allowed string
		with          Option
		subscribe     bool
	}{
		{name: "the ask callback", with: ask},
		{name: "the request filter", with: filter, allowed: "a.test"},
		{name: "a subscriber", subscribe: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w = newWayOut(t, func(c *config.Config) {
				if tt.allowed != "" {
					c.Network.AllowedDomains = []string{tt.allowed}
				}
			}, tt.with)
			if tt.subscribe {
				defer w.Violations().Subscribe(func(list []Violation) {
					if len(list) > 0 {
						closes()
					}
				})()
			}
			w.prints("curl -s -o /dev/null --max-time 50 http://a.test/ || :", "")
			<-w.Done()
			if reached, _ := w.got(); len(reached) > 0 {
				t.Errorf("reached %q", reached)
			}
		})
	}
}
