package mitm

import (
	"errors"
	"io/fs"
	"path/filepath"
	"syscall"
	"testing"
)

// TestLoadFilesOfOtherKinds holds that what is no file is refused, and waited for no more than a file (TLS-7).
func TestLoadFilesOfOtherKinds(t *testing.T) {
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{dir: "(EISDIR)", pipe: "(not a regular file)", "/dev/zero": "(not a regular file)", dir + "/x/y": "(ENOENT)"} {
		if _, err := Load(path, path); err == nil || err.Error() != "tlsTerminate.caCertPath: cannot read "+path+" "+want {
			t.Errorf("TLS-7: %v", err)
		}
	}
	if _, err := Load(dir+"/x", dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("TLS-7: the cause is lost: %v", err)
	}
}
