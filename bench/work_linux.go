package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// work measures what a sandbox costs a command that has started: the loads time themselves.
func work(b *bed) []group {
	p, err := b.place("work", b.people[0], oneDomain, nil)
	if err != nil {
		return []group{failed("work", err)}
	}
	s := oneDomain
	s.denyWrite = []string{"absent", "absent-folder/file"} // must not make the creation of other files slow
	absent, err := b.place("work-absent", b.people[0], s, nil)
	if err != nil {
		return []group{failed("work", err)}
	}
	peers := append([]peer{outside, bwrap()}, b.sandboxes()...)
	groups := builds(b)
	for _, m := range []struct {
		what, unit string
		n          int
		at         place
		args       []string
	}{
		{"creation of 10,000 small files", "ms", 10, p, []string{"load-files", "10000"}},
		{"creation of 10,000 small files, absent denies", "ms", 10, absent, []string{"load-files", "10000"}},
		{"2,000 fork and exec of true", "ms", 6, p, []string{"load-execs", "2000"}},
		{"open and close", "ns", 10, p, []string{"load-calls", "open"}},
		{"stat", "ns", 10, p, []string{"load-calls", "stat"}},
		{"getppid", "ns", 10, p, []string{"load-calls", "getppid"}},
	} {
		args := append([]string{b.self}, m.args...)
		groups = append(groups, group{m.what, m.unit, alternate(b.runs(m.n), peers, func(r peer) (float64, error) {
			got, err := r.run(m.at, args...)
			if err != nil {
				return 0, err
			}
			return parse(got.stdout, 0)
		})})
	}
	return groups
}

// build is how many files the load makes and how many programs it starts, as a build does (docs/architecture.md).
const (
	buildFiles = 10_000
	buildExecs = 2_000
)

// builds measures a build in a folder in memory and in one where temporary files lie, with denies of names that do not
// exist in force, some of them in the very directories that files are made in. The outside runs twice in each round: what
// the second differs from the first is the noise of the machine.
func builds(b *bed) []group {
	s := oneDomain
	s.denyWrite = []string{"secrets/prod.env", ".env.production", "src/local/key", "out/absent"}
	again := outside
	again.name = "outside, again"
	peers := append([]peer{outside, again, bwrap()}, b.sandboxes()...)
	var groups []group
	for _, at := range b.disks() {
		what := fmt.Sprintf("a build of %d files and %d programs, absent denies, %s", buildFiles, buildExecs, at.name)
		p, err := at.bed.place("build", b.people[0], s, func(folder string) error {
			return errors.Join(os.Mkdir(filepath.Join(folder, "src"), 0o755), os.Mkdir(filepath.Join(folder, "out"), 0o755))
		})
		if err != nil {
			groups = append(groups, failed(what, err))
			continue
		}
		args := []string{b.self, "load-build", strconv.Itoa(buildFiles), strconv.Itoa(buildExecs)}
		groups = append(groups, group{what, "ms", alternate(b.runs(10), peers, func(r peer) (float64, error) {
			got, err := r.run(p, args...)
			if err != nil {
				return 0, err
			}
			return parse(got.stdout, 0)
		})})
	}
	return groups
}

// buildMode: FILES EXECS. Makes files in src and out, a fifth of them under a temporary name first, runs true now and
// then, and prints milliseconds.
func buildMode(args []string) error {
	files, err1 := strconv.Atoi(args[0])
	execs, err2 := strconv.Atoi(args[1])
	program, err3 := exec.LookPath("true")
	if err := errors.Join(err1, err2, err3); err != nil {
		return err
	}
	start := time.Now()
	for i := range files {
		name := filepath.Join([]string{"src", "out"}[i%2], strconv.Itoa(i))
		first := name
		if i%5 == 0 {
			first = name + ".tmp"
		}
		err := os.WriteFile(first, []byte("small\n"), 0o644)
		if first != name {
			err = errors.Join(err, os.Rename(first, name))
		}
		if err == nil && i*execs/files != (i+1)*execs/files {
			err = exec.Command(program).Run()
		}
		if err != nil {
			return err
		}
	}
	fmt.Println(milliseconds(time.Since(start)))
	for i := range files {
		if err := os.Remove(filepath.Join([]string{"src", "out"}[i%2], strconv.Itoa(i))); err != nil {
			return err
		}
	}
	return nil
}

// filesMode: COUNT. Creates that many files in a new folder here, and prints milliseconds.
func filesMode(args []string) error {
	n, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	folder, err := os.MkdirTemp(".", "files-")
	if err != nil {
		return err
	}
	start := time.Now()
	for i := range n {
		if err := os.WriteFile(filepath.Join(folder, strconv.Itoa(i)), []byte("small\n"), 0o644); err != nil {
			return err
		}
	}
	fmt.Println(milliseconds(time.Since(start)))
	return os.RemoveAll(folder)
}

// execsMode: COUNT. Runs true that many times, and prints milliseconds.
func execsMode(args []string) error {
	n, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	program, err := exec.LookPath("true")
	if err != nil {
		return err
	}
	start := time.Now()
	for range n {
		if err := exec.Command(program).Run(); err != nil {
			return err
		}
	}
	fmt.Println(milliseconds(time.Since(start)))
	return nil
}

// callsMode: KIND. Prints the nanoseconds of one system call, the best of some rounds.
func callsMode(args []string) error {
	const file = "calls-file"
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		return err
	}
	call, ok := map[string]func() error{
		"open": func() error {
			fd, err := unix.Open(file, unix.O_RDONLY|unix.O_CLOEXEC, 0)
			if err != nil {
				return err
			}
			return unix.Close(fd)
		},
		"stat": func() error {
			var st unix.Stat_t
			return unix.Stat(file, &st)
		},
		"getppid": func() error {
			if _, _, errno := syscall.RawSyscall(syscall.SYS_GETPPID, 0, 0, 0); errno != 0 {
				return errno
			}
			return nil
		},
	}[args[0]]
	if !ok {
		return errors.New("no such call")
	}
	const rounds, calls = 10, 20_000
	best := time.Duration(1 << 62)
	for range rounds {
		start := time.Now()
		for range calls {
			if err := call(); err != nil {
				return err
			}
		}
		best = min(best, time.Since(start))
	}
	fmt.Println(float64(best.Nanoseconds()) / calls)
	return os.Remove(file)
}
