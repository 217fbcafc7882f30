package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// held is a sandbox whose command waits.
type held struct {
	cmd   *exec.Cmd
	stdin io.Closer
	inner int   // process id of the command itself
	rest  []int // the sandbox's other processes, the first among them
	stop  context.CancelFunc
}

// hold starts the load "load-idle" with args and returns once it is ready.
func (b *bed) hold(r peer, p place, args ...string) (*held, error) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	cmd := r.command(ctx, p, append([]string{b.self, "load-idle"}, args...)...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	stdin, err1 := cmd.StdinPipe()
	stdout, err2 := cmd.StdoutPipe()
	if err := errors.Join(err1, err2); err != nil {
		cancel()
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		cancel()
		return nil, err
	}
	h := &held{cmd: cmd, stdin: stdin, stop: cancel}
	if line, err := bufio.NewReader(stdout).ReadString('\n'); err != nil || line != "ready\n" {
		return nil, errors.Join(fmt.Errorf("the load said %q", line), h.release(), errors.New(stderr.String()))
	}
	if err := h.find(b.self); err != nil {
		return nil, errors.Join(err, h.release())
	}
	return h, nil
}

// release lets the command end, and waits.
func (h *held) release() error {
	defer h.stop()
	return errors.Join(h.stdin.Close(), h.cmd.Wait())
}

// find tells the command's process from those that the sandbox adds.
func (h *held) find(self string) error {
	tree, err := descendants(h.cmd.Process.Pid)
	if err != nil {
		return err
	}
	for _, pid := range tree {
		line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if err == nil && strings.HasPrefix(string(line), self+"\x00load-idle\x00") {
			h.inner = pid
		} else {
			h.rest = append(h.rest, pid)
		}
	}
	if h.inner == 0 {
		return errors.New("the command is not among the descendants of its sandbox")
	}
	return nil
}

// descendants returns pid and every process below it.
func descendants(pid int) ([]int, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	children := map[int][]int{}
	for _, e := range entries {
		id, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		stat, err := os.ReadFile("/proc/" + e.Name() + "/stat")
		if err != nil {
			continue // it has ended
		}
		// proc_pid_stat(5): the name is in parentheses and may hold anything.
		fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
		parent, err := strconv.Atoi(fields[1])
		if err != nil {
			return nil, err
		}
		children[parent] = append(children[parent], id)
	}
	tree := []int{pid}
	for i := 0; i < len(tree); i++ {
		tree = append(tree, children[tree[i]]...)
	}
	return tree, nil
}

// footprint sums one line of smaps_rollup (in KiB) over the processes that the sandbox adds.
func (h *held) footprint(line string) (float64, error) {
	sum := 0.0
	for _, pid := range h.rest {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
		if errors.Is(err, fs.ErrNotExist) {
			continue // it has ended
		}
		if err != nil {
			return 0, err
		}
		words := strings.Fields(string(text))
		i := slices.Index(words, line+":")
		if i < 0 || i+1 >= len(words) {
			continue // a zombie
		}
		kib, err := strconv.ParseFloat(words[i+1], 64)
		if err != nil {
			return 0, err
		}
		sum += kib
	}
	return sum, nil
}

// memory measures what a sandbox holds while its command waits.
func memory(b *bed) []group {
	s, host, err := somewhere()
	if err != nil {
		return []group{failed("memory", err)}
	}
	defer s.close()
	p, err := b.place("memory", b.people[0], settings{domains: []string{host}}, nil)
	if err != nil {
		return []group{failed("memory", err)}
	}
	target := s.raw.Addr().String()
	peers := append([]peer{bwrap()}, b.sandboxes()...)
	measure := func(what, unit string, value func(*held) (float64, error)) group {
		return group{what, unit, alternate(4, peers, func(r peer) (float64, error) {
			h, err := b.hold(r, p, "0", target, "proxy")
			if err != nil {
				return 0, err
			}
			v, err := value(h)
			return v, errors.Join(err, h.release())
		})}
	}
	pss := func(h *held) (float64, error) { return h.footprint("Pss") }
	return []group{
		measure("memory beyond the command, PSS", "KiB", pss),
		measure("memory beyond the command, RSS", "KiB", func(h *held) (float64, error) { return h.footprint("Rss") }),
		measure("processes beyond the command", "", func(h *held) (float64, error) { return float64(len(h.rest)), nil }),
		b.idleTunnels(p, peers[1:], target, pss),
	}
}

