package credential

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/srt-sandbox/srt/runtime/config"
)

// TestHiddenFilesCRED9: what cannot be masked is hidden, and the reason is told.
func TestHiddenFilesCRED9(t *testing.T) {
	dir := realTemp(t)
	path := func(name string) string { return filepath.Join(dir, name) }
	write(t, path("binary"), "tok\xff")
	write(t, path("half"), "caf\xc3")
	write(t, path("real"), "s3cr3t")
	big, err := os.Create(path("large"))
	if err == nil {
		err = errors.Join(big.Truncate(maxFile+1), big.Close())
	}
	if err := errors.Join(err, os.Symlink("real", path("link")), os.Symlink(".", path("way")), syscall.Mkfifo(path("fifo"), 0o600)); err != nil {
		t.Fatal(err)
	}
	s := newStore(t)
	c := &config.Credentials{Files: []config.FileCredential{
		{Path: "~/f", Credential: config.Credential{Mode: config.ModeMask}},
		{Path: "~/d", Credential: config.Credential{Mode: config.ModeDeny}},
	}}
	l := mustLaunch(t, s, c, nil)
	for _, tc := range []struct{ rule, path, reason string }{
		{"CRED-9 not UTF-8", path("binary"), "UTF-8"},
		{"CRED-9 cut in a character", path("half"), "UTF-8"},
		{"CRED-9 over 16 MiB", path("large"), "16 MiB"},
		{"CRED-9 a directory", dir, "regular file"},
		{"CRED-9 a FIFO, without waiting", path("fifo"), "regular file"},
		{"CRED-9 a device", "/dev/zero", "regular file"},
		{"CRED-11 gone since", path("nothing"), "moved"},
		{"CRED-11 a link since", path("link"), "moved"},
		{"CRED-11 a link on the way since", filepath.Join(path("way"), "real"), "moved"},
		{"CRED-11 a file in place of a directory", filepath.Join(path("real"), "x"), "moved"},
	} {
		_, err := l.File(0, tc.path)
		if !errors.Is(err, ErrHide) || !strings.Contains(err.Error(), tc.reason) {
			t.Errorf("%s: %v, want ErrHide for %q", tc.rule, err, tc.reason)
		}
	}
	for _, index := range []int{-1, 1, 2} {
		if _, err := l.File(index, path("real")); !errors.Is(err, ErrHide) {
			t.Errorf("entry %d masks nothing: %v", index, err)
		}
	}
	if err := os.Truncate(path("large"), maxFile); err != nil {
		t.Fatal(err)
	}
	if fake, err := l.File(0, path("large")); err != nil || len(fake) != maxFile {
		t.Errorf("CRED-9: 16 MiB: %d bytes, %v", len(fake), err)
	}
	if err := os.Chmod(path("real"), 0); err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() != 0 {
		if _, err := l.File(0, path("real")); !errors.Is(err, syscall.EACCES) {
			t.Errorf("CRED-9: host-unreadable: %v, want EACCES", err)
		}
	}
}
