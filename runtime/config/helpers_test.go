package config

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

// smallest is "B" of the chapter: the smallest valid config.
const smallest = `{"network":{"allowedDomains":[],"deniedDomains":[]},
	"filesystem":{"denyRead":[],"allowWrite":[],"denyWrite":[]}}`

// with returns the smallest config with values put at dotted paths: path, JSON value, path, JSON value, ...
func with(t testing.TB, pairs ...string) []byte {
	t.Helper()
	var tree map[string]any
	if err := json.Unmarshal([]byte(smallest), &tree); err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(pairs); i += 2 {
		if !json.Valid([]byte(pairs[i+1])) {
			t.Fatalf("test error: %s is not JSON", pairs[i+1])
		}
		keys := strings.Split(pairs[i], ".")
		at := tree
		for _, key := range keys[:len(keys)-1] {
			inner, ok := at[key].(map[string]any)
			if !ok {
				inner = map[string]any{}
				at[key] = inner
			}
			at = inner
		}
		at[keys[len(keys)-1]] = json.RawMessage(pairs[i+1])
	}
	data, err := json.Marshal(tree)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// accept decodes a config that must be valid and whose typed form must pass the same checks.
func accept(t testing.TB, goos string, data []byte) *Config {
	t.Helper()
	c, err := decodeFor(goos, data)
	if err != nil {
		t.Fatalf("%s\nrefused: %v", data, err)
	}
	if err := c.validateFor(goos); err != nil {
		t.Fatalf("%s\nLIB-2: accepted as text, refused as a value: %v", data, err)
	}
	return c
}

// refuse decodes a config that must have exactly one issue, at a path and with a reason that holds some text.
func refuse(t testing.TB, goos string, data []byte, path, reason string) {
	t.Helper()
	_, err := decodeFor(goos, data)
	var issues *Error
	if !errors.As(err, &issues) {
		t.Errorf("%s\n= %v; want an issue at %s", data, err, path)
		return
	}
	if len(issues.Issues) != 1 || issues.Issues[0].Path != path || !strings.Contains(issues.Issues[0].Reason, reason) {
		t.Errorf("%s\n= %v; want one issue %s: ...%s...", data, err, path, reason)
	}
}
