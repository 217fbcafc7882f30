//go:build linux

package notify

// legacyCalls are those that only amd64 has.
func legacyCalls(bool) []call { return nil }
