package main

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/srt-sandbox/srt/test/vm/internal/record"
)

func TestMain(m *testing.M) {
	if err := os.Chdir("../.."); err != nil { // where "make vm-test" starts the program
		panic(err)
	}
	os.Exit(m.Run())
}

func TestDocument_IsWhatTheResultsGive(t *testing.T) {
	all, err := results()
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(documentFile)
	if err != nil {
		t.Fatal(err)
	}
	if want := document(all); string(got) != want {
		t.Errorf("%s is not what the results give; write it again: go run ./test/vm -document", documentFile)
	}
}

// Every kernel that srt runs under passes its tests, and the one before the least it needs is refused; what failed is explained.
func TestResults_AreWhatSrtPromises(t *testing.T) {
	all, err := results()
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range all {
		want := "full"
		if slices.ContainsFunc(kernels, func(k kernel) bool { return k.Suite == r.Suite && k.Refused }) {
			want = "none"
		}
		for _, account := range accountNames {
			s, ok := r.sight(defaults, account)
			if !ok || s.Check.Mode != want || s.Works() != (want == "full") || s.Works() && s.Exec != "works" {
				t.Errorf("%s as %s: mode %q, exec exits %d with %q; want mode %s", r.Suite, account, s.Check.Mode, s.ExecExit, s.Exec, want)
			}
			for _, v := range variants {
				s, ok := r.sight(v.Name, account)
				if !ok || !s.Unset && s.Works() != (s.Check.Mode == "full") {
					t.Errorf("%s as %s, %s: mode %q, but exec exits with %d: %s", r.Suite, account, v.Name, s.Check.Mode, s.ExecExit, s.Exec)
				}
			}
		}
		if left := r.unexplained(); len(left) > 0 {
			t.Errorf("%s: failed without a reason in failures.go: %v", r.Suite, left)
		}
	}
}

func TestLoadOrder(t *testing.T) {
	const dep = "kernel/a/virtio-pci.ko.xz: kernel/a/virtio.ko.xz kernel/a/ring.ko.xz\nkernel/b/overlay.ko:\n"
	for name, want := range map[string][]string{
		"virtio_pci": {"kernel/a/ring.ko.xz", "kernel/a/virtio.ko.xz", "kernel/a/virtio-pci.ko.xz"},
		"overlay":    {"kernel/b/overlay.ko"},
		"built_in":   nil,
	} {
		if got := loadOrder(dep, name); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

// A guest that ends before it said so has told nothing that counts.
func TestRead_WantsTheEnd(t *testing.T) {
	const told = `{"kind":"test","test":{"package":"ns","account":"root","name":"TestX","outcome":"fail"}}` + "\n"
	for _, c := range []struct {
		text string
		ok   bool
	}{{told + `{"kind":"end"}` + "\n", true}, {told, false}, {told + `{"kind":"end"`, false}, {told + "?\n", false}, {"", false}} {
		var r result
		err := read(strings.NewReader(c.text), "log", func(l record.Line) { r.add(l) })
		if (err == nil) != c.ok {
			t.Errorf("%q: %v", c.text, err)
		}
		if c.ok && (len(r.Failed) != 1 || len(r.unexplained()) != 1) {
			t.Errorf("%q: %+v", c.text, r)
		}
	}
}
