package runtime

import "fmt"

// judgesProcesses tells whether nothing of processes outside is opened for the command in its /proc. enableWeakerNestedSandbox lifts
// that; but where the command may make user namespaces, that /proc can be written to (id maps), and so could what the kernel lets the
// same user set for other processes there (oom_score_adj). Then it is judged wherever system calls can be put to srt.
func (l *launch) judgesProcesses() bool {
	switch {
	case !l.hostProc:
		return false
	case l.cfg.EnableWeakerNestedSandbox:
		return l.cfg.AllowNestedUserNamespaces && brokerAvailable() == nil
	}
	return true
}

// UnjudgedProcessesError says that no command is started because what a command may open in the surrounding /proc cannot be
// judged (mode nested). Reason is why system calls cannot be put to srt.
type UnjudgedProcessesError struct{ Reason error }

func (e *UnjudgedProcessesError) Error() string {
	return fmt.Sprintf("the container around srt masks parts of its /proc, so that the command would have that /proc in the place of one of its own "+
		"and see the container's other processes; keeping it from them takes system calls that are put to srt, which cannot be had here (%v). "+
		"Run the container with an unmasked /proc (docker run --security-opt systempaths=unconfined, Kubernetes procMount: Unmasked), or set "+
		"enableWeakerNestedSandbox to let the command see them; within another sandbox only the latter is possible", e.Reason)
}

// Unwrap gives the reason.
func (e *UnjudgedProcessesError) Unwrap() error { return e.Reason }
