package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/srt-sandbox/srt/runtime"
	"github.com/srt-sandbox/srt/runtime/config"
)

// warmNamespaces are those of a sandbox.
const warmNamespaces = syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWNET | syscall.CLONE_NEWIPC |
	syscall.CLONE_NEWUTS | syscall.CLONE_NEWCGROUP

// What the load "load-warm" compares, in the order of the rows.
const (
	bareClone  = "bare clone"
	warmSrt    = "srt, session"
	warmIdle   = "/bin/sleep"
	warmTarget = "/bin/true"
)

// warm measures the library: commands of a session that runs, against a clone of the same namespaces by the same program.
func warm(b *bed) []group {
	var groups []group
	for _, who := range b.people {
		p, err := b.place("warm", who, oneDomain, nil)
		if err != nil {
			groups = append(groups, failed("warm starts", err))
			continue
		}
		groups = append(groups, b.warmGroup(p, "command start in a running session (target 2), "+who.name, "ms", "start", b.runs(30), 1))
		for _, workers := range []int{1, 2, 8} {
			what := fmt.Sprintf("commands of a session, %d at once (target 400/s on 2 cores), %s", workers, who.name)
			groups = append(groups, b.warmGroup(p, what, "/s", "rate", b.runs(15), workers))
		}
	}
	p, err := b.place("warm-memory", b.people[0], oneDomain, nil)
	if err != nil {
		return append(groups, failed("warm memory", err))
	}
	for _, n := range []int{1, 10, 100} {
		what := fmt.Sprintf("memory of each of %d running sandboxes, PSS (target 1024)", n)
		groups = append(groups, b.warmGroup(p, what, "KiB", "memory", 3, n))
	}
	return groups
}

// warmGroup runs the load "load-warm" and reads its samples.
func (b *bed) warmGroup(p place, what, unit, kind string, runs, n int) group {
	got, err := outside.run(p, b.self, "load-warm", kind, strconv.Itoa(runs), strconv.Itoa(n))
	if err != nil {
		return failed(what, err)
	}
	g := group{what: what, unit: unit}
	for line := range strings.Lines(got.stdout) {
		who, value, _ := strings.Cut(strings.TrimSpace(line), "\t")
		v, err := strconv.ParseFloat(value, 64)
		if err != nil {
			return failed(what, fmt.Errorf("the load said %q: %w", line, err))
		}
		i := slices.IndexFunc(g.rows, func(r row) bool { return r.who == who })
		if i < 0 {
			i, g.rows = len(g.rows), append(g.rows, row{who: who})
		}
		g.rows[i].samples = append(g.rows[i].samples, v)
	}
	return g
}

// warmMode is the load: kind, number of samples, and how many at once.
func warmMode(args []string) error {
	if len(args) != 3 {
		return errors.New("a kind and two numbers are needed")
	}
	runs, err1 := strconv.Atoi(args[1])
	n, err2 := strconv.Atoi(args[2])
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	c := config.Default()
	c.Network.AllowedDomains = oneDomain.domains
	c.Filesystem.AllowWrite = []config.PathEntry{{Path: "."}}
	ctx := context.Background()
	s, err := runtime.New(ctx, c)
	if err != nil {
		return err
	}
	inSession := func() error { return s.Command(ctx, warmTarget).Run() }
	if err = inSession(); err == nil { // the first one is not warm
		switch args[0] {
		case "start":
			err = sampleWarm(runs, inSession, func(run func() error) (float64, error) { return medianStart(run, 10) })
		case "rate":
			err = sampleWarm(runs, inSession, func(run func() error) (float64, error) { return rateOf(run, n, 400*time.Millisecond) })
		case "memory":
			err = sampleMemory(ctx, s, runs, n)
		default:
			err = fmt.Errorf("unknown kind %q", args[0])
		}
	}
	return errors.Join(err, s.Close())
}

// sampleWarm measures a bare clone and a command of the session in turn.
func sampleWarm(runs int, inSession func() error, measure func(func() error) (float64, error)) error {
	for range runs {
		for _, who := range []struct {
			name string
			run  func() error
		}{{bareClone, cloneAndExec}, {warmSrt, inSession}} {
			v, err := measure(who.run)
			if err != nil {
				return fmt.Errorf("%s: %w", who.name, err)
			}
			fmt.Printf("%s\t%g\n", who.name, v)
		}
	}
	return nil
}

// cloneAndExec runs the same program in new namespaces, and does nothing else.
func cloneAndExec() error {
	cmd := exec.Command(warmTarget)
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: warmNamespaces,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: os.Getuid(), HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: os.Getgid(), HostID: os.Getgid(), Size: 1}}}
	return cmd.Run()
}

// medianStart is the median of n runs, in milliseconds.
func medianStart(run func() error, n int) (float64, error) {
	var took []float64
	for range n {
		start := time.Now()
		if err := run(); err != nil {
			return 0, err
		}
		took = append(took, milliseconds(time.Since(start)))
	}
	return median(took), nil
}

// rateOf is how many runs a second so many workers do, within about d.
func rateOf(run func() error, workers int, d time.Duration) (float64, error) {
	counts, errs := make([]int, workers), make([]error, workers)
	var wg sync.WaitGroup
	start := time.Now()
	for i := range workers {
		wg.Go(func() {
			for time.Since(start) < d && errs[i] == nil {
				errs[i] = run()
				counts[i]++
			}
		})
	}
	wg.Wait()
	took := time.Since(start)
	sum := 0
	for _, n := range counts {
		sum += n
	}
	return float64(sum) / took.Seconds(), errors.Join(errs...)
}

// sampleMemory measures what each of n sandboxes takes while its command waits: what this process grows by, and the
// processes that are not the commands themselves.
func sampleMemory(ctx context.Context, s *runtime.Sandbox, runs, n int) error {
	for range runs {
		before, err := ownMemory()
		if err != nil {
			return err
		}
		var cmds []*runtime.Cmd
		for range n {
			cmd := s.Command(ctx, warmIdle, "600")
			if err = cmd.Start(); err != nil {
				break
			}
			cmds = append(cmds, cmd)
		}
		time.Sleep(100 * time.Millisecond) // the last command has yet to be executed
		var after, rest float64
		if err == nil {
			after, err = ownMemory()
		}
		if err == nil {
			rest, err = addedMemory()
		}
		for _, cmd := range cmds {
			err = errors.Join(err, cmd.Kill())
			_ = cmd.Wait() // says that it was killed
		}
		if err != nil {
			return err
		}
		fmt.Printf("%s\t%g\n", warmSrt, (max(after-before, 0)+rest)/float64(n))
	}
	return nil
}

// ownMemory is the memory of this process, in KiB, without what the collector would give back.
func ownMemory() (float64, error) {
	debug.FreeOSMemory()
	h := held{rest: []int{os.Getpid()}}
	return h.footprint("Pss")
}

// addedMemory is that of the processes between this one and the commands.
func addedMemory() (float64, error) {
	tree, err := descendants(os.Getpid())
	if err != nil {
		return 0, err
	}
	var h held
	for _, pid := range tree[1:] {
		line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if err == nil && !strings.HasPrefix(string(line), warmIdle+"\x00") {
			h.rest = append(h.rest, pid)
		}
	}
	return h.footprint("Pss")
}
