package fsview

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"
)

// stallingTree is a tree that does not answer about one path, until it is released.
type stallingTree struct {
	*fakeTree
	at      string
	release chan struct{}
	asked   chan string // what was asked after the release
}

func (s *stallingTree) wait(p string) {
	select {
	case <-s.release:
		select {
		case s.asked <- p:
		default:
		}
	default:
	}
	if p == s.at {
		<-s.release
	}
}

func (s *stallingTree) Lstat(p string) (Info, error) {
	s.wait(p)
	return s.fakeTree.Lstat(p)
}

func (s *stallingTree) ReadDir(p string) ([]DirEntry, error) {
	s.wait(p)
	return s.fakeTree.ReadDir(p)
}

func TestBuildWithinStall(t *testing.T) {
	for _, tt := range []struct{ name, rules, at, op string }{
		{"FS-18 a walk", "dR=**/*.pem", "/h/p/d1", "list"},
		{"FS-7 a name", "dR=d1/x", "/h/p/d1/x", "inspect"},
		{"FS-38 the mandatory search", "aW=.", "/h/p/d1", "list"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tree := &stallingTree{fakeTree: newFakeTree(t, "f /h/p/d1/x;f /h/p/d2/x;f /h/p/d3/x;f /h/p/d4/x;f /h/p/d5/x"), at: tt.at,
				release: make(chan struct{}), asked: make(chan string, 1)}
			plan, err := BuildWithin(tree, input(t, tt.rules), 200*time.Millisecond)
			var stall *StallError
			if !errors.As(err, &stall) || plan != nil || !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Fatalf("%v, %v", plan, err)
			}
			if stall.Path != tt.at || stall.Op != tt.op || !strings.Contains(err.Error(), "unmount") {
				t.Errorf("%v", err)
			}
			close(tree.release)
			// What was left behind asks nothing more.
			select {
			case p := <-tree.asked:
				t.Errorf("after the end %s was asked for", p)
			case <-time.After(20 * time.Millisecond):
			}
		})
	}
}

func TestBuildWithinAnswers(t *testing.T) {
	tree := newFakeTree(t, "f /h/p/d/a.pem;f /h/p/conf")
	want, err := Build(tree, input(t, "aW=. dR=**/*.pem dW=conf"))
	if err != nil {
		t.Fatal(err)
	}
	got, err := BuildWithin(tree, input(t, "aW=. dR=**/*.pem dW=conf"), 0)
	if err != nil || listing(got) != listing(want) {
		t.Errorf("%v\n%s", err, listing(got))
	}
	tree.objects["/bad"] = &fakeObject{kind: 'f', err: errors.New("EIO")}
	if _, err := BuildWithin(tree, input(t, "dR=/bad"), 0); !errors.Is(err, ErrUninspected) {
		t.Errorf("the error is not handed on: %v", err)
	}
}
