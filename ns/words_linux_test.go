package ns

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

func TestWordsIn(t *testing.T) {
	line := func(name string, start, end uint64) string {
		return "7 (" + name + ") S" + strings.Repeat(" 1", 44) + fmt.Sprintf(" %d 2 3 %d 0\n", start, end)
	}
	for _, test := range []struct {
		name, text string
		want       region
	}{
		{"whole pages", line("srt", 0x7ffc0000f123, 0x7ffc00011fc0), region{0x7ffc0000f000, 0x7ffc00012000}},
		{"within one page", line("srt", 0x7ffc0000f123, 0x7ffc0000f130), region{0x7ffc0000f000, 0x7ffc00010000}},
		{"a name with everything in it", line("a) S 1 (b", 0x7ffc0000f000, 0x7ffc00010000), region{0x7ffc0000f000, 0x7ffc00010000}},
		{"not told", line("srt", 0, 0), region{}},
		{"the wrong way round", line("srt", 0x2000, 0x1000), region{}},
		{"too short", "7 (srt) S 1 1 1\n", region{}},
		{"no text", "", region{}},
	} {
		if os.Getpagesize() != 4096 {
			t.Skipf("the numbers are of pages of 4096 bytes, here they have %d", os.Getpagesize())
		}
		if got := wordsIn([]byte(test.text)); got != test.want {
			t.Errorf("%s: %#x, want %#x", test.name, got, test.want)
		}
	}
}

// CRED-35: neither pid 1 nor a hand has the arguments and the environment of the host side, not even for root, who may look.
func TestForkedWithoutWords_CRED35(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root may look at what is not dumpable; the run as root covers it")
	}
	own, err := os.ReadFile("/proc/self/environ")
	if err != nil || len(own) == 0 {
		t.Fatalf("the environment of this process: %q, %v", own, err)
	}
	b := newBox(t, true)
	for name, pid := range map[string]int{"pid 1": b.process.Pid(), "a hand": b.hand(t).pid} {
		for _, file := range []string{"environ", "cmdline"} {
			text, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, file))
			if len(text) > 0 {
				t.Errorf("%s: %s holds %q (%v)", name, file, text, err)
			}
		}
	}
	if again, err := os.ReadFile("/proc/self/environ"); err != nil || string(again) != string(own) {
		t.Errorf("the host side has lost its own: %q, %v", again, err)
	}
}
