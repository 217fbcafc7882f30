package mitm

import (
	"errors"
	"io"
	"io/fs"
	"os"
)

// errNotRegular and errTooLarge are why a file is not read; they are shown where an errno would be.
var (
	errNotRegular = errors.New("not a regular file")
	errTooLarge   = errors.New("too large")
)

// readFile reads a regular file of at most limit bytes. A directory, a pipe or a device is refused rather than read, and
// none of them makes it wait.
func readFile(path string, limit int64) ([]byte, error) {
	f, err := openNonblocking(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, err
	case info.IsDir():
		return nil, &fs.PathError{Op: "read", Path: path, Err: errIsDirectory}
	case !info.Mode().IsRegular():
		return nil, &fs.PathError{Op: "read", Path: path, Err: errNotRegular}
	}
	text := make([]byte, 0, min(info.Size(), limit)+1) // one more byte finds a file that has grown
	for {
		n, err := f.Read(text[len(text):cap(text)])
		text = text[:len(text)+n]
		switch {
		case int64(len(text)) > limit:
			clear(text)
			return nil, &fs.PathError{Op: "read", Path: path, Err: errTooLarge}
		case errors.Is(err, io.EOF):
			return text, nil
		case err != nil:
			clear(text)
			return nil, err
		case len(text) == cap(text):
			grown := append(text[:len(text):len(text)], 0)[:len(text)]
			clear(text) // it may hold a key
			text = grown
		}
	}
}

// errnoName is the name of the error number in an error, for example ENOENT, or what else is known of it in a word.
func errnoName(err error) string {
	if name := systemErrnoName(err); name != "" {
		return name
	}
	switch {
	case errors.Is(err, os.ErrNotExist):
		return "ENOENT"
	case errors.Is(err, os.ErrPermission):
		return "EACCES"
	case errors.Is(err, errNotRegular):
		return errNotRegular.Error()
	case errors.Is(err, errTooLarge):
		return errTooLarge.Error()
	}
	return "EIO"
}
