package probe

import (
	"errors"
	"sync"
	"unsafe"

	"github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"
)

// WithinSrt tells whether this process is in a sandbox of srt, with a broker: the kernel has Landlock, and what asks for it as
// srt does alone gets it. It asks once, and is safe for concurrent use.
var WithinSrt = sync.OnceValue(func() bool {
	_, err := syscall.LandlockGetABIVersion()
	return errors.Is(err, unix.EOPNOTSUPP) && landlockWithin() > 0
})

// rulesetSize is the size that srt gives of struct landlock_ruleset_attr, zeros behind it included. A sandbox of srt around this
// process refuses Landlock to every program but by this size (rules.innerLayer in package seccomp).
const rulesetSize = 512

// landlockWithin finds the ABI version out where the question for it is refused, by what rulesets can be made of, up to version
// 6; 0 where none can. It says less than the kernel where that has a newer one, of which srt uses nothing.
func landlockWithin() int {
	for _, v := range [...]struct {
		abi    int
		handle [3]uint64 // files, TCP, scopes: what the version brought (landlock(7))
	}{
		{6, [3]uint64{2: unix.LANDLOCK_SCOPE_SIGNAL}},
		{5, [3]uint64{unix.LANDLOCK_ACCESS_FS_IOCTL_DEV}},
		{4, [3]uint64{1: unix.LANDLOCK_ACCESS_NET_CONNECT_TCP}},
		{3, [3]uint64{unix.LANDLOCK_ACCESS_FS_TRUNCATE}},
		{2, [3]uint64{unix.LANDLOCK_ACCESS_FS_REFER}},
		{1, [3]uint64{unix.LANDLOCK_ACCESS_FS_WRITE_FILE}},
	} {
		var attr [rulesetSize / 8]uint64
		copy(attr[:], v.handle[:])
		fd, _, errno := unix.RawSyscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), rulesetSize, 0)
		if errno == 0 {
			unix.Close(int(fd))
			return v.abi
		}
	}
	return 0
}
