package seccomp

import "github.com/srt-sandbox/srt/seccomp/internal/sim"

// observedAlways lists the calls that both filters of the observer put to the listener whatever their arguments (VIO-10).
var observedAlways = map[string]numbers{
	"creat": {85, none}, "openat2": {437, 437}, "unlink": {87, none}, "unlinkat": {263, 35}, "rmdir": {84, none},
	"mkdir": {83, none}, "mkdirat": {258, 34}, "mknod": {133, none}, "mknodat": {259, 33},
	"symlink": {88, none}, "symlinkat": {266, 36}, "link": {86, none}, "linkat": {265, 37},
	"rename": {82, none}, "renameat": {264, 38}, "renameat2": {316, 276}, "truncate": {76, 45},
	"chmod": {90, none}, "fchmod": {91, 52}, "fchmodat": {268, 53}, "fchmodat2": {452, 452},
	"chown": {92, none}, "fchown": {93, 55}, "lchown": {94, none}, "fchownat": {260, 54},
	"utime": {132, none}, "utimes": {235, none}, "futimesat": {261, none}, "utimensat": {280, 88},
	"setxattr": {188, 5}, "lsetxattr": {189, 6}, "fsetxattr": {190, 7}, "setxattrat": {463, 463},
	"removexattr": {197, 14}, "lremovexattr": {198, 15}, "fremovexattr": {199, 16}, "removexattrat": {466, 466},
}

// observedReads lists those that observe-all adds.
var observedReads = map[string]numbers{
	"open": {2, none}, "openat": {257, 56}, "execve": {59, 221}, "execveat": {322, 281},
	"readlink": {89, none}, "readlinkat": {267, 78}, "chdir": {80, 49},
}

// wantObserve is the answer of the observer's filters: they refuse nothing.
func wantObserve(filter, arch string, d sim.Data) uint32 {
	const wronly, rdwr, creat, trunc = 0x1, 0x2, 0x40, 0x200
	lists := []map[string]numbers{observedAlways}
	if filter == "observe-all" {
		lists = append(lists, observedReads)
	}
	for _, list := range lists {
		for _, n := range list {
			if n.on(arch) != none && d.Number == n.on(arch) {
				return userNotif
			}
		}
	}
	const writes = wronly | rdwr | creat | trunc
	if d.Number == callOpenat.on(arch) && d.Args[2]&writes != 0 ||
		arch == "amd64" && d.Number == callOpen.on(arch) && d.Args[1]&writes != 0 {
		return userNotif
	}
	return allow
}
