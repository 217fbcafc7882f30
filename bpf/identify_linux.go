package bpf

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// identifySize is that of struct identify in programs/names.bpf.c.
const identifySize = 24

// identifyAll says for each rule as which directory a hook will see the one it is about. stat(2) does not tell: btrfs,
// overlayfs and network file systems have other numbers for the user than for the kernel.
func (s *programSet) identifyAll(rules []Rule) ([]dirKey, error) {
	type directory struct {
		path     string
		dev, ino uint64
	}
	known := map[directory]dirKey{}
	keys := make([]dirKey, len(rules))
	for i := range rules {
		d := directory{rules[i].Dir, rules[i].Dev, rules[i].Ino}
		key, there := known[d]
		if !there {
			var err error
			if key, err = s.identifyOne(&rules[i]); err != nil {
				return nil, fmt.Errorf("identify a directory for a rule in the kernel: %w", err)
			}
			known[d] = key
		}
		keys[i] = key
	}
	return keys, nil
}

// identifyOne opens the directory of a rule, proves that it is the one the rule was made for, and asks as what the kernel
// knows it. The table of descriptors can be replaced by another thread while the program reads it; so two answers in a
// row must agree.
func (s *programSet) identifyOne(r *Rule) (dirKey, error) {
	file, err := openDir(r)
	if err != nil {
		return dirKey{}, err
	}
	defer file.Close()
	key, err := s.ask(file)
	for range 8 {
		if err != nil {
			return dirKey{}, err
		}
		before := key
		if key, err = s.ask(file); err == nil && key == before {
			return key, nil
		}
	}
	return dirKey{}, &os.PathError{Op: "identify", Path: r.Dir, Err: unix.EAGAIN}
}

func (s *programSet) ask(file *os.File) (dirKey, error) {
	ctx := make([]byte, identifySize)
	le.PutUint64(ctx, uint64(file.Fd()))
	if err := run(s.identify, ctx); err != nil {
		return dirKey{}, err
	}
	if le.Uint32(ctx[20:]) != 1 {
		return dirKey{}, &os.PathError{Op: "identify", Path: file.Name(), Err: unix.EBADF}
	}
	return dirKey{ino: le.Uint64(ctx[8:]), dev: le.Uint32(ctx[16:])}, nil
}

// openDir opens the directory of a rule and proves that it is the one the rule was made for.
func openDir(r *Rule) (*os.File, error) {
	fd, err := unix.Open(r.Dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: r.Dir, Err: err}
	}
	file := os.NewFile(uintptr(fd), r.Dir)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		file.Close()
		return nil, &os.PathError{Op: "stat", Path: r.Dir, Err: err}
	}
	if st.Dev != r.Dev || st.Ino != r.Ino {
		file.Close()
		return nil, fmt.Errorf("%s: %w", r.Dir, ErrMoved)
	}
	return file, nil
}
