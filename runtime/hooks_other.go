//go:build !linux

package runtime

// nameHooks are hooks in the kernel that refuse names; only Linux has them.
type nameHooks struct{}

func (*nameHooks) close() error { return nil }

// sessionTracing is the reading of refusals from the kernel; only Linux has it.
type sessionTracing struct{}

func (*sessionTracing) close() error { return nil }
