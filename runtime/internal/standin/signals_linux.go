package standin

import (
	"os"
	"os/signal"

	"golang.org/x/sys/unix"
)

// forwarded are the signals that are passed on, beside the real-time ones. Left out are those that nobody can catch, that the
// kernel sends a process about itself, and SIGURG, which the Go runtime sends itself.
var forwarded = [...]unix.Signal{
	unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGABRT, unix.SIGUSR1, unix.SIGUSR2, unix.SIGALRM, unix.SIGTERM, unix.SIGCONT,
	unix.SIGTSTP, unix.SIGTTIN, unix.SIGTTOU, unix.SIGVTALRM, unix.SIGWINCH, unix.SIGIO, unix.SIGPWR,
}

// The real-time signals that programs may use (signal(7): the C library keeps the first two).
const firstRealTime, lastRealTime = unix.Signal(34), unix.Signal(64)

// wantedSignals are those to be passed on. What was ignored when the process began stays so, as under nohup(1).
func wantedSignals() []os.Signal {
	list := make([]os.Signal, 0, len(forwarded)+int(lastRealTime-firstRealTime)+1)
	add := func(sig unix.Signal) {
		if !signal.Ignored(sig) {
			list = append(list, sig)
		}
	}
	for _, sig := range forwarded {
		add(sig)
	}
	for sig := firstRealTime; sig <= lastRealTime; sig++ {
		add(sig)
	}
	return list
}

// catch collects signals until there is somebody to pass them on to.
func catch(wanted []os.Signal) <-chan os.Signal {
	caught := make(chan os.Signal, 2*len(wanted)+1)
	signal.Notify(caught, wanted...)
	return caught
}

// keyboard tells whether a terminal sends a signal to its whole foreground process group.
func keyboard(sig unix.Signal) bool {
	switch sig {
	case unix.SIGINT, unix.SIGQUIT, unix.SIGTSTP, unix.SIGWINCH:
		return true
	}
	return false
}

// forward passes signals on. A command that shares this process's group has what the terminal sends already.
func forward(link int, caught <-chan os.Signal, shared bool) {
	for got := range caught {
		sig, ok := got.(unix.Signal)
		if !ok || shared && keyboard(sig) && inForeground() {
			continue
		}
		if unix.Send(link, []byte{kindSignal, byte(sig)}, unix.MSG_NOSIGNAL) != nil {
			return // the session is gone, which ends the process elsewhere
		}
	}
}
