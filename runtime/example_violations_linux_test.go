package runtime_test

import (
	"bytes"
	"context"
	"fmt"
	"log"
	"strings"

	"github.com/srt-sandbox/srt/runtime"
	"github.com/srt-sandbox/srt/runtime/config"
)

// What one command was refused, and what would allow it.
func ExampleCmd_Violations() {
	ctx := context.Background()
	sandbox, err := runtime.New(ctx, config.Default())
	if err != nil {
		log.Fatal(err)
	}
	defer sandbox.Close()

	cmd := sandbox.Shell(ctx, "exec 3<>/dev/tcp/registry.example.com/8443")
	if err := cmd.Run(); err != nil {
		for v := range cmd.Violations() {
			fmt.Println(v.Line)
			fmt.Println(v.Advice())
		}
	}
	// Output:
	// deny network-outbound registry.example.com:8443 (host is not on the allow list)
	// network.allowedDomains: add "registry.example.com:8443"
}

// Standard error for a model: what a command wrote, and what it was refused meanwhile.
func ExampleSandbox_Annotate() {
	ctx := context.Background()
	sandbox, err := runtime.New(ctx, config.Default())
	if err != nil {
		log.Fatal(err)
	}
	defer sandbox.Close()

	var stderr bytes.Buffer
	cmd := sandbox.Shell(ctx, "(exec 3<>/dev/tcp/example.com/443) 2>/dev/null || echo no network >&2")
	cmd.Stderr = &stderr
	if err := cmd.Run(); err != nil {
		log.Fatal(err)
	}
	fmt.Println(sandbox.Annotate(cmd.Key(), strings.TrimSpace(stderr.String())))
	// Output:
	// no network
	// <sandbox_violations>
	// deny network-outbound example.com:443 (host is not on the allow list)
	// </sandbox_violations>
}

// Everything that a session refuses, as it happens, for as long as the session lives.
func ExampleViolations_Watch() {
	ctx := context.Background()
	sandbox, err := runtime.New(ctx, config.Default())
	if err != nil {
		log.Fatal(err)
	}
	watched := sandbox.Violations().Watch(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for v := range watched {
			fmt.Println(v.Kind, v.Host, v.Port, v.Rule)
		}
	}()

	_ = sandbox.Shell(ctx, "exec 3<>/dev/tcp/example.com/443").Run() // is refused
	if err := sandbox.Close(); err != nil {
		log.Fatal(err)
	}
	<-done
	// Output:
	// network example.com 443 network.allowedDomains
}
