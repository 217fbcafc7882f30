package seccomp

import (
	"slices"

	"github.com/srt-sandbox/srt/seccomp/internal/sim"
)

// changedAlways lists the calls that changes puts to the listener beside those of askedAlways, whatever their arguments.
var changedAlways = map[string]numbers{
	"unlink": {87, none}, "unlinkat": {263, 35}, "rmdir": {84, none}, "truncate": {76, 45},
	"chmod": {90, none}, "fchmod": {91, 52}, "fchmodat": {268, 53}, "fchmodat2": {452, 452},
	"chown": {92, none}, "fchown": {93, 55}, "lchown": {94, none}, "fchownat": {260, 54},
	"utime": {132, none}, "utimes": {235, none}, "futimesat": {261, none}, "utimensat": {280, 88},
	"setxattr": {188, 5}, "lsetxattr": {189, 6}, "fsetxattr": {190, 7},
	"removexattr": {197, 14}, "lremovexattr": {198, 15}, "fremovexattr": {199, 16},
}

// changedNewer lists the calls that changes answers as an older kernel or file system does.
var changedNewer = map[uint32]uint32{463: 38, 466: 38, 469: 95}

var (
	// numberedCalls act upon the process that their first argument numbers; the caller itself by 0.
	numberedCalls = map[string]numbers{"sched_setparam": {142, 118}, "sched_setscheduler": {144, 119}, "sched_setaffinity": {203, 122},
		"sched_setattr": {314, 274}, "prlimit64": {302, 261}}
	callSetpriority = numbers{141, 140}
	callIoprioSet   = numbers{251, 30}

	// attributeRequests are those of ioctl that change a file by a descriptor that is open for reading.
	attributeRequests = []uint32{0x40086602, 0x40046602, 0x401c5820, 0x40087602, 0x40806685, 0x800c6613, 0xc0506617, 0xc0406618, 0xc0185879,
		0x40086604, 0x40086606, 0x6609, 0x660c, 0x6611, 0x50009402, 0x40309410, 0x5000940f, 0x5000943f, 0x4008941a, 0xc0c09425, 0x40047211,
		0x4020bc11, 0x4030bc1e, 0x8008bc40, 0x40289702, 0x40289705, 0xcf04}

	// hostIPC lists the calls that confined refuses with ENOSYS.
	hostIPC = map[string]numbers{"shmget": {29, 194}, "shmat": {30, 196}, "shmctl": {31, 195}, "semget": {64, 190}, "semop": {65, 193},
		"semctl": {66, 191}, "semtimedop": {220, 192}, "msgget": {68, 186}, "msgsnd": {69, 189}, "msgrcv": {70, 188}, "msgctl": {71, 187},
		"mq_open": {240, 180}, "mq_unlink": {241, 181}}
)

// wantConfined is the answer of the filter confined.
func wantConfined(arch string, d sim.Data) uint32 {
	for _, n := range hostIPC {
		if d.Number == n.on(arch) {
			return errnoBit | 38
		}
	}
	return allow
}

// wantChanges is the answer of the filter changes.
func wantChanges(arch string, d sim.Data) uint32 {
	for _, list := range []map[string]numbers{askedAlways, changedAlways} {
		for _, n := range list {
			if n.on(arch) != none && d.Number == n.on(arch) {
				return userNotif
			}
		}
	}
	for _, n := range numberedCalls {
		if d.Number == n.on(arch) && uint32(d.Args[0]) != 0 {
			return userNotif
		}
	}
	const writes = 0x1 | 0x2 | 0x40 | 0x200
	self := uint32(d.Args[1]) == 0
	switch n := d.Number; {
	case n == callOpenat.on(arch) && d.Args[2]&writes != 0, arch == "amd64" && n == callOpen.on(arch) && d.Args[1]&writes != 0,
		n == callSetpriority.on(arch) && (uint32(d.Args[0]) != 0 || !self),
		n == callIoprioSet.on(arch) && (uint32(d.Args[0]) != 1 || !self):
		return userNotif
	case n == callLandlock.on(arch) && d.Args[1]&innerLayer == 0:
		return errnoBit | 95
	case changedNewer[n] != 0:
		return errnoBit | changedNewer[n]
	case n == callIoctl.on(arch) && (slices.Contains(attributeRequests, uint32(d.Args[1])) || d.Args[1]&0xff00 == 0xf500):
		return errnoBit | 95
	}
	return wantIoctlNames(arch, d)
}
