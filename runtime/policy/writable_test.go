package policy

import (
	"strings"
	"testing"
)

func TestMayWrite_LIB10(t *testing.T) {
	unlinked := func(p string) string { return strings.Replace(p, "/link", "/dir", 1) }
	for _, c := range []struct {
		allow, deny []string
		path        string
		want        bool
	}{
		{nil, nil, "/opt/bin/agent", false},
		{[]string{"/opt"}, nil, "/opt/bin/agent", true},
		{[]string{"/opt/bin/agent"}, nil, "/opt/bin/agent", true},
		{[]string{"/opt/bin"}, nil, "/opt/bin2/agent", false},
		{[]string{"/opt"}, []string{"/opt/bin"}, "/opt/bin/agent", false},
		{[]string{"/link"}, nil, "/dir/agent", true},
		{[]string{"/dir"}, []string{"/link/bin"}, "/dir/bin/agent", false},
		{[]string{"/opt/*/x"}, nil, "/opt/bin/agent", true},
		{[]string{"/opt"}, []string{"/opt/*"}, "/opt/bin/agent", true},
		{nil, nil, "/h/.npm/_logs/agent", true},
	} {
		rules, err := ResolvePaths(PathInput{Cwd: "/w", Home: "/h", AllowWrite: pathEntries(c.allow...), DenyWrite: pathEntries(c.deny...)})
		if err != nil {
			t.Fatal(err)
		}
		if got := MayWrite(c.path, "/h", rules, unlinked); got != c.want {
			t.Errorf("%s with %v less %v: %v", c.path, c.allow, c.deny, got)
		}
	}
}
