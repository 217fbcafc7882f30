package container

import (
	"strings"
	"testing"
)

// Programs that stand where srt should.
const (
	noSandbox = "#!/bin/sh\nwhile [ \"$1\" != -- ]; do shift; done; shift; HTTP_PROXY=http://127.0.0.1:1 exec \"$@\"\n"
	noCommand = "#!/bin/sh\nexit 0\n"
)

// TestPromisesBreak: without a sandbox every promise that a command keeps by itself is broken, and is seen to be. What the
// matrix says about srt counts for no more than this.
func TestPromisesBreak(t *testing.T) {
	for _, as := range []account{{}, {1001, 1001}} {
		r, err := fromFlags("--privileged")
		if err != nil {
			t.Fatal(err)
		}
		r.files = map[string]string{toolPath + "/srt": noSandbox}
		got := strings.Join(examine(t, "runc", r, as).Strict.Broken, "\n")
		for _, want := range []string{"change a file elsewhere", "make a file elsewhere", "chmod a file elsewhere", "make a hook of git", "make .bashrc",
			"make .vscode", "a file that is denied can be read", "proxyconnect", "connected to 127", "connected to @", "remove a file elsewhere", "rename a file elsewhere", "is another process's", "the bystander is gone",
			"datagrams arrived", "processes are left", "files are left", "ended with -1, not 143", "a file that is not writable is"} {
			if !strings.Contains(got, want) {
				t.Errorf("uid %d: nothing says %q:\n%s", as.uid, want, got)
			}
		}
		r.files[toolPath+"/srt"] = noCommand
		got = strings.Join(examine(t, "runc", r, as).Strict.Broken, "\n")
		if !strings.Contains(got, "no command ran, and srt exited with 0") || !strings.Contains(got, "nothing says why") {
			t.Errorf("uid %d: what runs nothing passes: %s", as.uid, got)
		}
	}
}
