package broker

import (
	"fmt"
	"testing"

	"golang.org/x/sys/unix"
)

// limitSituation holds that EMFILE comes before anything is made.
func limitSituation(r *recorder) {
	for room := range 2 {
		r.err("open", openAtLimit(r, fmt.Sprintf("limit%d", room), room))
	}
	// A descriptor above a limit that was lowered afterwards does not count.
	high, err := unix.FcntlInt(0, unix.F_DUPFD, 700)
	r.check(err)
	r.err("open", openAtLimit(r, "gap", 1))
	r.check(unix.Close(high))
}

// openAtLimit makes a file while the limit of descriptors leaves room for so many more. The probe has threads besides this one (the
// Go runtime's, the race detector's), and one that opens something in the middle takes the room: then it is done again, but not for ever.
func openAtLimit(r *recorder, name string, room int) error {
	var before unix.Rlimit
	r.check(unix.Getrlimit(unix.RLIMIT_NOFILE, &before))
	lowestFree := func() int {
		fd, err := unix.Dup(0)
		r.check(err)
		r.check(unix.Close(fd))
		return fd
	}
	for try := 0; ; try++ {
		lowest := lowestFree()
		r.check(unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: uint64(lowest + room), Max: before.Max}))
		fd, err := unix.Open(name, unix.O_CREAT|unix.O_RDWR, 0o644)
		if err == nil {
			r.check(unix.Close(fd))
		}
		r.check(unix.Setrlimit(unix.RLIMIT_NOFILE, &before))
		var there unix.Stat_t
		made := unix.Lstat(name, &there) == nil
		// One that closes something in the middle can also make room for as long as it takes to make the file.
		if disturbed := (err == nil) != (room > 0) || made != (err == nil) || lowestFree() != lowest; !disturbed || try == 20 {
			return err
		}
		if made {
			r.check(unix.Unlink(name))
		}
	}
}

func TestParseOpenFiles(t *testing.T) {
	const text = "Limit                     Soft Limit           Hard Limit           Units     \n" +
		"Max processes             96364                96364                processes \n" +
		"Max open files            1024                 1048576              files     \n"
	if got, err := parseOpenFiles(text); err != nil || got != 1024 {
		t.Errorf("got %d, %v", got, err)
	}
	for _, bad := range []string{"", "Max open files\n", "Max open files  many many files\n"} {
		if got, err := parseOpenFiles(bad); err == nil {
			t.Errorf("%q gives %d", bad, got)
		}
	}
}
