package runtime

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/srt-sandbox/srt/fsview"
	"github.com/srt-sandbox/srt/runtime/config"
)

// CLI-26, CLI-32: with WithFixedLaunch an update changes what is live, and no launch after it; without it, it counts from the
// next launch on (LIB-22).
func TestFixedLaunch_CLI26_CLI32_LIB22(t *testing.T) {
	for _, fixed := range []bool{false, true} {
		dir := t.TempDir()
		secret := filepath.Join(dir, "secret")
		if err := os.WriteFile(secret, []byte("text"), 0o600); err != nil {
			t.Fatal(err)
		}
		var opts []Option
		if fixed {
			opts = append(opts, WithFixedLaunch())
		}
		s, err := New(t.Context(), config.Default(), opts...)
		if err != nil {
			t.Fatal(err)
		}
		update := config.Default()
		update.Network.AllowedDomains = []string{"a.example"}
		update.Network.HTTPProxyPort = 8080
		update.Filesystem.DenyRead = []config.PathEntry{{Path: secret}}
		update.AllowNestedUserNamespaces = true
		notLive, err := s.Update(t.Context(), update)
		want := []string{"network.httpProxyPort"}
		if fixed {
			want = []string{"network.httpProxyPort", "filesystem.denyRead", "allowNestedUserNamespaces"}
		}
		if err != nil || !slices.Equal(notLive, want) {
			t.Errorf("fixed %v: %q, %v; want %q", fixed, notLive, err, want)
		}
		cmd := s.Command(t.Context(), "grep", "-c", "text", secret)
		cmd.Dir = dir
		out, _ := cmd.Output() // status 1 or 2 when there is no text
		if got := strings.TrimSpace(string(out)); (got == "1") != fixed {
			t.Errorf("fixed %v: the command read %q", fixed, got)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// CLI-32, CRED-37: what is masked changes with the next launch, and where launches are fixed the update says that it does not.
func TestFixedLaunchMasksAsItBegan_CLI32_CRED37(t *testing.T) {
	masked := config.Default()
	masked.Network.AllowedDomains = []string{"a.example"}
	masked.Credentials = &config.Credentials{AllowPlaintextInject: true,
		EnvVars: []config.EnvCredential{{Name: "TOKEN", Credential: config.Credential{Mode: config.ModeMask, InjectHosts: []string{"a.example"}}}}}
	for _, fixed := range []bool{false, true} {
		s, err := New(t.Context(), config.Default(), func(o *options) { o.fixedLaunch = fixed })
		if err != nil {
			t.Fatal(err)
		}
		notLive, err := s.Update(t.Context(), masked)
		if err != nil || slices.Contains(notLive, "credentials.envVars") != fixed || !slices.Contains(notLive, "credentials.allowPlaintextInject") {
			t.Errorf("fixed %v: %q, %v", fixed, notLive, err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// CLI-30: a channel of the embedder's own is neither inherited nor opened by its name, with filesystem.disabled too.
func TestPrivateChannel_CLI30(t *testing.T) {
	for _, disabled := range []bool{false, true} {
		dir := t.TempDir()
		fifo := filepath.Join(dir, "fifo")
		if err := unix.Mkfifo(fifo, 0o666); err != nil {
			t.Fatal(err)
		}
		channel, err := os.OpenFile(fifo, os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		cfg := config.Default()
		cfg.Filesystem.Disabled = disabled
		if !disabled {
			cfg.Filesystem.AllowWrite = []config.PathEntry{{Path: dir}}
		}
		run := func(opts ...Option) string {
			s, err := New(t.Context(), cfg, opts...)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			cmd := s.Shell(t.Context(), `readlink /proc/self/fd/9; timeout 20 sh -c 'echo x >fifo' 2>/dev/null && echo written; touch made; echo done`)
			cmd.Dir = dir
			out, err := cmd.Output()
			if err != nil {
				t.Fatal(err)
			}
			return strings.Join(strings.Fields(string(out)), " ")
		}
		if got := run(); got != "written done" {
			t.Errorf("disabled %v, without options: %q", disabled, got)
		}
		if got := run(WithPrivateFiles(fifo), WithNullDescriptor(9)); got != "/dev/null done" {
			t.Errorf("disabled %v: %q", disabled, got)
		}
		channel.Close()
	}
}

// CLI-30: the null device is there as well where every opening is put to the broker, which once failed for all but root: the
// process that opened it still shared the memory of pid 1, which nobody may read.
func TestNullDeviceBesideReadPatterns_CLI30(t *testing.T) {
	cfg := config.Default()
	cfg.Filesystem.DenyRead = []config.PathEntry{{Path: "**/*.key"}}
	s, err := New(t.Context(), cfg, WithNullDescriptor(9))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	cmd := s.Shell(t.Context(), "readlink /proc/self/fd/9; cat <&9")
	cmd.Dir = t.TempDir()
	if out, err := cmd.Output(); err != nil || string(out) != "/dev/null\n" {
		t.Errorf("%q, %v", out, err)
	}
}

// FS-51, FS-45, CLI-30: what belongs to the caller has one name at each launch, so that no command reaches it by another.
func TestSecondNames_FS51_CLI30(t *testing.T) {
	for _, tt := range []struct {
		name     string
		option   func(...string) Option
		kind     uint32
		disabled bool
		refused  bool
	}{
		{"a FIFO", WithPrivateFiles, unix.S_IFIFO, false, true},
		{"a FIFO, without rules", WithPrivateFiles, unix.S_IFIFO, true, true},
		{"a file", WithPrivateFiles, unix.S_IFREG, false, true},
		{"settings", WithOwnFiles, unix.S_IFREG, false, true},
		{"settings in use", func(p ...string) Option { return WithSettingsFile(p[0]) }, unix.S_IFREG, false, true},
		{"settings, without rules", WithOwnFiles, unix.S_IFREG, true, false},
	} {
		dir := t.TempDir()
		path, other := filepath.Join(dir, "file"), filepath.Join(dir, "other")
		if err := unix.Mknod(path, tt.kind|0o600, 0); err != nil {
			t.Fatal(err)
		}
		cfg := config.Default()
		cfg.Filesystem.Disabled = tt.disabled
		if !tt.disabled {
			cfg.Filesystem.AllowWrite = []config.PathEntry{{Path: dir}}
		}
		s, err := New(t.Context(), cfg, tt.option(path))
		if err != nil {
			t.Fatal(err)
		}
		run := func() error {
			c := s.Command(t.Context(), "true")
			c.Dir = dir
			return c.Run()
		}
		if err := run(); err != nil {
			t.Errorf("%s: %v", tt.name, err)
		}
		if err := os.Link(path, other); err != nil {
			t.Fatal(err)
		}
		err = run()
		if _, ok := errors.AsType[*LaunchError](err); ok != tt.refused || errors.Is(err, fsview.ErrOtherName) != tt.refused {
			t.Errorf("%s, with a second name: %v", tt.name, err)
		}
		if err := errors.Join(os.Remove(other), run(), s.Close()); err != nil {
			t.Errorf("%s, with one name again: %v", tt.name, err)
		}
	}
}

// CLI-30: a private file that is not there yet is not made by a command, which whoever opens it next would trust.
func TestAbsentPrivateFile_CLI30(t *testing.T) {
	dir := t.TempDir()
	cfg := config.Default()
	cfg.Filesystem.AllowWrite = []config.PathEntry{{Path: dir}}
	s, err := New(t.Context(), cfg, WithPrivateFiles(filepath.Join(dir, "ctl")))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	c := s.Shell(t.Context(), `(mkfifo ctl; : >ctl; : >new; mv new ctl; ln -s new ctl; ln new ctl; mkdir ctl) 2>/dev/null; echo done`)
	c.Dir = dir
	if out, err := c.Output(); err != nil || string(out) != "done\n" {
		t.Errorf("%q, %v", out, err)
	}
	if _, err := os.Lstat(filepath.Join(dir, "ctl")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it was made: %v", err)
	}
	if _, err := os.Lstat(filepath.Join(dir, "new")); err != nil {
		t.Errorf("nothing could be made at all: %v", err)
	}
}
