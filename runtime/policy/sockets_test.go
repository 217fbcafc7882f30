package policy

import (
	"errors"
	"slices"
	"testing"
)

// socketPaths are the paths of ResolveSockets.
func socketPaths(entries []string, in PathInput) (paths []string, err error) {
	rules, err := ResolveSockets(entries, in)
	for _, r := range rules {
		paths = append(paths, r.Path)
	}
	return paths, err
}

func TestResolveSockets_NET80(t *testing.T) {
	in := PathInput{Cwd: "/work", Home: "/home/u"}
	got, err := socketPaths([]string{"/run/x.sock", "~/a/../b.sock", "rel.sock", "/odd*[1]", "/run/dir/"}, in)
	want := []string{"/run/x.sock", "/home/u/b.sock", "/work/rel.sock", "/odd*[1]", "/run/dir"}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got %q, %v; want %q", got, err, want)
	}
	if got, err := socketPaths([]string{"~/b.sock"}, PathInput{Cwd: "/work"}); err != nil || len(got) != 0 {
		t.Errorf("without a home: %q, %v", got, err)
	}
	for _, bad := range []string{"", "/a\x00b"} {
		_, err := socketPaths([]string{"/ok", bad}, in)
		if pe, ok := errors.AsType[*PathError](err); !ok || pe.Key != "network.allowUnixSockets.1" {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestSocketAllowed_NET80(t *testing.T) {
	paths := []string{"/run/x.sock", "/run/dir"}
	for location, want := range map[string]bool{
		"/run/x.sock": true, "/run/dir/a": true, "/run/dir/b/c": true, "/run/dir": true,
		"/run/x.sock2": false, "/run": false, "/run/directory": false, "/": false, "": false,
	} {
		if got := SocketAllowed(paths, location); got != want {
			t.Errorf("%q: %v", location, got)
		}
	}
	if SocketAllowed(nil, "/run/x.sock") {
		t.Error("an empty list allows something")
	}
}
