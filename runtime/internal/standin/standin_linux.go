package standin

import (
	"errors"
	"fmt"
	"os"
	"os/signal"

	"golang.org/x/sys/unix"
)

// exitFailure is the status of a process that has no command to stand for.
const exitFailure = 1

// A program that was executed with Args stands for a command and is nothing else: whatever goes wrong, its main must not run
// in the command's place.
func init() {
	if len(os.Args) == 2 && os.Args[0] == Name {
		if door, ok := doorOf(os.Args); ok {
			os.Exit(stand(door))
		}
	}
}

// stand is the life of the process. It returns the exit status.
func stand(door int) int {
	nameProcess()
	if !isDoor(door) {
		return fail(fmt.Sprintf("descriptor %d is not that of a prepared command. Spawn the process with the files of the launch "+
			"as its descriptors 3, 4 and so on", door))
	}
	unix.CloseOnExec(door)
	wanted := wantedSignals()
	signal.Ignore(unix.SIGPIPE) // a reader of standard error that has gone does not change the status
	terminal := giveTerminal()
	caught := catch(wanted)
	link, err := enter(door, terminal)
	if err != nil {
		if end, ok := receive(door, unix.MSG_DONTWAIT); ok {
			return end.leave()
		}
		return fail(fmt.Sprintf("the session of the prepared command cannot be reached (%v); it was closed, or the launch was released", err))
	}
	letGo()
	return attend(door, link, caught)
}

// nameProcess has listings call the process by its name and not by the descriptor it was executed from.
func nameProcess() {
	f, err := os.OpenFile("/proc/self/comm", os.O_WRONLY, 0)
	if err != nil {
		return // a listing is no reason to fail
	}
	_, _ = f.WriteString(Name)
	f.Close()
}

// isDoor tells whether a descriptor can be one: it may have been lost on the way, and another file be in its place.
func isDoor(fd int) bool {
	family, err1 := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_DOMAIN)
	kind, err2 := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TYPE)
	return errors.Join(err1, err2) == nil && family == unix.AF_UNIX && kind == unix.SOCK_SEQPACKET
}

// enter sends the session what the process has, and gives its end of the link.
func enter(door int, terminal bool) (link int, err error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, os.NewSyscallError("socketpair", err)
	}
	hello := []byte{kindHello, 0}
	if terminal {
		hello[1] = 1
	}
	// The link comes first: where not all arrive for want of numbers, it is what the refusal takes.
	_, err = unix.SendmsgN(door, hello, unix.UnixRights(pair[1], 0, 1, 2), nil, unix.MSG_NOSIGNAL)
	unix.Close(pair[1])
	if err != nil {
		unix.Close(pair[0])
		return -1, os.NewSyscallError("sendmsg", err)
	}
	return pair[0], nil
}

// letGo gives up the streams that the session has now, so that their other ends see when the command closes them. Standard
// error stays, for what is to be said at the end, and so does a terminal, which has no such end.
func letGo() {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return // they are then held until the command ends
	}
	defer null.Close()
	for fd := range 2 {
		if _, err := unix.IoctlGetTermios(fd, unix.TCGETS); err != nil {
			_ = unix.Dup3(int(null.Fd()), fd, 0) // as above
		}
	}
}

// message is one of the session's.
type message struct {
	kind, value byte
	text        string
}

// receive waits for a message. It gives none at end of file.
func receive(fd, flags int) (m message, ok bool) {
	buf := make([]byte, 2+maxText)
	for {
		n, _, err := unix.Recvfrom(fd, buf, flags)
		switch {
		case errors.Is(err, unix.EINTR), errors.Is(err, unix.ECONNRESET): // the other side has left something unread; what it sent is still here
			continue
		case err != nil || n < 2:
			return message{}, false
		}
		return message{buf[0], buf[1], string(buf[2:n])}, true
	}
}

// leave does what an end says.
func (m message) leave() int {
	if m.text != "" {
		say(m.text)
	}
	return int(m.value)
}

// attend passes signals on and waits for the end.
func attend(door, link int, caught <-chan os.Signal) int {
	started := false
	for {
		m, ok := receive(link, 0)
		switch {
		case ok && m.kind == kindStarted:
			started = true
			go forward(link, caught, m.value == 1)
		case ok && m.kind == kindEnd:
			return m.leave()
		case !ok && started:
			return fail("the process that ran the sandboxed command has ended, and the command with it")
		case !ok:
			if end, ok := receive(door, unix.MSG_DONTWAIT); ok {
				return end.leave()
			}
			return fail("the session of the prepared command is gone, or could not take the process for want of descriptors. The command was not started")
		}
	}
}

// fail says why there is no command.
func fail(text string) int {
	say(text)
	return exitFailure
}

func say(text string) { fmt.Fprintln(os.Stderr, "srt: "+text) }
