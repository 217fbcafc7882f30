//go:build linux

package ns

import "encoding/binary"

// The two sides of a sandbox speak over one SOCK_SEQPACKET socket pair. It is also the sandbox's lifeline: the child
// holds no copy of the host side's end, so when the host process ends, however it ends, pid 1 reads end of file and the
// kernel kills everything in its pid namespace with it (pid_namespaces(7)).
//
//	host side                                   pid 1                        pid 2 (the command)
//	   | clone(namespaces) ----------------------> |
//	   | writes uid_map, gid_map                   | takes its descriptors, closes all others
//	   | writes the program into shared memory     | runs the part of it before Program.Ahead, which is there already
//	   | <---------------- file(index) + SCM_RIGHTS|   what that opened for the host side
//	   | go(count) + SCM_RIGHTS -----------------> | keeps what came for its whole life; runs the program
//	   | <---------------- file(index) + SCM_RIGHTS|   what it opened for the host side
//	   | <----------------------------------- ready|   the program is done
//	   |                                           | vfork ---------------------> | session, terminal
//	   |                                           |                              | execve
//	   | <------------------- failed(program, step, errno) -- any side, any time  |
//	   | signal(n) ------------------------------> | kill(-2, n)
//	   | <--------------------------------- stopped| the command stopped
//	   | resume(foreground) ---------------------> | terminal, SIGCONT
//	   | <------------------------ end of file: pid 1 is gone, and all with it; its exit status is the command's
//
// In a confined sandbox (Config.Confined) the new process is pid 1 of nothing, and kills what it must itself (confined_linux.go).
// Between ready and vfork it waits for one more word: until that is sent the host side may kill it, from then on it shuts the
// socket down instead.
//
//	host side                                   keeper                       supervisor                the command
//	   | begin ----------------------------------> | clone -------------------> | adopts orphans
//	   | <----------------------------------------------------------- begun(pid)|
//	   |                                           |                            | vfork -----------------> | as above
//	   | <------------------------------------------ failed, stopped; signal, resume -->                   |
//	   | end of file ---------------------------------------------------------> | ends
//	   |                                           | kills and reaps all else; its exit status is the command's
//
// A hand (hand_linux.go) speaks over a socket pair of its own:
//
//	host side                                   hand
//	   | clone() --------------------------------> | takes its descriptors, closes all others
//	   | writes a program into shared memory       |
//	   | run(which) + SCM_RIGHTS ----------------> | runs it (the first one is the hand's set-up)
//	   | <---------------- file(index) + SCM_RIGHTS|   what it opened for the host side
//	   |                                           | its own identity again, closes all that it opened
//	   | <----------------- done(step, errno) ---- | noStep: all were done; not sent by a program that has answered (Hand.Begin)
//	   | end of file ----------------------------> | ends
//
// While a hand waits in a system call it does not read. So it also holds the reading end of a pipe that has SIGKILL as its
// signal (F_SETSIG of fcntl(2)): when the host side is gone, the pipe's other end closes and the kernel ends the hand.
//
// Every message is 16 bytes: four little-endian 32-bit words, the first of them one of these.
const (
	msgGo = iota + 1
	msgFile
	msgReady
	msgFailed
	msgSignal
	msgStopped
	msgResume
	msgRun
	msgDone
	msgBegin
	msgBegun
)

// noStep in the second word of msgDone says that no step failed.
const noStep = 1<<32 - 1

const msgSize = 16

// Which program a failed step belongs to (second word of msgFailed).
const (
	programSetup = iota
	programFixed // what every start does, see fixedSteps
	programExec
)

type message [4]uint32

func (m message) encode() []byte {
	b := make([]byte, msgSize)
	for i, w := range m {
		binary.LittleEndian.PutUint32(b[4*i:], w)
	}
	return b
}

func decodeMessage(b []byte) (m message, ok bool) {
	if len(b) != msgSize {
		return m, false
	}
	for i := range m {
		m[i] = binary.LittleEndian.Uint32(b[4*i:])
	}
	return m, true
}