// idleTunnels measures how much memory 1,000 open tunnels add to a sandbox, for each.
func (b *bed) idleTunnels(p place, peers []peer, target string, pss func(*held) (float64, error)) group {
	return b.addedBy("memory of an idle tunnel, of 1,000", 1000, p, peers, target, "proxy", pss)
}

// addedBy measures how much memory a number of tunnels adds to a sandbox, for each.
func (b *bed) addedBy(what string, tunnels int, p place, peers []peer, target, way string, pss func(*held) (float64, error)) group {
	return group{what, "KiB", alternate(4, peers, func(r peer) (float64, error) {
		var sizes [2]float64
		for i, n := range []int{0, tunnels} {
			h, err := b.hold(r, p, strconv.Itoa(n), target, way)
			if err != nil {
				return 0, err
			}
			sizes[i], err = pss(h)
			if err := errors.Join(err, h.release()); err != nil {
				return 0, err
			}
		}
		return (sizes[1] - sizes[0]) / float64(tunnels), nil
	})}
}

// exits measures how long a sandbox outlives its command, and a command its sandbox.
func exits(b *bed) []group {
	p, err := b.place("exit", b.people[0], oneDomain, nil)
	if err != nil {
		return []group{failed("exit", err)}
	}
	peers := append([]peer{bwrap("--die-with-parent")}, b.sandboxes()...)
	groups := []group{{"from the command's last act to the sandbox's end", "ms",
		alternate(b.runs(50), peers, func(r peer) (float64, error) {
			got, err := r.run(p, b.self, "load-stamp")
			if err != nil {
				return 0, err
			}
			stamp, err := strconv.ParseInt(strings.TrimSpace(got.stdout), 10, 64)
			return milliseconds(got.ended.Sub(time.Unix(0, stamp))), err
		})}}
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		groups = append(groups, group{fmt.Sprintf("from %s of the sandbox to the command's end", unix.SignalName(signal)), "ms",
			alternate(b.runs(20), peers, func(r peer) (float64, error) { return b.kill(r, p, signal) })})
	}
	return groups
}

// kill signals a sandbox and returns the milliseconds until its command is gone.
func (b *bed) kill(r peer, p place, signal syscall.Signal) (float64, error) {
	h, err := b.hold(r, p, "0", "127.0.0.1:1", "direct")
	if err != nil {
		return 0, err
	}
	fds, err := pidfds(append([]int{h.inner}, h.rest...))
	if err != nil {
		return 0, errors.Join(err, h.release())
	}
	defer endAll(fds)
	start := time.Now()
	if err := h.cmd.Process.Signal(signal); err != nil {
		return 0, errors.Join(err, h.release())
	}
	n, err := unix.Poll([]unix.PollFd{{Fd: int32(fds[0]), Events: unix.POLLIN}}, 5000)
	took := time.Since(start)
	h.release() // its status is the signal's
	if err == nil && n == 0 {
		err = errors.New("the command lived on for 5 s")
	}
	return milliseconds(took), err
}

// pidfds opens a descriptor for every process, which the caller gives to endAll.
func pidfds(pids []int) ([]int, error) {
	var fds []int
	for _, pid := range pids {
		fd, err := unix.PidfdOpen(pid, 0)
		if err != nil {
			endAll(fds)
			return nil, fmt.Errorf("pidfd_open: %w", err)
		}
		fds = append(fds, fd)
	}
	return fds, nil
}

// endAll ends what a peer has left behind, and closes the descriptors. A process that is gone already is no error.
func endAll(fds []int) {
	for _, fd := range fds {
		unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0)
		unix.Close(fd)
	}
}

// stampMode prints the time and ends.
func stampMode([]string) error {
	_, err := fmt.Println(time.Now().UnixNano())
	return err
}
