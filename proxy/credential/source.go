package credential

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// maxFile is the size of the largest file that is masked (CRED-9).
const maxFile = 16 << 20

// hideError says why a file is hidden. It matches ErrHide.
type hideError struct{ reason string }

// Error returns one clause.
func (e *hideError) Error() string { return e.reason }

// Is makes errors.Is find ErrHide.
func (e *hideError) Is(target error) bool { return target == ErrHide }

// readSource reads a file into protected memory; text is a view of it, and release gives it back. Errors that match
// ErrHide say why the file is not masked; EACCES passes as it is.
func readSource(location string) (memory scratch, text []byte, err error) {
	f, err := openSource(location)
	switch {
	case errors.Is(err, syscall.ENOENT), errors.Is(err, syscall.ENOTDIR), errors.Is(err, syscall.ELOOP):
		return scratch{}, nil, &hideError{"it was moved while it was read"}
	case err != nil:
		return scratch{}, nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return scratch{}, nil, err
	case !info.Mode().IsRegular():
		return scratch{}, nil, &hideError{"it is not a regular file"}
	case info.Size() > maxFile:
		return scratch{}, nil, errTooLarge()
	}
	return readAll(f, info)
}

func errTooLarge() error { return &hideError{"it is larger than 16 MiB"} }

// readAll reads a file of about the size that info says; the size of some (procfs) is not known, others grow.
func readAll(f *os.File, info fs.FileInfo) (memory scratch, text []byte, err error) {
	size := int(info.Size()) + 1
	for {
		if memory, err = newScratch(size); err != nil {
			return scratch{}, nil, err
		}
		whole := memory.mapping[:cap(memory.mapping)]
		n, err := io.ReadFull(io.NewSectionReader(f, 0, int64(len(whole))), whole)
		switch {
		case n > maxFile:
			memory.release()
			return scratch{}, nil, errTooLarge()
		case err == nil:
			memory.release() // it may hold more: read all of it at once, so that the text is of one moment
			size = min(4*len(whole), maxFile+1)
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return memory, whole[:n], nil
		default:
			memory.release()
			return scratch{}, nil, err
		}
	}
}

// hides reports whether a file is hidden for this error.
func hides(err error) bool { return errors.Is(err, ErrHide) || errors.Is(err, syscall.EACCES) }
