package runtime

import (
	"testing"

	"github.com/srt-sandbox/srt/runtime/config"
)

func TestEntryAt(t *testing.T) {
	cfg := &config.Config{
		Filesystem: config.Filesystem{
			DenyRead: []config.PathEntry{{Path: "~/.ssh"}, {Path: "b"}}, AllowRead: []config.PathEntry{{Path: "c"}},
			DenyWrite: []config.PathEntry{{Path: "d"}}, AllowWrite: []config.PathEntry{{Path: "e"}},
		},
		Network:     config.Network{AllowedDomains: []string{"f"}, DeniedDomains: []string{"g"}, AllowUnixSockets: []string{"h"}},
		Credentials: &config.Credentials{Files: []config.FileCredential{{Path: "i"}}},
	}
	for place, want := range map[string]string{
		"filesystem.denyRead.0": "~/.ssh", "filesystem.denyRead.1": "b", "filesystem.denyRead.2": "", "filesystem.denyRead.-1": "",
		"filesystem.denyRead": "", "filesystem.denyRead.x": "", "filesystem.allowRead.0": "c", "filesystem.denyWrite.0": "d",
		"filesystem.allowWrite.0": "e", "filesystem.allowWrite": "", "network.allowedDomains.0": "f", "network.deniedDomains.0": "g",
		"network.allowUnixSockets.0": "h", "network.allowUnixSockets": "", "credentials.files.0.path": "i", "credentials.files.1.path": "",
		"srt's own file": "", "other.list.0": "", "": "",
	} {
		if got := entryAt(cfg, place); got != want {
			t.Errorf("entryAt(%q) = %q, want %q", place, got, want)
		}
	}
	if got := entryAt(&config.Config{}, "credentials.files.0.path"); got != "" {
		t.Errorf("without credentials: %q", got)
	}
}
