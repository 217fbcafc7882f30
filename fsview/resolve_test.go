package fsview

import (
	"fmt"
	"strings"
	"testing"
)

func TestResolve(t *testing.T) {
	const disk = "f /h/p/d/f;l /h/p/l d;l /h/p/abs /h/p/d;l /h/p/up ../p/d/f;l /h/p/slash d/;l /h/p/dang d/none/x;" +
		"l /h/p/back gone/../d;l /h/p/through d/f/../f;l /h/p/a b;l /h/p/b a;l /h/p/out /proc/../h/p/d;l /h/p/null /dev/null"
	long := strings.Repeat("n", maxName+1)
	tests := []struct {
		text, path string
		exists     bool
		held       string
		check      func(location) bool
	}{
		{text: "/", path: "/", exists: true},
		{text: "/h/p/d/f", path: "/h/p/d/f", exists: true},
		{text: "/h/p/l/f", path: "/h/p/d/f", exists: true, held: "/h/p/l"},
		{text: "/h/p/abs/f", path: "/h/p/d/f", exists: true, held: "/h/p/abs"},
		{text: "/h/p/up", path: "/h/p/d/f", exists: true, held: "/h/p/up /h/p"},
		{text: "/h/p/slash", path: "/h/p/d", exists: true, held: "/h/p/slash"},
		{text: "/h/p/l/x/y", path: "/h/p/d/x/y", held: "/h/p/l", check: func(l location) bool { return l.parent == "/h/p/d" }},
		{text: "/h/p/dang", path: "/h/p/d/none/x", held: "/h/p/dang", check: func(l location) bool { return l.parent == "/h/p/d" }},
		{text: "/h/p/back", path: "/h/p/gone", held: "/h/p/back"},
		{text: "/h/p/through", path: "/h/p/d/f", held: "/h/p/through", check: func(l location) bool { return l.file == "/h/p/d/f" }},
		{text: "/h/p/d/f/x", path: "/h/p/d/f/x", check: func(l location) bool { return l.file == "/h/p/d/f" }},
		{text: "/h/p/" + long, path: "/h/p/" + long, check: func(l location) bool { return l.impossible }},
		{text: "/h/p/out/f", path: "/h/p/d/f", exists: true, held: "/h/p/out"},
		{text: "/h/p/null", path: "/dev/null", held: "/h/p/null", check: func(l location) bool { return l.special }},
		{text: "/proc/self/x", path: "/proc/self/x", check: func(l location) bool { return l.special }},
	}
	for _, tt := range tests {
		t.Run("FS-7 "+tt.text[:min(len(tt.text), 20)], func(t *testing.T) {
			got := newResolver(newFakeTree(t, disk), 0).resolve(tt.text, true)
			if got.path != tt.path || got.exists != tt.exists || strings.Join(got.held, " ") != tt.held {
				t.Errorf("got %+v", got)
			}
			if tt.check != nil && !tt.check(got) {
				t.Errorf("got %+v", got)
			}
		})
	}
	if got := newResolver(newFakeTree(t, disk), 0).resolve("/h/p/a", true); !got.loop || got.exists {
		t.Errorf("a loop gave %+v", got)
	}
	if got := newResolver(newFakeTree(t, disk), 0).resolve("/h/p/l", false); got.path != "/h/p/l" || !got.exists {
		t.Errorf("FS-9: a last link that is not followed gave %+v", got)
	}
}

func TestResolveLinkLimit_FS7(t *testing.T) {
	// The links may all stand in the last component, or be spread over the directory and the last component.
	for _, n := range []int{maxLinks, maxLinks + 1} {
		tree := newFakeTree(t, "f /end;d /dir")
		for i := range n {
			target := fmt.Sprintf("/l%d", i+1)
			if i == n-1 {
				target = "/end"
			}
			tree.add(fmt.Sprintf("/l%d", i), 'l').target = target
		}
		if got := newResolver(tree, 0).resolve("/l0", true); got.exists != (n == maxLinks) || got.loop != (n > maxLinks) {
			t.Errorf("%d links: %+v", n, got)
		}
		tree = newFakeTree(t, "f /dir/end")
		for i := range n - 1 {
			target := fmt.Sprintf("/l%d", i+1)
			if i == n-2 {
				target = "/dir"
			}
			tree.add(fmt.Sprintf("/l%d", i), 'l').target = target
		}
		tree.add("/dir/last", 'l').target = "end"
		if got := newResolver(tree, 0).resolve("/l0/last", true); got.exists != (n == maxLinks) || got.loop != (n > maxLinks) {
			t.Errorf("%d links over two components: %+v", n, got)
		}
	}
}
