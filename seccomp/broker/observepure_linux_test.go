package broker

import (
	"strings"
	"testing"
)

const someMounts = `21 26 0:20 / /proc rw,nosuid,nodev,noexec,relatime shared:5 - proc proc rw
26 1 8:1 / / ro,relatime - ext4 /dev/sda1 rw
27 26 0:41 / /mnt/a\040b rw,relatime master:3 propagate_from:2 - fuse.sshfs host: rw,user_id=0
28 26 0:42 / /net ro - nfs4 server:/x rw,vers=4.2
29 26 0:43 / /merged rw,relatime - overlay overlay rw,lowerdir=/a
`

func TestParseMounts(t *testing.T) {
	got := parseMounts([]byte(someMounts + "not a line\n99 - ext4 x\n18446744073709551616 1 0:1 / / ro - ext4 x rw\n"))
	want := map[uint64]mountKind{21: {}, 26: {sealed: true}, 27: {remote: true}, 28: {remote: true, sealed: true}, 29: {}}
	if len(got) != len(want) {
		t.Errorf("%v, want %v", got, want)
	}
	for id, k := range want {
		if got[id] != k {
			t.Errorf("%d: %+v, want %+v", id, got[id], k)
		}
	}
	if got := overlays([]byte(someMounts)); len(got) != 1 || got[29] != (mountKind{remote: true}) {
		t.Errorf("overlays: %v", got)
	}
}

// FuzzMounts: whatever the list says, only numbers in it are known, and what is of no known type is asked as somebody else's.
func FuzzMounts(f *testing.F) {
	for line := range strings.Lines(someMounts) {
		f.Add([]byte(line))
	}
	f.Add([]byte(" - \n - - -\n1 2 3 4 5 ro - \n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		for id, k := range parseMounts(text) {
			if !k.remote && !strings.Contains(string(text), " - ") {
				t.Errorf("%d is %+v in %q", id, k, text)
			}
		}
	})
}
