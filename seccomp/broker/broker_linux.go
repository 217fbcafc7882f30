package broker

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"

	"github.com/srt-sandbox/srt/fsview"
	"github.com/srt-sandbox/srt/ns"
	"github.com/srt-sandbox/srt/seccomp/notify"
)

// Judge decides about names and locations. *fsview.Guard is one; its methods say what each question means. All paths are
// absolute and as the sandbox sees them. It is asked by many goroutines at once.
type Judge interface {
	Reads() bool
	Suspect(name string) bool
	Create(dir fsview.Identity, at func() (string, error), name string) (why string, denied bool, err error)
	Open(path string) (why string, denied bool)
	Moves() bool
	Move(from, to string) (why string, denied bool)
	Leave(path string) (why string, denied bool)
	Redirect(location string) (why string, denied bool)
}

// ProcessJudge decides about the opening of anything in /proc that is about a process, of the sandbox (own) or not. *fsview.Guard
// is one. It is asked by many goroutines at once.
type ProcessJudge interface {
	Process(own bool) (denied bool)
}

// Follower is a Judge that follows directories: while Follows says so, it hears of each that is about to be renamed, whatever
// comes of that, before anything is done. It decides nothing by it. Both paths are as for Judge, and it is asked by many
// goroutines at once.
type Follower interface {
	Follows() bool
	Renames(from, to string)
}

// Hand performs system calls within the sandbox. *ns.Hand is one.
type Hand interface {
	Program() *ns.Program
	PassFD(fd int) ns.Slot
	Do() (ns.HandResult, error)
	Begin() error
	Answered() bool
	FD() int
	End() (ns.HandResult, error)
	Kill() error
	Close() error
}

// Denial is a call that was refused, or that failed because something here did.
type Denial struct {
	PID  int    // of the calling thread, as the host numbers it
	Call string // name of the system call
	Path string // what it was about: a location where it is known, else as the caller spelled it
	Why  string // the rule; empty with Err, and for what was observed
	// Process is the name of the calling thread (proc_pid_comm(5)); empty where it cannot be told.
	Process string
	// Observed says that the kernel refuses the call, or shows it something else, and the Server only tells of it
	// (Config.Observe): Access is what was refused at Path, an absolute location. PID is then the process.
	Observed bool
	Access   fsview.Access
	// Other is the other path of an observed call with two, and Apart says that neither is denied: the two are on different
	// mounts of one file system.
	Other string
	Apart bool
	Err   error // what failed unexpectedly; nil for a refusal
}

// Config is what a Server works with.
type Config struct {
	// Listener gives the calls. Once Serve has returned, the Server does not use it any more. It stays the caller's.
	Listener *notify.Listener
	// NewHand starts a hand, which the Server closes. The first call asks for the first one, each further worker for one.
	NewHand func() (Hand, error)
	// Judge decides.
	Judge Judge
	// Report is told of every refusal and failure, one at a time. It may take its time: calls do not wait for it, and where
	// more than 1,024 wait to be told the rest is left out. It may be nil.
	Report func(Denial)
	// Refusing is told of what Report is going to be told of, but of each before its caller gets an answer and by whichever
	// goroutine answers: calls wait for it. It is for who would report the same call once more. It may be nil.
	Refusing func(Denial)
	// Rights are those of a new hand, as numbers of the sandbox's user namespace. With nil no process of the sandbox can act
	// with others (an ordinary user's, whose own id alone is mapped and who has no capability), and none is asked.
	Rights *ns.Identity
	// Watched says that the filter also puts umask(2) and the calls that change a thread's ids or groups to the
	// listener. What is known of a thread then holds until it makes one of those; its capabilities are asked for (capget).
	Watched bool
	// Roots says that processes of the sandbox can have other root directories than its own (allowNestedUserNamespaces).
	Roots bool
	// Init is the sandbox's pid 1, as this process numbers it. What shows processes to a command in the surrounding /proc takes it:
	// with 0 no process but the caller is known to be of the sandbox.
	Init int
	// Processes decides what of /proc may be opened where the sandbox shows the surrounding one. With nil all of it may.
	Processes ProcessJudge
	// Changes decides about whatever changes something, for a sandbox without mounts of its own, whose filter is
	// seccomp.Changes and whose command is held by a Landlock domain in which it changes nothing but devices: openings of these
	// go on in the kernel. Judge is then asked about reading, and about directories and links that are moved or made, alone. The
	// sandbox has this process's mounts, and hands are in a domain that grants the write roots. With nil no such call is
	// expected: one that comes fails (EIO) and is reported.
	Changes ChangeJudge
	// Gate decides about connections, for a sandbox whose filter puts connect(2) to the listener (seccomp.Network). With nil
	// no such call is expected: one that comes fails (EIO) and is reported.
	Gate Gate
	// Capture and Waiting are the listeners of ns.Program.ListenCapture on ns.CapturePort and ns.WaitingPort. They are
	// needed with a Gate, stay the caller's, and must be open until Serve has returned.
	Capture, Waiting *os.File
	// Confined says what connections, listeners and sockets there may be in a sandbox without a network namespace, whose filter
	// is seccomp.ConfinedNetwork. With it there is no Gate.
	Confined *ConfinedNet
	// Observe has refusals of the kernel reported, for a sandbox whose filter also puts the calls of seccomp.ObserveWrites or
	// seccomp.ObserveAll to the listener. With nil there are none.
	Observe *Observation
	// Unix says which sockets of the host a program may connect to by path.
	Unix UnixRules
	// Workers is how many calls can be under way at the same time, 64 if it is 0. Each takes a thread and a hand.
	Workers int
}

