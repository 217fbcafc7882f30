package runtime

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	"github.com/srt-sandbox/srt/ns"
)

// checkSandbox makes the namespaces of a sandbox, in which no program is run, and takes them away. It is the only way to
// know: what may refuse them are sysctls, security modules, filters and limits, each for reasons of its own.
func checkSandbox() error {
	h, err := readIdentity()
	if err != nil {
		return err
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer null.Close()
	program, err := ns.NewProgram()
	if err != nil {
		return err
	}
	prepared, err := ns.Prepare(h.namespaces(null, null, null, ns.SessionNew), program)
	if err != nil {
		return errors.Join(err, program.Release())
	}
	return prepared.Close()
}

// namespaces are what a sandbox is made with.
func (h *host) namespaces(stdin, stdout, stderr *os.File, session ns.Session) *ns.Config {
	kinds := ns.Full
	if !h.cgroupNS {
		kinds &^= syscall.CLONE_NEWCGROUP
	}
	return &ns.Config{Namespaces: kinds, UIDs: h.uids, GIDs: h.gids, DenySetgroups: !h.mapsAll, Session: session,
		Stdin: stdin, Stdout: stdout, Stderr: stderr}
}

// missing is what commands have less of where system calls cannot be put to srt.
func missing() []string {
	if err := brokerAvailable(); err != nil {
		return []string{fmt.Sprintf("system calls cannot be put to srt here (%v): programs that ignore the proxy variables reach nothing, Unix "+
			"sockets are refused as a whole, and rules about names that do not exist are held by placeholder files", err)}
	}
	return nil
}
