package ns

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// CLI-30: at the number of a descriptor that stays with the caller the command finds the null device, opened for reading.
// The numbers are those of the socket to the host side, of what pid 1 holds, of what nobody has, and one above the soft
// limit of open files that the command gets.
func TestNullInPlaceOfADescriptor_CLI30(t *testing.T) {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	held, err := os.Open("/etc/passwd")
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	for _, n := range []int{ctlFD, firstFree, firstFree + 1, scratchFD, 77, int(limit.Cur) - 1} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			script := fmt.Sprintf("readlink /proc/self/fd/%d; grep flags /proc/self/fdinfo/%[1]d; ls /proc/self/fd", n)
			c := minimal(newProgram(t), "/bin/sh", "-c", script)
			c.Null, c.Hold = n, []*os.File{held}
			out, st, err := run(t, c)
			if err != nil || st.Code != 0 {
				t.Fatal(st, err)
			}
			got := strings.Fields(out)
			// ls has one more: the directory that it lists.
			if len(got) != 8 || strings.Join(got[:3], " ") != "/dev/null flags: 0100000" || !slices.Contains(got[3:], strconv.Itoa(n)) {
				t.Errorf("got %q, want /dev/null for reading at %d and the standard streams alone", got, n)
			}
		})
	}
}

// A program that cannot be executed is still reported when the number is that of the socket it is reported over.
func TestNullInPlaceOfTheSocket(t *testing.T) {
	for _, n := range []int{ctlFD, 9} {
		c := minimal(newProgram(t), "/nonexistent/x")
		c.Null = n
		_, _, err := run(t, c)
		if e, ok := errors.AsType[*ExecError](err); !ok || !errors.Is(e, unix.ENOENT) {
			t.Errorf("at %d: %v, want an ExecError", n, err)
		}
	}
}

func TestNullFailsClosed(t *testing.T) {
	c := minimal(newProgram(t), "/bin/true")
	c.Null = 2
	if _, _, err := run(t, c); err == nil || !strings.Contains(err.Error(), "standard stream") {
		t.Errorf("a standard stream: %v", err)
	}
	c = minimal(newProgram(t), "/bin/true")
	c.Null = 1 << 30
	if _, _, err := run(t, c); !errors.Is(err, unix.EBADF) {
		t.Errorf("a number that no table has: %v, want EBADF", err)
	}
}
