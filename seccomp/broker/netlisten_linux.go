package broker

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// listens tells whether something in the sandbox listens at a loopback address (proc_pid_net(5)). If that cannot be found
// out, it is reported and counts as if it did: then nothing leaves the sandbox.
func (c *call) listens(at netip.AddrPort) bool {
	n := &c.s.network
	if c.w != nil && n.spares.unused() {
		c.s.pool.handOn(c.w, true) // the start of a hand takes long
	}
	if yes, known := n.diagnosis.listens(&n.spares, at); known {
		return yes
	}
	return c.listed(at)
}

// listed is listens for a kernel that has no sock_diag(7).
func (c *call) listed(at netip.AddrPort) bool {
	for _, name := range [...]string{"net/tcp", "net/tcp6"} {
		fd := -1
		err := c.onThread(func(t *thread) (err error) {
			fd, err = unix.Openat(t.dir, name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
			return err
		})
		if errors.Is(err, unix.ENOENT) && name != "net/tcp" {
			continue // a kernel without IPv6
		}
		if err != nil {
			_ = c.broken(fmt.Errorf("open /proc/%d/%s: %w", c.tid, name, err))
			return true
		}
		f := os.NewFile(uintptr(fd), name)
		found, err := listensIn(f, at)
		f.Close()
		if err != nil {
			_ = c.broken(fmt.Errorf("read /proc/%d/%s: %w", c.tid, name, err))
			return true
		}
		if found {
			return true
		}
	}
	return false
}

// errSockets says that the kernel's list of sockets is not understood.
var errSockets = errors.New("a line of /proc/PID/net/tcp is not understood")

// listensIn looks for a listener in the text of a list of sockets, in which the listeners come first.
func listensIn(text io.Reader, at netip.AddrPort) (bool, error) {
	lines := bufio.NewScanner(text)
	lines.Scan() // the heading
	for lines.Scan() {
		f := bytes.Fields(lines.Bytes())
		const local, state = 1, 3
		if len(f) <= state {
			return false, errSockets
		}
		if string(f[state]) != "0A" { // TCP_LISTEN
			return false, nil
		}
		here, err := parseSocket(f[local])
		if err != nil {
			return false, err
		}
		if here.Port() == at.Port() && covers(here.Addr(), at.Addr()) {
			return true, nil
		}
	}
	return false, lines.Err()
}

// covers tells whether a listener at an address takes connections to another one. One on :: may take IPv4 too.
func covers(here, at netip.Addr) bool {
	here = here.Unmap()
	return here == at || here == netip.IPv6Unspecified() || here == netip.IPv4Unspecified() && at.Is4()
}

// parseSocket reads an address such as 0100007F:1538: words of four bytes in the machine's order, and the port.
func parseSocket(text []byte) (a netip.AddrPort, err error) {
	words, port, _ := bytes.Cut(text, []byte{':'})
	raw, err := hex.DecodeString(string(words))
	if err != nil || len(raw)%4 != 0 {
		return a, errSockets
	}
	for i := 0; i < len(raw); i += 4 {
		binary.NativeEndian.PutUint32(raw[i:], binary.BigEndian.Uint32(raw[i:]))
	}
	ip, ok := netip.AddrFromSlice(raw)
	number, err := strconv.ParseUint(string(port), 16, 16)
	if !ok || err != nil {
		return a, errSockets
	}
	return netip.AddrPortFrom(ip, uint16(number)), nil
}
