package container

import (
	"os"
	"strconv"
	"testing"
	"time"
)

// TestCommand is no test but the way into a container: build/in-container.sh runs a shell text in a shape of the matrix with it.
func TestCommand(t *testing.T) {
	text := os.Getenv("SRT_CONTAINER_COMMAND")
	if text == "" {
		t.Skip("SRT_CONTAINER_COMMAND is not set, and this only runs what it says; see build/in-container.sh")
	}
	uid, err := strconv.Atoi(os.Getenv("SRT_CONTAINER_UID"))
	if err != nil {
		t.Fatalf("SRT_CONTAINER_UID: %v", err)
	}
	for _, s := range shapes {
		if s.name != os.Getenv("SRT_CONTAINER_SHAPE") {
			continue
		}
		r, err := s.recipe()
		if err != nil {
			t.Fatal(err)
		}
		c := newContainer(t, os.Getenv("SRT_CONTAINER_ENGINE"), r, account{uid, uid})
		c.limit, c.echo = time.Hour, true
		if o := c.run(t, []string{"bash", "-c", text}, nil); o.status != 0 {
			t.Errorf("it ended with %d", o.status)
		}
		return
	}
	t.Fatalf("SRT_CONTAINER_SHAPE=%q is no shape of the matrix", os.Getenv("SRT_CONTAINER_SHAPE"))
}
