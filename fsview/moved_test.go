package fsview

import (
	"errors"
	"testing"
)

func TestObjectSeenAtTwoPaths(t *testing.T) {
	tests := []struct {
		name, disk, words string
		refused           bool
	}{
		{"write denies", "d /h/p; f /h/p/a; f /h/p/b", "aW=. dW=a dW=b", true},
		{"a read and a write deny", "d /h/p; f /h/p/a; f /h/p/b", "aW=. dR=a dW=b", true},
		{"directories", "d /h/p; d /h/p/a; d /h/p/b", "aW=. dW=a dW=b", true},
		{"a mask and a write deny", "d /h/p; f /h/p/a; f /h/p/b", "aW=. mask=a dW=b", true},
		{"hard links", "d /h/p; f /h/p/a links=2; f /h/p/b links=2", "aW=. dW=a dW=b", false},
		{"one is not protected", "d /h/p; f /h/p/a; f /h/p/b", "aW=. dW=a", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tree := newFakeTree(t, tt.disk)
			if _, err := Build(tree, input(t, tt.words)); err != nil {
				t.Fatalf("two objects: %v", err)
			}
			tree.objects["/h/p/b"] = tree.objects["/h/p/a"] // as between the two halves of an exchange
			_, err := Build(tree, input(t, tt.words))
			if refused := errors.Is(err, ErrMoved); refused != tt.refused || err != nil && !refused {
				t.Errorf("one object: %v, want refused: %v", err, tt.refused)
			}
		})
	}
}

// TestObjectAtTwoNamesOfOneDirectory: a directory that ignores case shows one object under both spellings.
func TestObjectAtTwoNamesOfOneDirectory(t *testing.T) {
	tree := newFakeTree(t, "d /h/p; f /h/p/a; f /h/p/A")
	tree.objects["/h/p/A"] = tree.objects["/h/p/a"]
	if _, err := Build(tree, input(t, "aW=. dW=a dW=A")); err != nil {
		t.Error(err)
	}
}
