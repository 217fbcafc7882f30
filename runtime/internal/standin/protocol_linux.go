package standin

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// The two sides speak over SOCK_SEQPACKET socket pairs. The door is made by the session, and the process inherits its other
// end. Whoever spawns may keep copies of that, and spawn again with them, so it serves for one message alone: with it the
// process sends an end of a pair of its own, the link, of which nobody else has a copy. What is said afterwards reaches
// nobody else, and when one side is gone, however it ended, the other reads end of file.
//
//	session                                     stand-in
//	   | <-- door: hello(terminal) + SCM_RIGHTS -- | the link's other end, standard input, output and error
//	   | starts the command                        |
//	   | link: started(shared) ------------------> |
//	   | <----------------------- link: signal(n)  | any number
//	   | link: end(status, text) ----------------> | exits
//
// A launch that is refused has end without started. A door that is closed has end in it, for who comes too late.
//
// Every message is two bytes, one of these and a value, and for end a text.
const (
	kindHello   = 'H' // value 1: the controlling terminal was given up, for the command to take
	kindStarted = 'S' // value 1: the command is in the process group of its caller
	kindSignal  = 'K' // value: the signal's number
	kindEnd     = 'E' // value: the exit status
)

// maxText is how long the text of an end may be, in bytes.
const maxText = 16 << 10

// Name is Args[0] of the process.
const Name = "srt-launch"

// socketWord begins Args[1], the number of the door.
const socketWord = "descriptor="

// Args are the words that have a program stand in behind a door at a descriptor number.
func Args(door int) []string { return []string{Name, socketWord + strconv.Itoa(door)} }

// doorOf undoes Args.
func doorOf(args []string) (door int, ok bool) {
	if len(args) != 2 || args[0] != Name {
		return 0, false
	}
	number, ok := strings.CutPrefix(args[1], socketWord)
	if !ok {
		return 0, false
	}
	door, err := strconv.Atoi(number)
	return door, err == nil && door > 2
}

// kept are the variables of the caller's that its program may need before its main: where it finds its libraries (ld.so(8)), and
// where one built to measure coverage writes, which complains on standard error otherwise.
var kept = [...]string{"LD_LIBRARY_PATH", "GOCOVERDIR"}

// Env is the environment of the process: nothing of the command's, and of the caller's only what is kept. It is never empty,
// since callers take an empty one for their own.
func Env() []string {
	env := []string{"GOMAXPROCS=1"} // it has nothing to do at the same time
	for _, name := range kept {
		if value := os.Getenv(name); value != "" {
			env = append(env, name+"="+value)
		}
	}
	return env
}

// Pair makes a door: the session's side, and the file to be inherited. Both are the caller's to close.
func Pair() (*net.UnixConn, *os.File, error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, os.NewSyscallError("socketpair", err)
	}
	theirs := os.NewFile(uintptr(pair[1]), "launch")
	conn, err := toConn(pair[0])
	if err != nil {
		theirs.Close()
		return nil, nil, err
	}
	return conn, theirs, nil
}

// toConn takes ownership of a descriptor of a socket.
func toConn(fd int) (*net.UnixConn, error) {
	f := os.NewFile(uintptr(fd), "socket")
	defer f.Close()
	conn, err := net.FileConn(f)
	if err != nil {
		return nil, err
	}
	c, ok := conn.(*net.UnixConn)
	if !ok {
		conn.Close()
		return nil, fmt.Errorf("a socket of the kind %T instead of a Unix one", conn)
	}
	return c, nil
}

// Caller is a process that stands for a command, as its session sees it.
type Caller struct {
	// Streams are its standard streams, owned by the Caller.
	Streams [3]*os.File
	// Terminal tells that standard input was its controlling terminal, that it led the session there, and that it has given
	// the terminal up.
	Terminal bool
	// PID, UID and GID are what the kernel says of it, in the numbering of this process's namespaces.
	PID, UID, GID int

	link *net.UnixConn
}

