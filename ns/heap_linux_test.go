package ns

import (
	"bufio"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"unsafe"
)

// forkedWithout tells whether the memory at an address is left out of forks (the flag "dc" of proc_pid_smaps(5)).
func forkedWithout(t *testing.T, address uintptr) bool {
	t.Helper()
	f, err := os.Open("/proc/self/smaps")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	inside := false
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var start, end uintptr
		if n, _ := fmt.Sscanf(lines.Text(), "%x-%x ", &start, &end); n == 2 {
			inside = start <= address && address < end
		}
		if flags, ok := strings.CutPrefix(lines.Text(), "VmFlags:"); ok && inside {
			return slices.Contains(strings.Fields(flags), "dc")
		}
	}
	t.Fatalf("nothing is mapped at %#x", address)
	return false
}

// The heap is left out of the copy, and only as long as something forks: nobody else's forks are changed.
func TestHeapIsLeftOutOfForks(t *testing.T) {
	p := newProgram(t)
	defer p.Release()
	object := make([]byte, 1<<20)
	at := uintptr(unsafe.Pointer(unsafe.SliceData(object)))
	place := uintptr(unsafe.Pointer(p.pad))
	if max(at, place)-min(at, place) < apart {
		t.Skipf("the heap at %#x and mappings at %#x are less than %#x apart", at, place, uintptr(apart))
	}
	heap.leaveOut(place)
	heap.leaveOut(place)
	within := forkedWithout(t, at)
	heap.takeIn()
	still := forkedWithout(t, at)
	heap.takeIn()
	after := forkedWithout(t, at)
	if !within || !still || after {
		t.Errorf("left out during a fork %t, at the end of the first of two %t, afterwards %t; want true, true, false", within, still, after)
	}
	if forkedWithout(t, place) {
		t.Error("the program's own memory is left out")
	}
	runtime.KeepAlive(object)
}

// A heap that has outgrown its first arena is left out as a whole.
func TestHeapIsLeftOutWhenItHasGrown(t *testing.T) {
	p := newProgram(t)
	defer p.Release()
	var objects [][]byte // reserved, hardly touched
	for range 3 {
		objects = append(objects, make([]byte, arenaSize))
	}
	place := uintptr(unsafe.Pointer(p.pad))
	heap.leaveOut(place)
	defer heap.takeIn()
	for _, o := range objects {
		at := uintptr(unsafe.Pointer(unsafe.SliceData(o)))
		if max(at, place)-min(at, place) >= apart && !forkedWithout(t, at) {
			t.Errorf("the object at %#x is copied; the heap was found at %#x to %#x", at, heap.start, heap.end)
		}
	}
	runtime.KeepAlive(objects)
}
