package fsview_test

import (
	"os"
	"strings"
	"testing"

	"github.com/srt-sandbox/srt/fsview"
	"github.com/srt-sandbox/srt/runtime/policy"
)

// absolute makes rules of absolute paths.
func absolute(paths ...string) (list []policy.PathRule) {
	for _, p := range paths {
		list = append(list, policy.PathRule{Entry: p, Key: "test", Path: p})
	}
	return list
}

// TestLateSteps_FS47 hides and shows things of /sys, /proc and /dev on the kernel, with Landlock as in a launch. A word "!"
// in front of a line of want turns it around.
func TestLateSteps_FS47(t *testing.T) {
	for _, c := range []struct {
		name                string
		denyRead, allowRead []policy.PathRule
		write               bool // everything is in the write list
		script              string
		want                []string
	}{
		{"hidden in sys", absolute("/sys/kernel"), nil, false,
			"ls -A /sys/kernel; stat -c %a,%u /sys/kernel; cd /sys/kernel && mkdir d && echo kept > d/f && cat d/f", []string{"755,", "kept", "!mm\n"}},
		{"shown within hidden", absolute("/sys/kernel"), absolute("/sys/kernel/mm"), false,
			"echo = $(ls -A /sys/kernel) =; ls /sys/kernel/mm; mkdir /sys/kernel/mm/d; echo new > /sys/kernel/n && cat /sys/kernel/n; mv /sys/kernel/mm /sys/kernel/x",
			[]string{"= mm =", "\nhugepages\n", "'/sys/kernel/mm/d': Read-only", "\nnew\n", "mm' to '/sys/kernel/x': Device or resource busy"}},
		{"hidden within shown within hidden", absolute("/sys/kernel", "/sys/kernel/mm/hugepages"), absolute("/sys/kernel/mm"), true,
			"echo = $(ls -A /sys/kernel/mm/hugepages) =; echo in > /sys/kernel/mm/hugepages/n && cat /sys/kernel/mm/hugepages/n; ls /sys/kernel/mm",
			[]string{"= =", "\nin\n", "\nhugepages\n"}},
		{"a file", absolute("/sys/kernel/uevent_seqnum"), nil, true, "stat -c %s,%a /sys/kernel/uevent_seqnum; cat /sys/kernel/uevent_seqnum; ls /sys/kernel/mm",
			[]string{"0,0", "\nhugepages\n"}},
		{"what is shown is what the kernel table leaves", absolute("/sys"), absolute("/sys/kernel", "/sys/firmware"), false,
			"echo = $(ls -A /sys) =; echo debug: $(ls -A /sys/kernel/debug /sys/kernel/security /sys/kernel/tracing | grep -v :); ls /sys/kernel/mm",
			[]string{"= kernel =", "debug:\n", "\nhugepages\n"}},
		{"what the kernel table hides", absolute("/sys/firmware", "/sys/kernel/debug"), absolute("/sys/firmware", "/sys/kernel/debug/x"), false,
			"echo = $(ls -A /sys/firmware /sys/kernel/debug | grep -v :) =", []string{"= ="}},
		{"all of sys", absolute("/sys"), nil, false, "echo = $(ls -A /sys) =; echo new > /sys/n && cat /sys/n", []string{"= =", "\nnew\n"}},
		{"in proc", absolute("/proc/sys/kernel", "/proc/version", "/proc/kcore"), nil, false,
			"echo = $(ls -A /proc/sys/kernel) =; echo new > /proc/sys/kernel/n && cat /proc/sys/kernel/n; stat -c %s,%a /proc/version; ls /proc/sys",
			[]string{"= =", "\nnew\n", "0,0", "\nvm\n"}},
		{"all of dev", absolute("/dev"), nil, false, "echo = $(ls -A /dev) =; echo new > /dev/n && cat /dev/n", []string{"= =", "\nnew\n"}},
		{"dev/shm", absolute("/dev/shm"), nil, false, "echo new > /dev/shm/n && cat /dev/shm/n; echo x > /dev/null && echo null", []string{"new\n", "null\n"}},
	} {
		t.Run(strings.ReplaceAll(c.name, " ", "_"), func(t *testing.T) {
			in := fsview.Input{Cwd: "/", UID: os.Geteuid(), Rules: policy.PathRules{DenyRead: c.denyRead, AllowRead: c.allowRead}}
			if c.write {
				in.Rules.AllowWrite = absolute("/")
			}
			out := "\n" + viewBehind(t, in, c.script, true)
			for _, w := range c.want {
				text, absent := strings.CutPrefix(w, "!")
				if strings.Contains(out, text) == absent {
					t.Errorf("want %q in:\n%s", w, out)
				}
			}
		})
	}
}