// defaultWorkers is Config.Workers when none is given.
const defaultWorkers = 64

// Server answers the calls of one sandbox. Its methods are safe for concurrent use.
type Server struct {
	config   Config
	threads  threadCache
	sysctl   sysctls
	outer    procKind
	root     rootOnce
	changes  changes
	mounts   seenMounts
	searches ownSearch
	unix     unixSockets
	network  network

	confined confinedNetwork
	made     madeSockets

	observer observer

	// moving is held for writing around the judging and performing of a rename, and for reading while directories are
	// made, so that no directory can take the place of what was judged (Judge.Moves).
	moving sync.RWMutex
	// moves is odd while something is being renamed, and counts the renames.
	moves atomic.Uint64

	pool    pool
	reports reports
}

// New makes a Server. It starts nothing yet.
func New(c Config) (*Server, error) {
	switch {
	case c.Listener == nil, c.NewHand == nil, c.Judge == nil:
		return nil, errors.New("broker: a listener, a source of hands and a judge are needed")
	case c.Observe != nil && c.Observe.Judge == nil:
		return nil, errors.New("broker: an observation takes a judge of paths")
	case c.Changes != nil && c.Observe != nil && c.Observe.Only:
		return nil, errors.New("broker: with a judge of changes no call can be looked at alone: nothing else holds what it changes")
	case c.Gate != nil && (c.Capture == nil || c.Waiting == nil):
		return nil, errors.New("broker: a gate takes the listeners that captured connections go to")
	case c.Gate != nil && c.Confined != nil:
		return nil, errors.New("broker: a sandbox without a network namespace has no gate: nothing of it is captured")
	case c.Workers < 0:
		return nil, fmt.Errorf("broker: %d workers cannot be", c.Workers)
	case c.Workers == 0:
		c.Workers = defaultWorkers
	}
	s := &Server{config: c, reports: reports{tell: c.Report}}
	s.threads.entries = map[int]*thread{}
	s.pool.prepare(s)
	s.network.prepare(s)
	s.unix.queue.prepare(s)
	return s, nil
}

// Serve answers calls until no process of the sandbox is left or Close is called, and then returns nil; an error says that
// the listener failed, and calls then wait until it is closed. When it returns, no thread, hand or descriptor of the Server
// is left. It is called once.
func (s *Server) Serve() error {
	err := s.pool.run()
	s.network.finish()
	s.reports.finish()
	s.threads.close()
	s.unix.own.close()
	s.made.close()
	s.observer.close()
	return err
}

// Close makes Serve return soon; once it has returned, Close does nothing. Calls that are under way are not answered: it is for when the sandbox has ended.
func (s *Server) Close() error {
	s.network.stop()
	return s.pool.close()
}

// Dropped is how many reports were left out because too many waited.
func (s *Server) Dropped() uint64 { return s.reports.lost() }

func (s *Server) report(d Denial) {
	if s.config.Refusing != nil {
		s.config.Refusing(d)
	}
	s.reports.add(d)
}
