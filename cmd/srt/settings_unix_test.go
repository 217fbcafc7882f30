//go:build unix

package main

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

func TestReadSettingsFromStreams(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	wrote := make(chan error, 1)
	go func() { wrote <- os.WriteFile(fifo, []byte(smallest), 0o600) }()
	got, err := readSettings(fifo, homeIs("/nonexistent"))
	if err != nil {
		t.Fatalf("CFG-2 FIFO: %v", err)
	}
	if err := <-wrote; err != nil {
		t.Fatal(err)
	}
	want := ownPlace{}
	if runtime.GOOS == "linux" {
		want.private = fifo
	}
	if got.place != want {
		t.Errorf("FS-51: %q, want %q", got.place, want)
	}
}

func TestReadSettingsWithoutPermission(t *testing.T) {
	if os.Getuid() == 0 {
		t.Skip("root may read every file; the same test runs as an ordinary user in make test")
	}
	path := writeFile(t, filepath.Join(t.TempDir(), "secret"), smallest)
	if err := os.Chmod(path, 0); err != nil {
		t.Fatal(err)
	}
	_, err := readSettings(path, homeIs("/nonexistent"))
	if err == nil || errnoName(err) != "EACCES" {
		t.Errorf("CFG-6: got %v, want EACCES", err)
	}
}