// ErrMalformed is a message of another form than this package's: who sent it is no stand-in.
var ErrMalformed = errors.New("the message is not one of a process that stands for a command")

// Accept waits for the next process at the door. It returns ErrMalformed for a message that is none of this package's, and
// another error when the door is closed.
func Accept(door *net.UnixConn) (*Caller, error) {
	buf, oob := make([]byte, 2), make([]byte, unix.CmsgSpace(4*callerFiles))
	n, oobn, flags, _, err := door.ReadMsgUnix(buf, oob)
	if err != nil {
		return nil, err
	}
	fds, err := receivedFiles(oob[:oobn])
	if err != nil || n != len(buf) || buf[0] != kindHello || flags&(unix.MSG_TRUNC|unix.MSG_CTRUNC) != 0 || len(fds) != callerFiles {
		closeAll(fds)
		return nil, ErrMalformed
	}
	c := &Caller{Terminal: buf[1] == 1}
	for i := range c.Streams {
		c.Streams[i] = os.NewFile(uintptr(fds[i+1]), streamNames[i])
	}
	if c.link, err = toConn(fds[0]); err == nil {
		err = c.identify()
	}
	if err != nil {
		c.Close()
		return nil, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	return c, nil
}

// callerFiles is how many descriptors come with hello.
const callerFiles = 4

var streamNames = [3]string{"/dev/stdin", "/dev/stdout", "/dev/stderr"}

// receivedFiles are the descriptors of a message, which exist from now on.
func receivedFiles(oob []byte) ([]int, error) {
	if len(oob) == 0 {
		return nil, nil
	}
	list, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return nil, err
	}
	var fds []int
	for i := range list {
		some, err := unix.ParseUnixRights(&list[i])
		if err != nil {
			return fds, err
		}
		fds = append(fds, some...)
	}
	return fds, nil
}

func closeAll(fds []int) {
	for _, fd := range fds {
		unix.Close(fd)
	}
}

// identify asks the kernel who made the link.
func (c *Caller) identify() error {
	raw, err := c.link.SyscallConn()
	if err != nil {
		return err
	}
	var peer *unix.Ucred
	if outer := raw.Control(func(fd uintptr) {
		peer, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	}); outer != nil {
		return outer
	}
	if err != nil {
		return os.NewSyscallError("getsockopt SO_PEERCRED", err)
	}
	c.PID, c.UID, c.GID = int(peer.Pid), int(peer.Uid), int(peer.Gid)
	return nil
}

// Started tells the process that the command runs, and whether that is in its caller's process group. An error means that
// the process is gone, which Signal tells too.
func (c *Caller) Started(shared bool) error {
	value := byte(0)
	if shared {
		value = 1
	}
	_, err := c.link.Write([]byte{kindStarted, value})
	return err
}

// Signal waits for the next signal that the process was sent. An error means that the process is gone, or Close was called.
func (c *Caller) Signal() (unix.Signal, error) {
	var buf [3]byte // a longer message shows
	for {
		n, err := c.link.Read(buf[:])
		if err != nil {
			return 0, err
		}
		if n == 2 && buf[0] == kindSignal {
			return unix.Signal(buf[1]), nil
		}
	}
}

// End has the process write a text to its standard error, unless that is empty, and exit.
func (c *Caller) End(status int, text string) {
	_, _ = c.link.Write(endMessage(status, text)) // a process that is gone needs no telling
}

// Close closes the link and the streams. A process that was not told its end takes the session for gone.
func (c *Caller) Close() {
	if c.link != nil {
		_ = c.link.Close() // nothing was held back that it could fail to send
	}
	for _, f := range c.Streams {
		f.Close()
	}
}

// Refuse leaves at the door why nobody is taken any more, and closes it.
func Refuse(door *net.UnixConn, status int, text string) {
	_, _ = door.Write(endMessage(status, text)) // nobody may be left to read it
	_ = door.Close()                            // as above
}

func endMessage(status int, text string) []byte {
	return append([]byte{kindEnd, byte(status)}, text[:min(len(text), maxText)]...)
}
