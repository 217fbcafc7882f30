package hostile

import (
	"errors"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/srt-sandbox/srt/test/programs/stage"
)

// hostSocket is a Unix socket of the host, with a file, that nobody is to reach.
type hostSocket struct {
	fd   int
	path string // absolute
}

// hostSocket makes one in the project, where a command that may write can also rename it.
func (w *world) hostSocket(s *stage.Stage, name string) *hostSocket {
	s.T.Helper()
	h := &hostSocket{path: filepath.Join(s.Work, name)}
	var err error
	h.fd, err = unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	s.Must(err)
	s.T.Cleanup(func() { unix.Close(h.fd) })
	s.Must(unix.Bind(h.fd, &unix.SockaddrUnix{Name: h.path}))
	s.Must(unix.Listen(h.fd, 128))
	s.Must(unix.Chmod(h.path, 0o777))
	s.Must(unix.Lchown(h.path, s.Who.UID, s.Who.GID))
	return h
}

// reached tells whether somebody has connected since it was last asked.
func (h *hostSocket) reached(s *stage.Stage) bool {
	s.T.Helper()
	found := false
	for {
		fd, _, err := unix.Accept4(h.fd, unix.SOCK_CLOEXEC)
		switch {
		case errors.Is(err, unix.EAGAIN):
			return found
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			s.T.Fatal(err)
		}
		found = true
		unix.Close(fd)
	}
}

// untouched fails the test if somebody has connected.
func (h *hostSocket) untouched(s *stage.Stage) {
	s.T.Helper()
	if h.reached(s) {
		s.T.Errorf("ESCAPE: a program connected to the socket of the host at %s", h.path)
	}
}
