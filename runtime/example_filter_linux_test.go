package runtime_test

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/srt-sandbox/srt/proxy"
	"github.com/srt-sandbox/srt/runtime"
	"github.com/srt-sandbox/srt/runtime/config"
)

// A function decides about each request to an allowed host: here what is read may be read, with a mark on it, and nothing may
// be sent but small texts that do not hold a word.
func ExampleWithRequestFilter() {
	ctx := context.Background()
	host, end := site("the test server")
	defer end()

	filter := func(_ context.Context, r *proxy.FilterRequest) (proxy.FilterDecision, error) {
		allow := proxy.FilterDecision{Action: proxy.FilterAllow, RemoveHeaders: []string{"User-Agent"}}
		switch {
		case !strings.HasPrefix(r.Normalized, "/repos/"): // never RequestTarget, which may say /repos/../admin
			return proxy.FilterDecision{Reason: "only /repos is open", Status: 404}, nil
		case r.Body == nil:
			return allow, nil
		}
		text := make([]byte, 1<<10) // of which what is read is kept and sent first
		n, err := r.Body.Read(text)
		if err == nil && strings.Contains(string(text[:n]), "password") {
			return proxy.FilterDecision{Reason: "this looks like a password"}, nil
		}
		return allow, err // an error refuses
	}
	cfg := config.Default()
	cfg.Network.AllowedDomains = []string{host}
	sandbox, err := runtime.New(ctx, cfg, runtime.WithRequestFilter(filter))
	must(err)
	defer sandbox.Close()

	cmd := sandbox.Shell(ctx, `for arguments in "/repos/x" "/repos/x -d text" "/repos/x -d password=1" "/admin"; do
		curl -sS --noproxy "" "$HOST"$arguments
	done`)
	cmd.Env = append(os.Environ(), "HOST="+host)
	out, err := cmd.Output()
	must(err)
	fmt.Printf("%s", out)
	// Output:
	// I am the test server
	// I am the test server
	// this looks like a password
	// only /repos is open
}
